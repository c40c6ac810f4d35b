//! Stripe or the ledger is away: the scrape works, and says so.

use std::time::{Duration, Instant};

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};

use super::LEDGERS;
use crate::faults::outage::behind_a_relay;
use crate::support::relay::Relay;
use crate::support::scrape::Scrape;
use crate::support::{Charge, World};

/// How long a scrape waits for the ledger, and time for a slow machine.
const SCRAPE_MAX: Duration = Duration::from_secs(2 + 4);

const OF_THE_LEDGER: [&str; 7] = [
    "spendcap_expected_total_minor",
    "spendcap_max_amount_minor",
    "spendcap_settled_minor",
    "spendcap_reserved_minor",
    "spendcap_flags_open",
    "spendcap_held_reservations",
    "spendcap_oldest_held_seconds",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_cut_off() {
    without_the_ledger(Relay::cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_does_not_answer() {
    without_the_ledger(Relay::stall).await;
}

async fn without_the_ledger(go_away: fn(&Relay)) {
    let (world, relay) = behind_a_relay().await;
    let key = world.issue(100_000, json!({})).await;
    world.charge(&key, Charge::default()).await.expect(200);
    let seen = Scrape::of(&world, 0).await;
    assert_eq!(seen.get("spendcap_ledger_up", &[]), 1);
    go_away(&relay);
    let refused = world.charge(&key, Charge::default()).await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    let seen = Scrape::until(&world, "the ledger is seen to be away", |seen| {
        seen.all("spendcap_settled_minor").count() == 0
    })
    .await;
    assert_eq!(seen.get("spendcap_ledger_up", &[]), 0);
    for name in OF_THE_LEDGER {
        assert_eq!(seen.all(name).count(), 0, "{name}");
    }
    let code = [("code", "ledger_unavailable")];
    assert_eq!(seen.get("spendcap_refusals_total", &code), 1);
    let labels = [("operation", "charges.create"), ("decision", "refuse")];
    assert_eq!(seen.get("spendcap_requests_total", &labels), 1);
    let began = Instant::now();
    let scrape = || Scrape::of(&world, 0);
    let together = tokio::join!(scrape(), scrape(), scrape(), scrape());
    for seen in <[_; 4]>::from(together) {
        assert_eq!(seen.get("spendcap_ledger_up", &[]), 0);
    }
    assert!(began.elapsed() < SCRAPE_MAX, "{:?}", began.elapsed());

    relay.mend();
    let seen = Scrape::until(&world, "the ledger is up", |seen| {
        seen.get("spendcap_ledger_up", &[]) == 1
    })
    .await;
    assert_eq!(seen.sum("spendcap_settled_minor", &[]), 9900);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_breaker_is_seen_to_open_and_to_close() {
    let settings = [
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "2"),
        ("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", "20"),
    ];
    for ledger in LEDGERS {
        let world = World::start(ledger, 1, &settings).await;
        let key = world.issue(100_000, json!({})).await;
        let down = || Fault::new(FaultKind::Status503);
        world.sandbox.add_fault(down().method("POST"));
        world.sandbox.add_fault(down().path_prefix("/v1/account"));
        for customer in ["cus_1", "cus_2", "cus_3"] {
            let charge = Charge {
                customer,
                ..Charge::default()
            };
            world.charge(&key, charge).await.expect(503);
        }
        let seen = Scrape::of(&world, 0).await;
        assert_eq!(seen.get("spendcap_breaker_open", &[]), 1);
        assert_eq!(seen.get("spendcap_held_reservations", &[]), 2);
        let code = [("code", "upstream_unhealthy")];
        assert_eq!(seen.get("spendcap_refusals_total", &code), 1);
        assert_eq!(seen.sum("spendcap_refusals_total", &[]), 1);
        let failed = [("operation", "charges.create"), ("status", "5xx")];
        assert_eq!(seen.get("spendcap_upstream_responses_total", &failed), 2);
        world.sandbox.clear_faults();
        Scrape::until(&world, "the breaker is closed", |seen| {
            seen.get("spendcap_breaker_open", &[]) == 0
        })
        .await;
    }
}
