//! The advisory pass: refunds, and charges that went around.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::{LEDGERS, at_stripe, reconciling, row_of, until_state};
use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, World};

/// Events count once they are this old.
const SETTLED: Duration = Duration::from_mins(6);

async fn bypasses(world: &World) -> Vec<Value> {
    let flags = world
        .admin(Method::GET, "/v1/flags?kind=bypass", None)
        .await;
    flags.expect(200).json()["data"].as_array().unwrap().clone()
}

async fn until_bypassed(world: &World, count: usize) -> Vec<Value> {
    until("a charge went around", async || {
        Some(bypasses(world).await).filter(|flags| flags.len() >= count)
    })
    .await
}

/// A charge past the proxy that everybody sees: once it is flagged, everything before it was judged.
async fn mark(world: &World, customer: &str) -> String {
    let body = format!("amount=100&currency=usd&customer={customer}");
    let made = at_stripe(world, "/v1/charges", &body).await;
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_went_around_is_flagged_once() {
    for (kind, replicas) in [(LedgerKind::Sqlite, 1), (LedgerKind::Postgres, 3)] {
        let world = reconciling(kind, replicas).await;
        let key = world.issue(100_000, json!({})).await;
        world.charge(&key, Charge::default()).await.expect(200);
        let declined = "amount=100&currency=usd&customer=cus_decline_1";
        at_stripe(&world, "/v1/charges", declined).await;
        let first = mark(&world, "cus_9").await;
        world.clock.advance(SETTLED);
        let flags = until_bypassed(&world, 1).await;
        assert_eq!(flags[0]["object_id"], first, "{flags:?}");
        assert_eq!(flags[0]["customer"], "cus_9");
        assert_eq!(
            (&flags[0]["reservation"], &flags[0]["vault_key"]),
            (&json!(null), &json!(null))
        );
        let second = mark(&world, "cus_8").await;
        world.clock.advance(SETTLED);
        let flags = until_bypassed(&world, 2).await;
        assert_eq!(flags.len(), 2, "{flags:?}");
        assert_eq!(flags[0]["object_id"], second);
        assert!(flags.iter().all(|flag| flag["count"] == 1), "{flags:?}");
        let path = format!("/v1/flags/{}/acknowledge", flags[0]["id"].as_str().unwrap());
        let seen = world.admin(Method::POST, &path, Some(json!({}))).await;
        assert_eq!(seen.expect(200).json()["acknowledged"], true);
        world.assert_balanced_but_for(&key, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_are_recorded_and_raise_no_cap() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let made = world
            .charge(&key, Charge::default())
            .await
            .expect(200)
            .json();
        let whole = made["id"].as_str().unwrap();
        let authorised = Charge {
            customer: "cus_2",
            more: "&capture=false",
            ..Charge::default()
        };
        let part = world.charge(&key, authorised).await.expect(200).json();
        let part = part["id"].as_str().unwrap();
        at_stripe(
            &world,
            &format!("/v1/charges/{part}/capture"),
            "amount=5000",
        )
        .await;
        until_state(&world, "cus_2", "settled").await;
        let before = world.cap(&key, "usd").await["remaining"].clone();
        at_stripe(&world, "/v1/refunds", &format!("charge={whole}&amount=400")).await;
        at_stripe(&world, "/v1/refunds", &format!("charge={part}&amount=70")).await;
        world.clock.advance(SETTLED);
        for (customer, amount) in [("cus_1", 400), ("cus_2", 70)] {
            until("the refund is recorded", async || {
                let row = row_of(&world, customer).await;
                (row["amount_refunded"] == amount).then_some(())
            })
            .await;
        }
        at_stripe(&world, "/v1/refunds", &format!("charge={whole}")).await;
        world.clock.advance(SETTLED);
        until("the rest went back", async || {
            let row = row_of(&world, "cus_1").await;
            (row["amount_refunded"] == 9900).then_some(())
        })
        .await;
        assert_eq!(world.cap(&key, "usd").await["remaining"], before);
        assert_eq!(row_of(&world, "cus_1").await["state"], "settled");
        assert!(bypasses(&world).await.is_empty());
    }
}

/// The charge is there while its answer is on its way for minutes; the row is held, found, and no bypass.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_whose_answer_is_late_went_nowhere() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let at = Moment::AfterCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST");
        world.sandbox.add_fault(gate.customer("cus_1"));
        let charge = world.charge(&key, Charge::default());
        let follow = async {
            world.sandbox.wait_until_held(1).await;
            mark(&world, "cus_9").await;
            world.clock.advance(SETTLED);
            let flags = until_bypassed(&world, 1).await;
            assert_eq!(flags.len(), 1, "{flags:?}");
            assert_eq!(flags[0]["customer"], "cus_9");
            until_state(&world, "cus_1", "settled").await;
            world.sandbox.release_gate();
        };
        let (answer, ()) = tokio::join!(charge, follow);
        answer.expect(200);
        world.assert_balanced_but_for(&key, 100).await;
    }
}

/// Stripe did nothing the first time, and made the charge the second time, under the same key. While that
/// answer is on its way the charge is not taken for the first row's, which was given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_not_taken_for_an_earlier_row_of_its_key() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(10_000, json!({})).await;
        let ask = || {
            let charge = Charge {
                idempotency_key: Some("the-same"),
                ..Charge::default()
            };
            world.charge(&key, charge)
        };
        let busy = Fault::new(FaultKind::RateLimit429).method("POST").once();
        world.sandbox.add_fault(busy);
        ask().await.expect(429);
        let at = Moment::AfterCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST");
        world.sandbox.add_fault(gate.customer("cus_1"));
        let follow = async {
            world.sandbox.wait_until_held(1).await;
            mark(&world, "cus_9").await;
            world.clock.advance(SETTLED);
            until_bypassed(&world, 1).await;
            until_state(&world, "cus_1", "settled").await;
            world.sandbox.release_gate();
        };
        let (answer, ()) = tokio::join!(ask(), follow);
        answer.expect(200);
        let rows = world.operator().reservations("customer=cus_1").await;
        let states: Vec<_> = rows.iter().map(|row| &row["state"]).collect();
        assert_eq!(states, ["settled", "released"], "{rows:?}");
        let late = world.operator().flagged(&key, "late_settlement").await;
        assert_eq!(late, 0);
        world.assert_balanced_but_for(&key, 100).await;
    }
}

/// More events than one stretch may have pages, after a long pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_feed_is_read_in_shorter_stretches() {
    let world = reconciling(LedgerKind::Sqlite, 1).await;
    until("the feed is followed", async || {
        let cursor = world.apps[0].ledger().reads().feed_cursor("").await;
        cursor.unwrap()
    })
    .await;
    let declined = "amount=100&currency=usd&customer=cus_decline_1";
    for _ in 0..4 {
        for _ in 0..350 {
            at_stripe(&world, "/v1/charges", declined).await;
        }
        world.clock.advance(Duration::from_secs(5));
    }
    let last = mark(&world, "cus_9").await;
    world.clock.advance(SETTLED);
    let flags = until_bypassed(&world, 1).await;
    assert_eq!(flags[0]["object_id"], last);
}
