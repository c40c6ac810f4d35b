//! `POST /v1/charges`: what is charged, what is refused, how parameters are merged.

use serde_json::json;

use super::client::{charge, get, post, start};

#[tokio::test]
async fn a_charge_looks_like_stripes() {
    let sandbox = start();
    let body = "amount=9900&currency=USD&customer=cus_1&description=August&metadata[run]=7";
    let answer = post("/v1/charges", body).key("k1").send(&sandbox).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("request-id").unwrap().starts_with("req_"));
    assert_eq!(answer.header("idempotency-key"), Some("k1"));
    let charge = answer.json();
    let expected = json!({
        "object": "charge", "amount": 9900, "amount_captured": 9900, "amount_refunded": 0,
        "captured": true, "currency": "usd", "customer": "cus_1", "description": "August",
        "livemode": false, "paid": true, "refunded": false, "status": "succeeded",
        "failure_code": null, "payment_method": "pm_1", "metadata": { "run": "7" },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&charge[name], value, "{name}");
    }
    assert_eq!(charge["outcome"]["network_status"], "approved_by_network");
    assert!(
        charge["balance_transaction"]
            .as_str()
            .unwrap()
            .starts_with("txn_")
    );

    let made = sandbox.charges();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].id, charge["id"].as_str().unwrap());
    assert_eq!(made[0].customer.as_deref(), Some("cus_1"));
    assert_eq!((made[0].amount, made[0].amount_captured), (9900, 9900));
    assert_eq!(made[0].idempotency_key.as_deref(), Some("k1"));
    assert_eq!(made[0].created, charge["created"].as_i64().unwrap());
}

/// The parameters, the verdict, and the parameter at fault.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "currency=usd&customer=cus_1",
        "400 parameter_missing",
        "amount",
    ),
    (
        "amount=1&customer=cus_1",
        "400 parameter_missing",
        "currency",
    ),
    (
        "amount=&currency=usd&customer=cus_1",
        "400 parameter_invalid_integer",
        "amount",
    ),
    (
        "amount=1.5&currency=usd&customer=cus_1",
        "400 parameter_invalid_integer",
        "amount",
    ),
    (
        "amount=1e3&currency=usd&customer=cus_1",
        "400 parameter_invalid_integer",
        "amount",
    ),
    (
        "amount[]=1&currency=usd&customer=cus_1",
        "400 parameter_invalid_integer",
        "amount",
    ),
    (
        "amount=0&currency=usd&customer=cus_1",
        "400 amount_too_small",
        "amount",
    ),
    (
        "amount=-1&currency=usd&customer=cus_1",
        "400 amount_too_small",
        "amount",
    ),
    (
        "amount=100000000&currency=usd&customer=cus_1",
        "400 amount_too_large",
        "amount",
    ),
    (
        "amount=1&currency=usdd&customer=cus_1",
        "400 invalid_request_error",
        "currency",
    ),
    (
        "amount=1&currency=usd&customer=",
        "400 parameter_invalid_empty",
        "customer",
    ),
    (
        "amount=1&currency=usd&customer=bob",
        "400 resource_missing",
        "customer",
    ),
    (
        "amount=1&currency=usd&customer=cus_1&tip=1",
        "400 parameter_unknown",
        "tip",
    ),
    (
        "amount=1&currency=usd&customer=cus_1&capture=yes",
        "400 invalid_request_error",
        "capture",
    ),
    (
        "amount=1&currency=usd&customer=cus_1&expand[]=x",
        "400 invalid_request_error",
        "expand",
    ),
    (
        "amount=1&amount[]=2&currency=usd&customer=cus_1",
        "400 invalid_request_error",
        "amount",
    ),
];

#[tokio::test]
async fn bad_parameters_are_refused_as_stripe_refuses_them() {
    let sandbox = start();
    for &(body, expected, param) in REFUSED {
        let answer = post("/v1/charges", body).send(&sandbox).await;
        assert_eq!(answer.verdict(), expected, "{body}");
        assert_eq!(answer.json()["error"]["param"], param, "{body}");
    }
    let neither = post("/v1/charges", "amount=1&currency=usd")
        .send(&sandbox)
        .await;
    assert_eq!(neither.verdict(), "400 parameter_missing");
    assert!(sandbox.charges().is_empty());
}

