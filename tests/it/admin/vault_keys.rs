//! Issue, list, look at, raise, lower, revoke, rotate.

use std::time::Duration;

use serde_json::{Value, json};
use spendcap::domain::id::VaultKeyId;
use spendcap::domain::secret::VaultSecret;
use spendcap::domain::vault_key::VaultKey;

use super::server::{Server, masked};
use crate::ledger::scene;

/// Issues a key and returns its object.
pub(crate) async fn issue(server: &Server, changes: &Value) -> Value {
    let mut body = server.least();
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    server.post("/v1/vault_keys", &body).await.ok()
}

/// The key as the ledger has it.
pub(crate) async fn stored(server: &Server, key: &Value) -> VaultKey {
    let id: VaultKeyId = key["id"].as_str().unwrap().parse().unwrap();
    server
        .opened
        .ledger
        .reads()
        .vault_key(&id)
        .await
        .unwrap()
        .unwrap()
}

async fn opened_by(server: &Server, secret: &Value) -> Option<VaultKeyId> {
    let secret = VaultSecret::parse(secret.as_str().unwrap()).unwrap();
    let key = server
        .opened
        .ledger
        .reads()
        .vault_key_by_secret(&secret.hash())
        .await;
    key.unwrap().map(|key| key.id)
}

fn path(key: &Value, action: &str) -> String {
    format!("/v1/vault_keys/{}{action}", key["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_new_key_shows_its_secret_once() {
    let server = Server::start().await;
    let created = issue(&server, &json!({"metadata": {"team": "billing"}})).await;
    assert!(opened_by(&server, &created["secret"]).await.is_some());
    let hint = created["secret_hint"]
        .as_str()
        .unwrap()
        .trim_start_matches('…');
    assert!(created["secret"].as_str().unwrap().ends_with(hint));
    insta::assert_json_snapshot!(
        "vault_key",
        masked(
            &created,
            &[
                ("id", json!("vk_…")),
                ("secret", json!("sk_vault_…")),
                ("secret_hint", json!("…a1b2")),
                ("created", json!(0)),
                ("expires_at", json!(3600))
            ]
        )
    );
    let shown = server.get(&path(&created, "")).await.ok();
    assert_eq!(shown["secret"], Value::Null);
    let mut without_secret = created.clone();
    without_secret.as_object_mut().unwrap().remove("secret");
    assert_eq!(shown, without_secret);
    server.stop().await;
}

#[tokio::test]
async fn caps_are_exact_and_zero_blocks_everything() {
    let server = Server::start().await;
    for (changes, max_amount) in [
        (json!({"expected_total": 99}), 108),
        (json!({"expected_total": 0}), 0),
        (json!({"expected_total": 99, "headroom": "1"}), 99),
        (json!({"expected_total": 99, "currency": "JPY"}), 108),
    ] {
        let key = issue(&server, &changes).await;
        assert_eq!(key["caps"][0]["max_amount"], json!(max_amount), "{changes}");
        assert_eq!(key["caps"][0]["remaining"], json!(max_amount), "{changes}");
    }
    server.stop().await;
}

#[tokio::test]
async fn times_may_be_written_with_an_offset() {
    let server = Server::start().await;
    let in_an_hour = server.in_an_hour();
    let later = jiff::Timestamp::from_second(in_an_hour).unwrap();
    let paris = later.display_with_offset(jiff::tz::offset(2));
    for text in [later.to_string(), paris.to_string()] {
        let key = issue(&server, &json!({"expires_at": text})).await;
        assert_eq!(key["expires_at"], json!(in_an_hour), "{text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn lists_are_newest_first_and_paged() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for period in ["2026-06", "2026-07", "2026-08"] {
        let key = issue(&server, &json!({"billing_period": period})).await;
        ids.insert(0, key["id"].clone());
        server.place.clock.advance(Duration::from_millis(5));
    }
    let ids_of = |list: &Value| -> Vec<Value> {
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["id"].clone())
            .collect()
    };
    let first = server.get("/v1/vault_keys?limit=2").await.ok();
    assert_eq!(
        (&first["object"], &first["url"]),
        (&json!("list"), &json!("/v1/vault_keys"))
    );
    assert_eq!(
        (ids_of(&first), &first["has_more"]),
        (ids[..2].to_vec(), &json!(true))
    );
    let after = format!(
        "/v1/vault_keys?limit=2&starting_after={}",
        ids[1].as_str().unwrap()
    );
    let second = server.get(&after).await.ok();
    assert_eq!(
        (ids_of(&second), &second["has_more"]),
        (ids[2..].to_vec(), &json!(false))
    );
    let july = server
        .get("/v1/vault_keys?billing_period=2026-07")
        .await
        .ok();
    assert_eq!(ids_of(&july), ids[1..2]);
    let none = server.get("/v1/vault_keys?namespace=other").await.ok();
    assert_eq!(ids_of(&none), Vec::<Value>::new());
    server.stop().await;
}

#[tokio::test]
async fn lowering_below_usage_changes_no_usage() {
    let server = Server::start().await;
    let key = issue(&server, &json!({"expected_total": 1000, "headroom": "1"})).await;
    let ask = scene::ask(&stored(&server, &key).await, "cus_1", 600, "key-1");
    let ticket = scene::reserve(&server.opened.ledger, ask).await;
    scene::settle(&server.opened.ledger, &ticket, scene::paid("ch_1", 600)).await;

    let lower = json!({"expected_total": 500, "currency": "usd", "reason": "INC-4411"});
    let lowered = server.post(&path(&key, ""), &lower).await.ok();
    let cap = json!({"currency": "usd", "expected_total": 500, "max_amount": 500, "reserved": 0,
        "settled": 600, "remaining": 0});
    assert_eq!(lowered["caps"], json!([cap]));

    let raise = json!({"expected_totals": {"usd": 2000, "eur": 100}, "headroom": "1.10",
        "reason": "INC-4412"});
    let raised = server.post(&path(&key, ""), &raise).await.ok();
    let caps: Vec<_> = raised["caps"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&caps[0]["currency"], &caps[0]["max_amount"]),
        (&json!("eur"), &json!(110))
    );
    assert_eq!(
        (&caps[1]["max_amount"], &caps[1]["remaining"]),
        (&json!(2200), &json!(1600))
    );
    scene::check_sums(&server.opened.ledger).await;
    server.stop().await;
}

#[tokio::test]
async fn the_status_is_told_by_the_clock() {
    let server = Server::start().await;
    let soon = server.now().unix_seconds() + 60;
    let key = issue(&server, &json!({"starts_at": soon})).await;
    assert_eq!(key["status"], "not_yet_valid");
    server.place.clock.advance(Duration::from_mins(1));
    assert_eq!(server.get(&path(&key, "")).await.ok()["status"], "active");
    server.place.clock.advance(Duration::from_hours(1));
    assert_eq!(server.get(&path(&key, "")).await.ok()["status"], "expired");
    let revoked = server
        .post(&path(&key, "/revoke"), &json!({"reason": "done"}))
        .await
        .ok();
    assert_eq!(revoked["status"], "revoked");
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_key_takes_no_changes() {
    let server = Server::start().await;
    let key = issue(&server, &json!({})).await;
    server
        .post(&path(&key, "/revoke"), &json!({"reason": "leaked"}))
        .await
        .ok();
    let raise = json!({"expected_total": 1, "currency": "usd", "reason": "x"});
    for (action, body) in [("", raise), ("/rotate", json!({}))] {
        let answer = server.post(&path(&key, action), &body).await;
        assert_eq!(answer.verdict(), "409 vault_key_revoked -", "{action}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_rotated_secret_has_a_grace() {
    let server = Server::start().await;
    let key = issue(&server, &json!({"expires_at": server.in_an_hour() + 3600})).await;
    let rotated = server
        .post(&path(&key, "/rotate"), &json!({"grace_seconds": 60}))
        .await
        .ok();
    assert_eq!(rotated["id"], key["id"]);
    assert_ne!(rotated["secret"], key["secret"]);
    assert_ne!(rotated["secret_hint"], key["secret_hint"]);
    for secret in [&key["secret"], &rotated["secret"]] {
        assert!(opened_by(&server, secret).await.is_some());
    }
    server.place.clock.advance(Duration::from_mins(1));
    assert_eq!(opened_by(&server, &key["secret"]).await, None);
    assert!(opened_by(&server, &rotated["secret"]).await.is_some());
    let at_once = server
        .post(&path(&key, "/rotate"), &json!({"grace_seconds": 0}))
        .await
        .ok();
    assert_eq!(opened_by(&server, &rotated["secret"]).await, None);
    assert!(opened_by(&server, &at_once["secret"]).await.is_some());
    server.stop().await;
}

#[tokio::test]
async fn bad_changes_name_their_parameter_and_change_nothing() {
    let server = Server::start().await;
    let key = issue(&server, &json!({})).await;
    let before = stored(&server, &key).await;
    for (action, body, verdict) in [
        ("", json!({}), "400 parameter_missing reason"),
        (
            "",
            json!({"reason": "x"}),
            "400 parameter_missing expected_total",
        ),
        (
            "",
            json!({"expected_total": 5, "reason": "x"}),
            "400 parameter_missing currency",
        ),
        (
            "",
            json!({"expected_total": null, "currency": "usd", "reason": "x"}),
            "400 parameter_invalid_integer expected_total",
        ),
        (
            "",
            json!({"expected_total": i64::MAX, "currency": "usd", "reason": "x"}),
            "400 parameter_invalid_integer expected_total",
        ),
        (
            "",
            json!({"resume": false, "reason": "x"}),
            "400 parameter_invalid resume",
        ),
        (
            "",
            json!({"resume": true, "reason": " "}),
            "400 parameter_invalid_empty reason",
        ),
        (
            "",
            json!({"expires_at": 1, "reason": "x"}),
            "400 parameter_unknown expires_at",
        ),
        ("/revoke", json!({}), "400 parameter_missing reason"),
        (
            "/revoke",
            json!({"reason": "x".repeat(501)}),
            "400 parameter_invalid reason",
        ),
        (
            "/rotate",
            json!({"grace_seconds": 604_801}),
            "400 parameter_invalid_integer grace_seconds",
        ),
        (
            "/rotate",
            json!({"grace_seconds": "60"}),
            "400 parameter_invalid_integer grace_seconds",
        ),
        (
            "/rotate",
            json!({"reason": "x"}),
            "400 parameter_unknown reason",
        ),
    ] {
        let answer = server.post(&path(&key, action), &body).await;
        assert_eq!(answer.verdict(), verdict, "{action} {body}");
    }
    assert_eq!(stored(&server, &key).await, before);
    server.stop().await;
}
