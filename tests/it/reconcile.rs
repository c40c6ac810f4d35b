//! What becomes of reservations whose answers were lost, without anybody's doing: over real sockets, on
//! both ledgers.

mod lost;
mod open;

use serde_json::Value;
use spendcap::sandbox::{Fault, FaultKind, SeenRequest};

use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// On, and impatient. The breaker has tests of its own.
const ON: [(&str, &str); 4] = [
    ("SPENDCAP_RECONCILE_ENABLED", "true"),
    ("SPENDCAP_RECONCILE_INTERVAL_MS", "50"),
    ("SPENDCAP_RECONCILE_READS_PER_SECOND", "100"),
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

/// Scans of the feed that began.
fn scans(world: &World) -> usize {
    let begins = |seen: &&SeenRequest| {
        let query = seen.query.as_deref().unwrap_or_default();
        seen.path == "/v1/events" && !query.contains("starting_after")
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

/// How many requests of the data plane reached Stripe.
fn posts(world: &World) -> usize {
    let seen = world.sandbox.requests();
    seen.iter().filter(|seen| seen.method == "POST").count()
}
