//! Keys, records, and the control interface that other processes use.

use serde_json::json;
use spendcap::sandbox::{Sandbox, SandboxSettings};

use super::client::{charge, delete, get, post, start};

#[tokio::test]
async fn only_the_configured_key_is_let_in() {
    // `sk_test_spendcap_sandbox:` and `sk_vault_abc:` in base64.
    let right = "Basic c2tfdGVzdF9zcGVuZGNhcF9zYW5kYm94Og==";
    let wrong = "Basic c2tfdmF1bHRfYWJjOg==";
    let rows = [
        ("Bearer sk_test_spendcap_sandbox", "200", None),
        (right, "200", None),
        (
            "Bearer sk_vault_abc",
            "401 invalid_request_error",
            Some(("bearer", "sk_vault_")),
        ),
        (
            wrong,
            "401 invalid_request_error",
            Some(("basic", "sk_vault_")),
        ),
        (
            "Bearer sk_test_other",
            "401 invalid_request_error",
            Some(("bearer", "sk_test_")),
        ),
        ("", "401 invalid_request_error", Some(("other", ""))),
    ];
    for (authorization, expected, recorded) in rows {
        let sandbox = start();
        let call = charge("cus_1")
            .key("k")
            .header("authorization", authorization);
        assert_eq!(
            call.send(&sandbox).await.verdict(),
            expected,
            "{authorization}"
        );
        let wrong = sandbox.wrong_keys();
        let found = wrong.first().map(|w| {
            (
                w.authorization.scheme.as_str(),
                w.authorization.key_prefix.as_str(),
            )
        });
        assert_eq!(found, recorded, "{authorization}");
        let made = usize::from(recorded.is_none());
        assert_eq!(sandbox.charges().len(), made, "{authorization}");
        // A 401 binds no key.
        assert_eq!(
            charge("cus_2").key("k").send(&sandbox).await.status == 200,
            made == 0
        );
    }
}

#[tokio::test]
async fn a_rotated_key_takes_the_old_ones_place() {
    let sandbox = start();
    sandbox.set_secret_key("sk_test_new");
    assert_eq!(charge("cus_1").send(&sandbox).await.status, 401);
    let call = charge("cus_1").header("authorization", "Bearer sk_test_new");
    assert_eq!(call.send(&sandbox).await.status, 200);
}

#[tokio::test]
async fn requests_are_recorded_without_their_key() {
    let sandbox = start();
    post("/v1/charges?a=1", "amount=1")
        .key("k1")
        .header("x-extra", "1")
        .send(&sandbox)
        .await;
    let seen = sandbox.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str()),
        ("POST", "/v1/charges")
    );
    assert_eq!(seen[0].query.as_deref(), Some("a=1"));
    assert_eq!(seen[0].idempotency_key.as_deref(), Some("k1"));
    assert_eq!(seen[0].body, "amount=1");
    assert_eq!(seen[0].header("x-extra"), Some("1"));
    assert_eq!(seen[0].authorization.key_prefix, "sk_test_");
    let text = get("/_sandbox/requests")
        .send(&sandbox)
        .await
        .json()
        .to_string();
    assert!(text.contains("x-extra"));
    assert!(!text.contains("sk_test_spendcap_sandbox"));
}

#[tokio::test]
async fn recording_can_be_switched_off() {
    let settings = SandboxSettings {
        record_requests: false,
        ..SandboxSettings::default()
    };
    let sandbox = Sandbox::start(settings).unwrap();
    charge("cus_1").send(&sandbox).await;
    assert!(sandbox.requests().is_empty());
    assert_eq!(sandbox.requests_total(), 1);
}

#[tokio::test]
async fn the_truth_can_be_read_over_http() {
    let sandbox = start();
    charge("cus_1").key("k1").send(&sandbox).await;
    charge("cus_2").send(&sandbox).await;
    charge("cus_decline").send(&sandbox).await;
    let all = get("/_sandbox/charges").send(&sandbox).await.json();
    assert_eq!(all["count"], 2);
    assert_eq!(all["totals"]["usd"]["amount_captured"], 19_800);
    let one = get("/_sandbox/charges?customer=cus_1")
        .send(&sandbox)
        .await
        .json();
    assert_eq!(one["count"], 1);
    assert_eq!(one["data"][0]["idempotency_key"], "k1");
    let text = one["data"].to_string();
    let made: Vec<spendcap::sandbox::MadeCharge> = serde_json::from_str(&text).unwrap();
    assert_eq!(made, sandbox.charges_of("cus_1"));
}