/// An unjudged request would show: each row charges what Rack would make of it (contract §5.1).
#[tokio::test]
async fn parameters_are_merged_as_rack_merges_them() {
    let rows = [
        ("/v1/charges", "amount=100&amount=999", 999),
        ("/v1/charges?amount=999", "amount=100", 100),
        ("/v1/charges?amount=999", "", 999),
        ("/v1/charges", "[amount]=7", 7),
        ("/v1/charges", "amount=1;amount=2", 2),
        ("/v1/charges", "amount=+100", 100),
        ("/v1/charges", "amount=010", 8),
        ("/v1/charges", "amount=0x10", 16),
        ("/v1//charges/", "amount=5", 5),
    ];
    let sandbox = start();
    for (path, body, amount) in rows {
        let body = format!("{body}&currency=usd&customer=cus_1");
        let answer = post(path, &body).send(&sandbox).await;
        assert_eq!(answer.json()["amount"], amount, "{path} {body}");
    }
    // A JSON body is no form; the query still counts.
    let answer = post(
        "/v1/charges?amount=3&currency=usd&customer=cus_1",
        r#"{"amount":9}"#,
    )
    .header("content-type", "application/json")
    .send(&sandbox)
    .await;
    assert_eq!(answer.json()["amount"], 3);
}

#[tokio::test]
async fn declines_are_card_errors_and_no_charge_is_made() {
    let rows = [
        (
            "source=tok_chargeDeclined",
            "card_declined",
            Some("generic_decline"),
        ),
        (
            "source=pm_card_chargeDeclined",
            "card_declined",
            Some("generic_decline"),
        ),
        (
            "source=tok_chargeDeclinedInsufficientFunds",
            "card_declined",
            Some("insufficient_funds"),
        ),
        ("source=tok_chargeDeclinedExpiredCard", "expired_card", None),
        (
            "customer=cus_decline_1",
            "card_declined",
            Some("generic_decline"),
        ),
    ];
    let sandbox = start();
    for (payer, code, decline_code) in rows {
        let body = format!("amount=100&currency=usd&{payer}");
        let answer = post("/v1/charges", &body).send(&sandbox).await;
        let error = &answer.json()["error"];
        assert_eq!(answer.status, 402, "{payer}");
        assert_eq!(error["type"], "card_error", "{payer}");
        assert_eq!(error["code"], code, "{payer}");
        assert_eq!(error["decline_code"].as_str(), decline_code, "{payer}");
        let failed = format!("/v1/charges/{}", error["charge"].as_str().unwrap());
        let failed = get(&failed).send(&sandbox).await.json();
        assert_eq!(failed["status"], "failed", "{payer}");
        assert_eq!(failed["paid"], false, "{payer}");
        assert_eq!(failed["failure_code"], code, "{payer}");
    }
    assert!(sandbox.charges().is_empty());
}

#[tokio::test]
async fn a_pending_charge_ends_later_without_a_request() {
    let sandbox = start();
    for (customer, paid, status, made) in [
        ("cus_pending_1", true, "succeeded", 1),
        ("cus_pending_2", false, "failed", 0),
    ] {
        let pending = charge(customer).send(&sandbox).await.json();
        assert_eq!(pending["status"], "pending");
        assert_eq!(pending["paid"], false);
        assert_eq!(pending["amount_captured"], 0);
        let id = pending["id"].as_str().unwrap();
        assert!(sandbox.charges_of(customer)[0].pending);

        assert!(sandbox.end_pending(id, paid));
        assert!(!sandbox.end_pending(id, paid));
        let ended = get(&format!("/v1/charges/{id}"))
            .send(&sandbox)
            .await
            .json();
        assert_eq!(ended["status"], status);
        assert_eq!(sandbox.charges_of(customer).len(), made);
        let event = get("/v1/events?limit=1").send(&sandbox).await.json()["data"][0].clone();
        assert_eq!(event["type"], format!("charge.{status}"));
        assert!(event["request"]["id"].is_null());
    }
}

#[tokio::test]
async fn the_currencies_that_take_large_amounts_do() {
    let sandbox = start();
    for currency in ["jpy", "idr", "huf"] {
        let body = format!("amount=100000000&currency={currency}&customer=cus_1");
        let answer = post("/v1/charges", &body).send(&sandbox).await;
        assert_eq!(answer.json()["currency"], currency);
    }
}
