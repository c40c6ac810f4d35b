//! What bounds the reconciler: Stripe's pages, its lag, its limits, and what the real key may.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, SeenRequest};

use super::{LEDGERS, ON, at_stripe, lose, reconciling, row_of, until_scanned, until_state};
use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, World};

fn reads_of(world: &World, path: &str) -> Vec<SeenRequest> {
    let mut seen = world.sandbox.requests();
    seen.retain(|seen| seen.method == "GET" && seen.path.starts_with(path));
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_found_behind_hundreds_of_others() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let late = Duration::from_hours(1);
        world.sandbox.set_event_lag(late);
        lose(&world, &key, "cus_1", FaultKind::CommitThenFin).await;
        for n in 0..250 {
            let body = format!("amount=100&currency=usd&customer=cus_other_{n}");
            at_stripe(&world, "/v1/charges", &body).await;
        }
        until_scanned(&world).await;
        assert_eq!(row_of(&world, "cus_1").await["state"], "held", "events lag");
        world.clock.advance(late + Duration::from_secs(1));
        until_state(&world, "cus_1", "settled").await;
        let events = reads_of(&world, "/v1/events");
        let next = |seen: &&SeenRequest| {
            let query = seen.query.as_deref().unwrap_or_default();
            query.contains("starting_after") && !query.contains("refund")
        };
        assert!(events.iter().filter(next).count() >= 2, "three pages");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_permission_it_says_so_and_asks_again_rarely() {
    for kind in LEDGERS {
        let world = reconciling(kind, 1).await;
        let key = world.issue(100_000, json!({})).await;
        let forbidden = Fault::new(FaultKind::Forbidden403).path_prefix("/v1/events");
        world.sandbox.add_fault(forbidden);
        lose(&world, &key, "cus_1", FaultKind::CommitThenFin).await;
        let authorised = Charge {
            customer: "cus_2",
            more: "&capture=false",
            ..Charge::default()
        };
        let made = world.charge(&key, authorised).await.expect(200).json();
        // What it may read goes on: each of these ends a pass.
        let object = format!("/v1/charges/{}", made["id"].as_str().unwrap());
        until("the open one is looked at", async || {
            (reads_of(&world, &object).len() >= 5).then_some(())
        })
        .await;
        assert!(reads_of(&world, "/v1/events").len() <= 2, "not once a pass");
        assert_eq!(row_of(&world, "cus_1").await["state"], "held");
        let metrics = world.admin(Method::GET, "/metrics", None).await.text;
        assert!(
            metrics.contains("spendcap_reconcile_forbidden 1"),
            "{metrics}"
        );

        world.sandbox.clear_faults();
        world.clock.advance(Duration::from_mins(16));
        until_state(&world, "cus_1", "settled").await;
        until("the metric says so", async || {
            let metrics = world.admin(Method::GET, "/metrics", None).await.text;
            let allowed = metrics.contains("spendcap_reconcile_forbidden 0");
            (allowed && metrics.contains(r#"spendcap_reconciled_total{result="settled"} 1"#))
                .then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_stripe_is_asked_again_later() {
    for fault in [
        FaultKind::RateLimit429,
        FaultKind::Status503,
        FaultKind::Html502,
    ] {
        let world = reconciling(LedgerKind::Sqlite, 1).await;
        let key = world.issue(100_000, json!({})).await;
        world
            .sandbox
            .add_fault(Fault::new(fault).method("GET").times(4));
        lose(&world, &key, "cus_1", FaultKind::CommitThenFin).await;
        until_state(&world, "cus_1", "settled").await;
        assert!(world.sandbox.faults().is_empty(), "{fault:?} was met");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_keep_their_rate() {
    const ROWS: u32 = 10;
    const RATE: u32 = 5;
    let mut settings = ON.to_vec();
    settings.push(("SPENDCAP_RECONCILE_READS_PER_SECOND", "5"));
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(1_000_000, json!({})).await;
    let begin = Instant::now();
    let before = reads_of(&world, "/v1/").len();
    for n in 0..ROWS {
        let customer = format!("cus_{n}");
        lose(&world, &key, &customer, FaultKind::CommitThenFin).await;
    }
    for n in 0..ROWS {
        until_state(&world, &format!("cus_{n}"), "settled").await;
    }
    let reads = reads_of(&world, "/v1/").len() - before;
    assert!(reads > 10, "a page and an object for each: {reads}");
    let allowed = begin.elapsed().as_millis() / u128::from(1000 / RATE) + 2;
    assert!(
        reads as u128 <= allowed,
        "{reads} reads in {:?}",
        begin.elapsed()
    );
}
