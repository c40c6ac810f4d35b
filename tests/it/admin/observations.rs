//! Reservations and what operators find out about them, flags, periods, the audit log.

use serde_json::{Value, json};
use spendcap::domain::outcome::Outcome;
use spendcap::ledger::Page;

use super::server::{Server, masked};
use super::vault_keys::{issue, stored};
use crate::ledger::scene;

/// A key with a settled charge of `cus_1`, a held one of `cus_2`, and one of `cus_3` in flight.
async fn billed(server: &Server) -> Value {
    let key = issue(server, &json!({})).await;
    let (vault_key, ledger) = (stored(server, &key).await, &server.opened.ledger);
    let paid = scene::reserve(ledger, scene::ask(&vault_key, "cus_1", 9900, "key-1")).await;
    scene::settle(ledger, &paid, scene::paid("ch_1", 9900)).await;
    let lost = scene::reserve(ledger, scene::ask(&vault_key, "cus_2", 9900, "key-2")).await;
    scene::settle(ledger, &lost, Outcome::Unknown).await;
    scene::reserve(ledger, scene::ask(&vault_key, "cus_3", 9900, "key-3")).await;
    key
}

async fn of_customer(server: &Server, customer: &str) -> Value {
    let list = server
        .get(&format!("/v1/reservations?customer={customer}"))
        .await
        .ok();
    list["data"][0].clone()
}

fn resolve_path(row: &Value) -> String {
    format!("/v1/reservations/{}/resolve", row["id"].as_str().unwrap())
}

