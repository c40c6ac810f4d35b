//! What becomes of reservations whose answers were lost, without anybody's doing: over real sockets, on
//! both ledgers.

mod feed;
mod limits;
mod lost;
mod open;
mod told;
mod write_off;

use http::Method;
use serde_json::Value;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind, SeenRequest};

use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// On, and impatient; what is lost is left to it. The breaker has tests of its own.
const ON: [(&str, &str); 6] = [
    ("SPENDCAP_RECONCILE_ENABLED", "true"),
    ("SPENDCAP_RECONCILE_INTERVAL_MS", "50"),
    ("SPENDCAP_RECONCILE_READS_PER_SECOND", "100"),
    ("SPENDCAP_RECONCILE_FEED_INTERVAL_MS", "50"),
    ("SPENDCAP_UPSTREAM_RESENDS_MAX", "0"),
    ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
];

async fn reconciling(kind: LedgerKind, replicas: usize) -> World {
    World::start(kind, replicas, &ON).await
}

/// A charge whose answer is lost to `fault`.
async fn lose(world: &World, key: &VaultKey, customer: &str, fault: FaultKind) {
    let fault = Fault::new(fault).method("POST").customer(customer).once();
    world.sandbox.add_fault(fault);
    let charge = Charge {
        customer,
        ..Charge::default()
    };
    let answer = world.charge(key, charge).await;
    assert!(answer.status.is_server_error(), "{answer:?}");
}

async fn row_of(world: &World, customer: &str) -> Value {
    let filter = format!("customer={customer}");
    world.operator().reservations(&filter).await.remove(0)
}

async fn until_state(world: &World, customer: &str, state: &str) -> Value {
    until(&format!("{customer} is {state}"), async || {
        Some(row_of(world, customer).await).filter(|row| row["state"] == state)
    })
    .await
}

/// Scans of the feed for held rows that began; the one that follows it asks for refunds too.
fn scans(world: &World) -> usize {
    let begins = |seen: &&SeenRequest| {
        let query = seen.query.as_deref().unwrap_or_default();
        let on = query.contains("starting_after") || query.contains("refund");
        seen.path == "/v1/events" && !on
    };
    world.sandbox.requests().iter().filter(begins).count()
}

/// Waits until the feed was read twice more: what is there was seen.
async fn until_scanned(world: &World) {
    let before = scans(world);
    until("the feed is read again", async || {
        (scans(world) >= before + 2).then_some(())
    })
    .await;
}

/// A POST straight at Stripe, as from the Dashboard or whoever holds the real key.
async fn at_stripe(world: &World, path: &str, body: &str) -> Value {
    let bearer = format!("Bearer {REAL_KEY}");
    let url = format!("{}{path}", world.sandbox.base_url());
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let sent = world
        .client
        .send(Method::POST, &url, &headers, body.to_owned());
    sent.await.json()
}

/// How many requests of the data plane reached Stripe.
fn posts(world: &World) -> usize {
    let seen = world.sandbox.requests();
    seen.iter().filter(|seen| seen.method == "POST").count()
}
