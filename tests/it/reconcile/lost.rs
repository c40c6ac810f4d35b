//! Creates whose answers were lost: the feed names the charge, and the charge decides.

use http::Method;
use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind};

use super::{LEDGERS, lose, posts, reconciling, row_of, until_scanned, until_state};
use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_whose_answer_was_lost_is_settled_without_a_repeat() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        for fault in [
            FaultKind::CommitThenFin,
            FaultKind::CommitThen500,
            FaultKind::TruncateBody,
            FaultKind::NonJson200,
        ] {
            let customer = format!("cus_{fault:?}");
            lose(&world, &key, &customer, fault).await;
            let row = until_state(&world, &customer, "settled").await;
            let made = &world.sandbox.charges_of(&customer)[0];
            assert_eq!(row["object_id"], made.id, "{row}");
            assert_eq!(row["amount_settled"], made.amount_captured, "{row}");
        }
        assert_eq!(posts(&world), 4);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_reached_stripe_stays_held() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        for fault in [FaultKind::ResetBeforeCommit, FaultKind::Error500] {
            let customer = format!("cus_{fault:?}");
            lose(&world, &key, &customer, fault).await;
            until_scanned(&world).await;
            let row = row_of(&world, &customer).await;
            assert_eq!(row["state"], "held", "absence is no proof: {row}");
            assert_eq!(row["amount_reserved"], 9900, "{row}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decline_whose_answer_was_lost_gives_the_money_back() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        lose(&world, &key, "cus_decline_1", FaultKind::CommitThenFin).await;
        until_state(&world, "cus_decline_1", "released").await;
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_account_is_asked_for_its_own() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({ "accounts": ["acct_a", "acct_b"] }));
        let key = key.await;
        let lost = Fault::new(FaultKind::CommitThenFin).method("POST");
        world.sandbox.add_fault(lost.times(3));
        for account in ["acct_a", "acct_b", ""] {
            let mut charge = Charge {
                customer: "cus_1",
                ..Charge::default()
            };
            if !account.is_empty() {
                charge.headers.push(("stripe-account", account));
            }
            world.charge(&key, charge).await.expect(504);
        }
        until("all three are settled", async || {
            let rows = world.reservations(&key).await;
            rows.iter()
                .all(|row| row["state"] == "settled")
                .then_some(())
        })
        .await;
        assert_eq!(world.made().len(), 3);
        world.assert_balanced(&key).await;
    }
}

/// Charges straight at Stripe, under an idempotency key that is a reservation's.
async fn charge_past_the_proxy(world: &World, key: &str, body: &str) {
    let bearer = format!("Bearer {REAL_KEY}");
    let url = format!("{}/v1/charges", world.sandbox.base_url());
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
        ("idempotency-key", key),
    ];
    let made = world
        .client
        .send(Method::POST, &url, &headers, body.to_owned());
    made.await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_charge_under_the_same_key_is_not_taken_for_it() {
    for kind in LEDGERS {
        for (n, body) in [
            "amount=9901&currency=usd&customer=cus_1",
            "amount=9900&currency=eur&customer=cus_1",
            "amount=9900&currency=usd&customer=cus_2",
            "amount=9900&currency=usd&source=tok_visa",
        ]
        .into_iter()
        .enumerate()
        {
            let world = reconciling(kind, 1).await;
            let key = world.issue(100_000, json!({})).await;
            let idempotency_key = format!("k-{n}");
            let fault = Fault::new(FaultKind::ResetBeforeCommit).method("POST");
            world.sandbox.add_fault(fault.once());
            let charge = Charge {
                idempotency_key: Some(&idempotency_key),
                ..Charge::default()
            };
            world.charge(&key, charge).await.expect(504);
            charge_past_the_proxy(&world, &idempotency_key, body).await;
            until_scanned(&world).await;
            assert_eq!(row_of(&world, "cus_1").await["state"], "held", "{body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_find_the_same_and_count_it_once() {
    for replicas in [2, 3] {
        let kind = LedgerKind::Postgres;
        let world = reconciling(kind, replicas).await;
        let key = world.issue(1_000_000, json!({})).await;
        for n in 0..10 {
            let customer = format!("cus_{n}");
            lose(&world, &key, &customer, FaultKind::CommitThenFin).await;
        }
        for n in 0..10 {
            until_state(&world, &format!("cus_{n}"), "settled").await;
        }
        until_quiet(&world).await;
        world.assert_balanced(&key).await;
        let flags = world.admin(Method::GET, "/v1/flags", None).await.json();
        assert_eq!(flags["data"], json!([]));
        assert_eq!(posts(&world), 10);
    }
}

/// Every replica has ended what it had begun.
async fn until_quiet(world: &World) {
    let mut seen = world.sandbox.requests_total();
    until("nobody reads any more", async || {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let now = world.sandbox.requests_total();
        let quiet = now == std::mem::replace(&mut seen, now);
        quiet.then_some(())
    })
    .await;
}