#[tokio::test]
async fn reservations_are_listed_by_what_is_asked() {
    let server = Server::start().await;
    let key = billed(&server).await;
    let id = key["id"].as_str().unwrap();
    for (query, states) in [
        (String::new(), vec!["in_flight", "held", "settled"]),
        ("?state=held".to_owned(), vec!["held"]),
        ("?customer=cus_1".to_owned(), vec!["settled"]),
        (format!("?vault_key={id}&limit=1"), vec!["in_flight"]),
        (
            "?billing_period=2026-08".to_owned(),
            vec!["in_flight", "held", "settled"],
        ),
        ("?billing_period=2026-09".to_owned(), vec![]),
    ] {
        let list = server.get(&format!("/v1/reservations{query}")).await.ok();
        let rows = list["data"].as_array().unwrap().iter();
        assert_eq!(
            rows.map(|row| row["state"].clone()).collect::<Vec<_>>(),
            states,
            "{query}"
        );
        assert_eq!(
            list["has_more"],
            json!(query.contains("limit=1")),
            "{query}"
        );
    }
    let row = of_customer(&server, "cus_1").await;
    let path = format!("/v1/reservations/{}", row["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.ok(), row);
    insta::assert_json_snapshot!(
        "reservation",
        masked(
            &row,
            &[
                ("id", json!("rsv_…")),
                ("vault_key", json!("vk_…")),
                ("created", json!(0)),
                ("resolved_at", json!(1))
            ]
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn an_operator_resolves_what_is_held() {
    let server = Server::start().await;
    let key = billed(&server).await;
    let held = of_customer(&server, "cus_2").await;
    let settled = json!({"state": "settled", "amount": 9900, "object_id": "ch_2",
        "reason": "seen in the Dashboard"});
    server.stripe.paid("ch_2", "cus_2", 9900);
    let resolved = server.post(&resolve_path(&held), &settled).await.ok();
    assert_eq!(
        (&resolved["state"], &resolved["object_id"]),
        (&json!("settled"), &json!("ch_2"))
    );
    let key_path = format!("/v1/vault_keys/{}", key["id"].as_str().unwrap());
    let cap = server.get(&key_path).await.ok()["caps"][0].clone();
    assert_eq!(
        (&cap["settled"], &cap["reserved"]),
        (&json!(19_800), &json!(9900))
    );

    let in_flight = of_customer(&server, "cus_3").await;
    let released = json!({"state": "released", "reason": "x"});
    for row in [&in_flight, &resolved] {
        let answer = server.post(&resolve_path(row), &released).await;
        assert_eq!(answer.verdict(), "409 reservation_not_resolvable -");
        let message = answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            message.contains(row["state"].as_str().unwrap()),
            "{message}"
        );
    }
    scene::check_sums(&server.opened.ledger).await;
    server.stop().await;
}

/// A slip of the hand would stop the vault key, or count another's charge.
#[tokio::test]
async fn what_stripe_contradicts_is_not_believed() {
    let server = Server::start().await;
    let key = billed(&server).await;
    let held = of_customer(&server, "cus_2").await;
    server.stripe.paid("ch_1", "cus_1", 9900);
    server.stripe.paid("ch_2", "cus_2", 9900);
    server.stripe.paid("ch_3", "cus_3", 9900);
    for (object_id, amount, verdict) in [
        ("ch_2", 99_000, "409 evidence_contradicts -"),
        ("ch_3", 9900, "409 evidence_contradicts -"),
        ("ch_1", 9900, "409 evidence_contradicts -"),
        ("ch_none", 9900, "409 evidence_unread object_id"),
    ] {
        let settled = json!({"state": "settled", "amount": amount, "object_id": object_id,
            "reason": "seen in the Dashboard"});
        let answer = server.post(&resolve_path(&held), &settled).await;
        assert_eq!(answer.verdict(), verdict, "{object_id}");
    }
    assert_eq!(of_customer(&server, "cus_2").await, held);
    let key_path = format!("/v1/vault_keys/{}", key["id"].as_str().unwrap());
    assert_eq!(server.get(&key_path).await.ok()["status"], "active");

    let unread = json!({"state": "settled", "amount": 9900, "object_id": "ch_none",
        "unread": true, "reason": "Stripe's support"});
    let resolved = server.post(&resolve_path(&held), &unread).await.ok();
    assert_eq!(resolved["state"], "settled");
    server.stop().await;
}

/// Nor where the operator's word is to be taken for it: one charge is counted once.
#[tokio::test]
async fn a_charge_that_another_reservation_counts_resolves_nothing() {
    let server = Server::start().await;
    billed(&server).await;
    let owner = of_customer(&server, "cus_1").await;
    let held = of_customer(&server, "cus_2").await;
    for amount in [9900, 9901] {
        let settled = json!({"state": "settled", "amount": amount, "unread": true,
            "object_id": owner["object_id"], "reason": "seen in the Dashboard"});
        let answer = server.post(&resolve_path(&held), &settled).await;
        assert_eq!(answer.verdict(), "409 reservation_not_resolvable object_id");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains(owner["id"].as_str().unwrap()), "{message}");
    }
    assert_eq!(of_customer(&server, "cus_2").await, held);
    scene::check_sums(&server.opened.ledger).await;
    server.stop().await;
}

#[tokio::test]
async fn releasing_frees_the_cap() {
    let server = Server::start().await;
    billed(&server).await;
    let held = of_customer(&server, "cus_2").await;
    let seen_earlier = json!({"state": "released", "sends": 0, "reason": "not in the event feed"});
    let answer = server.post(&resolve_path(&held), &seen_earlier).await;
    assert_eq!(answer.verdict(), "409 reservation_not_resolvable sends");
    let released = json!({"state": "released", "sends": 1, "reason": "not in the event feed"});
    let row = server.post(&resolve_path(&held), &released).await.ok();
    assert_eq!(
        (&row["state"], &row["amount_reserved"]),
        (&json!("released"), &json!(0))
    );
    scene::check_sums(&server.opened.ledger).await;
    server.stop().await;
}

#[tokio::test]
async fn flags_are_acknowledged() {
    let server = Server::start().await;
    let key = billed(&server).await;
    let again = scene::ask(&stored(&server, &key).await, "cus_1", 9900, "key-9");
    server.opened.ledger.reserve(again).await.unwrap();
    let open = server
        .get("/v1/flags?acknowledged=false&kind=duplicate_customer_period")
        .await
        .ok();
    let flag = &open["data"][0];
    assert_eq!(
        (&flag["count"], &flag["customer"]),
        (&json!(1), &json!("cus_1"))
    );
    insta::assert_json_snapshot!(
        "flag",
        masked(
            flag,
            &[
                ("id", json!("flag_…")),
                ("reservation", json!("rsv_…")),
                ("vault_key", json!("vk_…")),
                ("created", json!(0)),
                ("last_seen_at", json!(0))
            ]
        )
    );
    let path = format!("/v1/flags/{}/acknowledge", flag["id"].as_str().unwrap());
    let seen = server.post(&path, &json!({})).await.ok();
    assert_eq!(
        (&seen["acknowledged"], &seen["acknowledged_by"]),
        (&json!(true), &json!("ops"))
    );
    for (query, count) in [
        ("?acknowledged=false", 0),
        ("?acknowledged=true", 1),
        ("?kind=double_charge", 0),
        (&format!("?vault_key={}", key["id"].as_str().unwrap()), 1),
        ("?vault_key=vk_other", 0),
    ] {
        let list = server.get(&format!("/v1/flags{query}")).await.ok();
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_period_is_summed_up() {
    let server = Server::start().await;
    billed(&server).await;
    issue(
        &server,
        &json!({"namespace": "seats", "expected_total": 100}),
    )
    .await;
    let period = server.get("/v1/periods/2026-08").await.ok();
    insta::assert_json_snapshot!("period", period);
    server.stop().await;
}

#[tokio::test]
async fn the_audit_log_says_who_did_what_and_cannot_be_changed_unseen() {
    let server = Server::start().await;
    let key = issue(&server, &json!({})).await;
    let path = format!("/v1/vault_keys/{}", key["id"].as_str().unwrap());
    let raise = json!({"expected_total": 1, "currency": "usd", "reason": "INC-4411"});
    server.post(&path, &raise).await.ok();
    server
        .post(&format!("{path}/rotate"), &json!({}))
        .await
        .ok();
    server
        .post(&format!("{path}/revoke"), &json!({"reason": "leaked"}))
        .await
        .ok();
    let log = server.get("/v1/audit_log").await.ok();
    let entries = log["data"].as_array().unwrap();
    let column = |name: &str| {
        entries
            .iter()
            .map(|entry| entry[name].clone())
            .collect::<Vec<_>>()
    };
    let actions = [
        "vault_key.revoke",
        "vault_key.rotate",
        "vault_key.update",
        "vault_key.create",
    ];
    assert_eq!(column("action"), actions);
    assert_eq!(column("reason"), ["leaked", "", "INC-4411", ""]);
    assert_eq!(column("actor"), ["ops"; 4]);
    assert_eq!(column("subject"), vec![key["id"].clone(); 4]);
    assert_eq!(column("previous_hash")[..3], column("hash")[1..]);
    let stored = server
        .opened
        .ledger
        .reads()
        .audit_log(&Page::default())
        .await
        .unwrap();
    assert!(
        stored
            .data
            .iter()
            .all(spendcap::ledger::AuditEntry::is_intact)
    );
    assert!(!log.to_string().contains("sk_vault_"));
    let page = server.get("/v1/audit_log?limit=3").await.ok();
    assert_eq!(
        (page["data"].as_array().unwrap().len(), &page["has_more"]),
        (3, &json!(true))
    );
    server.stop().await;
}
