//! Giving up what left no trace at Stripe: off by default, and only with every precondition.

use std::time::Duration;

use http::Method;
use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind};

use super::{LEDGERS, ON, lose, row_of, scans, until_state};
use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const HOUR: Duration = Duration::from_hours(1);

/// What is different from a row that is written off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum But {
    Nothing,
    SwitchedOff,
    TooYoung,
    ServerError,
    NothingBefore,
    NothingAfter,
    FeedForbidden,
    AnotherUnderItsKey,
}

async fn pay(world: &World, key: &VaultKey, customer: &str) {
    let charge = Charge {
        customer,
        ..Charge::default()
    };
    world.charge(key, charge).await.expect(200);
}

/// A row of `cus_1` that is held among settled ones; the time is such that it would be written off. And
/// how often it was looked at before.
async fn scene(kind: LedgerKind, but: But) -> (World, VaultKey, usize) {
    let write_off = if but == But::SwitchedOff {
        "false"
    } else {
        "true"
    };
    let mut settings = ON.to_vec();
    settings.push(("SPENDCAP_RECONCILE_WRITE_OFF", write_off));
    let world = World::start(kind, 1, &settings).await;
    let key = world.issue(100_000, json!({})).await;
    if but != But::NothingBefore {
        pay(&world, &key, "cus_before").await;
    }
    world.clock.advance(HOUR / 4);
    let fault = match but {
        But::ServerError => FaultKind::Error500,
        _ => FaultKind::ResetBeforeCommit,
    };
    lose(&world, &key, "cus_1", fault).await;
    if but == But::AnotherUnderItsKey {
        let bearer = format!("Bearer {REAL_KEY}");
        let row = row_of(&world, "cus_1").await;
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
            ("idempotency-key", row["idempotency_key"].as_str().unwrap()),
        ];
        let url = format!("{}/v1/charges", world.sandbox.base_url());
        let body = "amount=1&currency=usd&customer=cus_1";
        let made = world.client.send(Method::POST, &url, &headers, body).await;
        made.expect(200);
    }
    world.clock.advance(HOUR / 4);
    if but != But::NothingAfter {
        pay(&world, &key, "cus_after").await;
    }
    if but == But::FeedForbidden {
        let fault = Fault::new(FaultKind::Forbidden403);
        world.sandbox.add_fault(fault.path_prefix("/v1/events"));
    }
    let looks = scans(&world);
    world
        .clock
        .advance(HOUR * if but == But::TooYoung { 1 } else { 25 });
    (world, key, looks)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_no_trace_frees_its_part_of_the_cap_and_nothing_else() {
    for kind in LEDGERS {
        let (world, key, _) = scene(kind, But::Nothing).await;
        let row = until_state(&world, "cus_1", "written_off").await;
        assert_eq!(row["amount_reserved"], 0, "{row}");
        assert!(row["resolved_at"].is_i64(), "{row}");
        world.assert_balanced(&key).await;
        let again = world.charge(&key, Charge::default()).await.expect(409);
        assert_eq!(again.code(), "outcome_unknown", "its slot stays taken");
        let metrics = world.admin(Method::GET, "/metrics", None).await.text;
        let counted = r#"spendcap_reconciled_total{result="written_off"} 1"#;
        assert!(metrics.contains(counted), "{metrics}");

        // Money that shows up all the same is recorded.
        let path = format!("/v1/reservations/{}/resolve", row["id"].as_str().unwrap());
        let found = json!({"state": "settled", "amount": 9900, "object_id": "ch_late",
            "unread": true, "reason": "the customer's statement"});
        let settled = world.admin(Method::POST, &path, Some(found)).await;
        assert_eq!(settled.expect(200).json()["state"], "settled");
        assert_eq!(world.operator().flagged(&key, "late_settlement").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_one_of_its_preconditions_it_stays_held() {
    for but in [
        But::SwitchedOff,
        But::TooYoung,
        But::ServerError,
        But::NothingBefore,
        But::NothingAfter,
        But::AnotherUnderItsKey,
    ] {
        let (world, _, mut before) = scene(LedgerKind::Sqlite, but).await;
        // One may have begun before its time, and the next begins after the one before has ended.
        for _ in 0..3 {
            until("it is looked at", async || {
                world.clock.advance(HOUR / 6);
                (scans(&world) > before).then_some(())
            })
            .await;
            before = scans(&world);
        }
        assert_eq!(row_of(&world, "cus_1").await["state"], "held", "{but:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_may_not_be_read_gives_nothing_up() {
    let (world, ..) = scene(LedgerKind::Sqlite, But::FeedForbidden).await;
    until("the feed is asked for", async || {
        let seen = world.sandbox.requests();
        let asked = seen.iter().any(|seen| seen.path == "/v1/events");
        asked.then_some(())
    })
    .await;
    assert_eq!(row_of(&world, "cus_1").await["state"], "held");
    world.sandbox.clear_faults();
    world.clock.advance(HOUR * 7);
    until_state(&world, "cus_1", "written_off").await;
}
