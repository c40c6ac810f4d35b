//! Captures and refunds.

use spendcap::sandbox::Sandbox;

use super::client::{get, post, start};

async fn authorize(sandbox: &Sandbox) -> String {
    let body = "amount=1000&currency=usd&customer=cus_1&capture=false";
    let charge = post("/v1/charges", body).send(sandbox).await.json();
    assert_eq!(charge["captured"], false);
    // True for a mere authorisation too (contract §1.3).
    assert_eq!(charge["paid"], true);
    assert_eq!(charge["status"], "succeeded");
    assert!(charge["balance_transaction"].is_null());
    charge["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn captures_take_all_or_part_once() {
    let sandbox = start();
    for (body, captured, returned) in [("", 1000, 0), ("amount=600", 600, 400)] {
        let path = format!("/v1/charges/{}/capture", authorize(&sandbox).await);
        let charge = post(&path, body).send(&sandbox).await.json();
        assert_eq!(charge["captured"], true);
        assert_eq!(charge["amount"], 1000);
        assert_eq!(charge["amount_captured"], captured);
        assert_eq!(charge["amount_refunded"], returned);
        assert_eq!(charge["refunded"], false);
        assert!(charge["balance_transaction"].is_string());
        let again = post(&path, body).send(&sandbox).await;
        assert_eq!(again.verdict(), "400 charge_already_captured");
    }
}

#[tokio::test]
async fn impossible_captures_are_refused() {
    let sandbox = start();
    let path = format!("/v1/charges/{}/capture", authorize(&sandbox).await);
    let rows = [
        (path.as_str(), "amount=1001", "400 amount_too_large"),
        (path.as_str(), "amount=0", "400 parameter_invalid_integer"),
        (path.as_str(), "currency=usd", "400 parameter_unknown"),
        ("/v1/charges/ch_none/capture", "", "404 resource_missing"),
    ];
    for (path, body, expected) in rows {
        assert_eq!(
            post(path, body).send(&sandbox).await.verdict(),
            expected,
            "{path} {body}"
        );
    }
    assert_eq!(sandbox.charges()[0].amount_captured, 0);
}

#[tokio::test]
async fn an_error_of_execution_is_stored_under_its_key() {
    let sandbox = start();
    let path = format!("/v1/charges/{}/capture", authorize(&sandbox).await);
    let too_much = post(&path, "amount=1001").key("k").send(&sandbox).await;
    let again = post(&path, "amount=1001").key("k").send(&sandbox).await;
    assert_eq!(again.verdict(), too_much.verdict());
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
}

#[tokio::test]
async fn a_refund_voids_what_was_not_captured() {
    let sandbox = start();
    let id = authorize(&sandbox).await;
    let part = post("/v1/refunds", &format!("charge={id}&amount=1"))
        .send(&sandbox)
        .await;
    assert_eq!(part.verdict(), "400 invalid_request_error");
    let refund = post("/v1/refunds", &format!("charge={id}"))
        .send(&sandbox)
        .await
        .json();
    assert_eq!(refund["object"], "refund");
    assert_eq!(refund["amount"], 1000);
    let capture = post(&format!("/v1/charges/{id}/capture"), "")
        .send(&sandbox)
        .await;
    assert_eq!(capture.verdict(), "400 charge_already_refunded");
    let made = &sandbox.charges()[0];
    assert!(made.refunded && !made.captured);
    assert_eq!((made.amount_captured, made.amount_refunded), (0, 1000));
}

#[tokio::test]
async fn refunds_go_up_to_what_was_taken() {
    let sandbox = start();
    let body = "amount=1000&currency=usd&customer=cus_1";
    let id = post("/v1/charges", body).send(&sandbox).await.id();
    let rows = [
        ("amount=400", "200", false),
        ("amount=601", "400 invalid_request_error", false),
        ("", "200", true),
        ("", "400 charge_already_refunded", true),
    ];
    for (amount, expected, refunded) in rows {
        let answer = post("/v1/refunds", &format!("charge={id}&{amount}"))
            .send(&sandbox)
            .await;
        assert_eq!(answer.verdict(), expected, "{amount}");
        assert_eq!(sandbox.charges()[0].refunded, refunded, "{amount}");
    }
    let none = post("/v1/refunds", "charge=ch_none").send(&sandbox).await;
    assert_eq!(none.verdict(), "400 resource_missing");
    let balance = get("/v1/balance").send(&sandbox).await.json();
    // 1000 came in less a fee of 59, and all of it went back.
    assert_eq!(balance["available"][0]["amount"], -59);
}