#[tokio::test]
async fn faults_are_set_and_cleared_over_http() {
    let sandbox = start();
    let rows = [
        (
            json!({ "kind": "commit_then_fin", "customer": "cus_1", "times": 1 }),
            200,
        ),
        (json!({ "kind": "commit_then_503" }), 200),
        (json!({ "kind": "commit_then_500" }), 200),
        (json!({ "kind": "status_503" }), 200),
        (json!({ "kind": "error_500" }), 200),
        (json!({ "kind": "hang", "at": "after_commit" }), 200),
        (json!({ "kind": "gate" }), 200),
        (json!({ "kind": "slow", "ms": 5 }), 200),
        (json!({ "kind": "non_json_200" }), 200),
        (json!({ "kind": "rate_limit_429" }), 200),
        (json!({ "kind": "conflict_409" }), 200),
        (json!({ "kind": "html_502" }), 200),
        (json!({ "kind": "nope" }), 400),
        (json!({ "kind": "decline", "custmer": "cus_1" }), 400),
        (json!({ "customer": "cus_1" }), 400),
    ];
    for (fault, status) in rows {
        let answer = post("/_sandbox/faults", &fault.to_string())
            .send(&sandbox)
            .await;
        assert_eq!(answer.status, status, "{fault}");
    }
    assert_eq!(sandbox.faults().len(), 12);
    let listed = get("/_sandbox/faults").send(&sandbox).await.json();
    assert_eq!(listed["data"][0]["kind"], "commit_then_fin");
    delete("/_sandbox/faults").send(&sandbox).await;
    assert!(sandbox.faults().is_empty());
}

#[tokio::test]
async fn the_gate_the_clock_and_the_outage_are_worked_over_http() {
    let sandbox = start();
    post("/_sandbox/faults", r#"{"kind":"gate"}"#)
        .send(&sandbox)
        .await;
    let (held, ()) = tokio::join!(charge("cus_1").key("k").send(&sandbox), async {
        let waited = get("/_sandbox/gate/wait?held=1").send(&sandbox).await;
        assert_eq!(waited.json()["held"], 1);
        let released = post("/_sandbox/gate/release", "").send(&sandbox).await;
        assert_eq!(released.json()["released"], 1);
    });
    assert_eq!(held.status, 200);
    let late = get("/_sandbox/gate/wait?held=1&timeout_ms=1")
        .send(&sandbox)
        .await;
    assert_eq!(late.status, 408);

    let before = get("/_sandbox/clock").send(&sandbox).await.json()["now"]
        .as_i64()
        .unwrap();
    post("/_sandbox/clock/advance", r#"{"seconds":86400}"#)
        .send(&sandbox)
        .await;
    let after = get("/_sandbox/clock").send(&sandbox).await.json()["now"]
        .as_i64()
        .unwrap();
    assert!(after - before >= 86_400);
    assert_eq!(
        charge("cus_1")
            .key("k")
            .send(&sandbox)
            .await
            .header("idempotent-replayed"),
        None
    );

    post("/_sandbox/outage", r#"{"mode":"status_503"}"#)
        .send(&sandbox)
        .await;
    assert_eq!(charge("cus_1").send(&sandbox).await.status, 503);
}

#[tokio::test]
async fn a_reset_forgets_everything() {
    let sandbox = start();
    charge("cus_1").key("k").send(&sandbox).await;
    charge("cus_1")
        .key("k")
        .header("stripe-account", "acct_2")
        .send(&sandbox)
        .await;
    charge("cus_1")
        .header("authorization", "Bearer x")
        .send(&sandbox)
        .await;
    post("/_sandbox/reset", "").send(&sandbox).await;
    assert!(sandbox.charges().is_empty());
    assert!(sandbox.requests().is_empty());
    assert!(sandbox.wrong_keys().is_empty());
    let again = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(again.header("idempotent-replayed"), None);
}

#[tokio::test]
async fn the_index_names_the_endpoints() {
    let sandbox = start();
    let index = get("/_sandbox").send(&sandbox).await.json();
    assert!(index["endpoints"].as_array().unwrap().len() > 8);
    assert_eq!(get("/_sandbox/nope").send(&sandbox).await.status, 404);
}
