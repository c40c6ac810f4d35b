//! Idempotency keys (contract §2).

use std::time::Duration;

use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::client::{charge, post, start};

const CHARGE: &str = "amount=100&currency=usd&customer=cus_1";

#[tokio::test]
async fn a_repeat_is_answered_as_the_first_was() {
    // The first request, the second under the same key, and what the second is told.
    let rows = [
        (CHARGE, CHARGE, "200", true, 1),
        // The order of parameters means nothing.
        (
            CHARGE,
            "customer=cus_1&currency=usd&amount=100",
            "200",
            true,
            1,
        ),
        (
            CHARGE,
            "amount=101&currency=usd&customer=cus_1",
            "400 idempotency_error",
            false,
            1,
        ),
        (
            "amount=x&currency=usd&customer=cus_1",
            CHARGE,
            "200",
            false,
            1,
        ),
        (
            "amount=1&currency=usd&customer=cus_1&nope=1",
            CHARGE,
            "200",
            false,
            1,
        ),
        (
            "amount=100&currency=usd&customer=cus_decline",
            "amount=100&currency=usd&customer=cus_decline",
            "402 card_declined",
            true,
            0,
        ),
        // An unknown source is found out only when the charge runs: stored.
        (
            "amount=100&currency=usd&source=bogus",
            "amount=100&currency=usd&source=bogus",
            "400 resource_missing",
            true,
            0,
        ),
    ];
    for (first, second, expected, replayed, made) in rows {
        let sandbox = start();
        let one = post("/v1/charges", first).key("k").send(&sandbox).await;
        let two = post("/v1/charges", second).key("k").send(&sandbox).await;
        assert_eq!(two.verdict(), expected, "{first} then {second}");
        assert_eq!(
            two.header("idempotent-replayed").is_some(),
            replayed,
            "{first} then {second}"
        );
        assert_eq!(sandbox.charges().len(), made, "{first} then {second}");
        if replayed {
            assert_eq!(one.body, two.body);
            assert_eq!(one.header("original-request"), one.header("request-id"));
            assert_eq!(two.header("original-request"), one.header("request-id"));
            assert_ne!(two.header("request-id"), one.header("request-id"));
            assert_eq!(two.header("idempotency-key"), Some("k"));
        }
    }
}

#[tokio::test]
async fn the_message_of_a_mismatch_is_stripes() {
    let sandbox = start();
    charge("cus_1").key("k").send(&sandbox).await;
    let other = charge("cus_2").key("k").send(&sandbox).await.json();
    assert_eq!(other["error"]["type"], "idempotency_error");
    assert_eq!(
        other["error"]["message"],
        "Keys for idempotent requests can only be used with the same parameters they were first \
         used with. Try using a key other than 'k' if you meant to execute a different request."
    );
    assert!(other["error"].get("code").is_none());
}

#[tokio::test]
async fn one_key_on_two_endpoints_is_a_mismatch() {
    let sandbox = start();
    let id = post("/v1/charges", &format!("{CHARGE}&capture=false"))
        .send(&sandbox)
        .await
        .id();
    charge("cus_1").key("k").send(&sandbox).await;
    let capture = post(&format!("/v1/charges/{id}/capture"), "")
        .key("k")
        .send(&sandbox)
        .await;
    assert_eq!(capture.verdict(), "400 idempotency_error");
}

#[tokio::test]
async fn keys_expire_after_24_hours() {
    let sandbox = start();
    charge("cus_1").key("k").send(&sandbox).await;
    sandbox.advance_clock(Duration::from_mins(24 * 60 - 1));
    let again = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    sandbox.advance_clock(Duration::from_mins(1));
    let new = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(new.header("idempotent-replayed"), None);
    assert_eq!(sandbox.charges().len(), 2);
}

#[tokio::test]
async fn a_running_key_is_told_409_with_a_retry() {
    let sandbox = start();
    sandbox.add_fault(
        Fault::new(FaultKind::Gate {
            at: Moment::BeforeCommit,
        })
        .once(),
    );
    let first = charge("cus_1").key("k").send(&sandbox);
    let second = async {
        sandbox.wait_until_held(1).await;
        let same = charge("cus_1").key("k").send(&sandbox).await;
        let other = charge("cus_2").key("k").send(&sandbox).await;
        assert!(sandbox.charges().is_empty());
        sandbox.release_gate();
        (same, other)
    };
    let (first, (same, other)) = tokio::join!(first, second);
    assert_eq!(first.verdict(), "200");
    assert_eq!(same.verdict(), "409 idempotency_key_in_use");
    assert_eq!(same.json()["error"]["type"], "invalid_request_error");
    assert_eq!(same.header("stripe-should-retry"), Some("true"));
    assert_eq!(other.verdict(), "400 idempotency_error");
    let repeat = charge("cus_1").key("k").send(&sandbox).await;
    assert_eq!(repeat.id(), first.id());
}

#[tokio::test]
async fn keys_and_objects_are_separate_per_account() {
    let sandbox = start();
    let platform = charge("cus_1").key("k").send(&sandbox).await;
    let connected = charge("cus_1")
        .key("k")
        .header("stripe-account", "acct_2")
        .send(&sandbox)
        .await;
    assert_eq!(connected.verdict(), "200");
    assert_eq!(connected.header("stripe-account"), Some("acct_2"));
    assert_ne!(platform.id(), connected.id());
    let accounts: Vec<_> = sandbox
        .charges()
        .into_iter()
        .map(|charge| charge.account)
        .collect();
    assert_eq!(accounts, ["acct_1SpendcapSandbox", "acct_2"]);
}

#[tokio::test]
async fn without_a_key_every_request_is_a_new_one() {
    let sandbox = start();
    for _ in 0..3 {
        let answer = charge("cus_1").send(&sandbox).await;
        assert_eq!(answer.header("original-request"), None);
    }
    assert_eq!(sandbox.charges_of("cus_1").len(), 3);
}
