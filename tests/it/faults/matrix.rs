//! Every fault of Stripe × every policy × how the request is repeated, on both ledgers: what each answer
//! says, that one intent is never charged twice, and that the books agree once the dust has settled.

mod cases;
mod run;

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::patience::until;
use crate::support::{LedgerKind, VaultKey, World};
use cases::{CASES, Case, Then};
use run::Run;

/// How a client repeats a charge: under its key, under fresh ones, or without any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keys {
    Same,
    Fresh,
    Missing,
}

/// One after the other, or all three at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timing {
    InTurn,
    AtOnce,
}

const AMOUNT: i64 = 9_900;

/// A hang ends with this. Long enough that no other case runs into it on a slow machine.
const UPSTREAM_TIMEOUT_MS: &str = "6000";

#[tokio::test(flavor = "multi_thread")]
async fn replay_on_sqlite() {
    every_case(LedgerKind::Sqlite, "replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_on_postgres() {
    every_case(LedgerKind::Postgres, "replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_on_sqlite() {
    every_case(LedgerKind::Sqlite, "reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_on_postgres() {
    every_case(LedgerKind::Postgres, "reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_on_sqlite() {
    every_case(LedgerKind::Sqlite, "flag").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_on_postgres() {
    every_case(LedgerKind::Postgres, "flag").await;
}

/// A customer of their own for each combination, all at work on one proxy.
async fn every_case(ledger: LedgerKind, policy: &'static str) {
    let settings = [
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", UPSTREAM_TIMEOUT_MS),
        // The breaker has tests of its own.
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
    ];
    let world = Arc::new(World::start(ledger, 1, &settings).await);
    let key = world
        .issue(10_000_000, json!({ "on_duplicate": policy }))
        .await;
    let mut running = JoinSet::new();
    for case in &CASES {
        for keys in [Keys::Same, Keys::Fresh, Keys::Missing] {
            for timing in [Timing::InTurn, Timing::AtOnce] {
                let run = Run {
                    world: Arc::clone(&world),
                    key: key.clone(),
                    policy,
                    case,
                    keys,
                    customer: format!("cus_x_{}_{keys:?}_{timing:?}", case.name),
                };
                running.spawn(async move {
                    match timing {
                        Timing::InTurn => run.in_turn().await,
                        Timing::AtOnce => run.at_once().await,
                    }
                });
            }
        }
    }
    running.join_all().await;
    let world = Arc::into_inner(world).unwrap();
    when_the_dust_has_settled(world, &key).await;
}

/// Held is exactly what Stripe answered with a stored 500: it may have charged, and it will say nothing
/// else under that key (design §3.2). Everything else is known. What it did charge the reconciler finds;
/// of the rest nobody knows, since absence is no proof (§3.4).
async fn when_the_dust_has_settled(mut world: World, key: &VaultKey) {
    world.pass_deadlines().await;
    let operator = world.operator();
    assert!(operator.reservations("state=in_flight").await.is_empty());
    let held = operator.reservations("state=held").await;
    let stored: Vec<&Case> = CASES
        .iter()
        .filter(|case| matches!(case.then, Then::Stored500 { .. }))
        .collect();
    assert_eq!(held.len(), stored.len() * 6, "{held:#?}");
    let mut charged = 0;
    for row in &held {
        let customer = row["customer"].as_str().unwrap();
        let by_right = |case: &&Case| customer.starts_with(&format!("cus_x_{}_", case.name));
        assert!(stored.iter().any(by_right), "{row}");
        charged += world.sandbox.charges_of(customer).len();
    }
    restart_with_the_reconciler(&mut world).await;
    let operator = world.operator();
    let held = until("what was charged is found", async || {
        let left = operator.reservations("state=held").await;
        (left.len() == held.len() - charged).then_some(left)
    })
    .await;
    let cap = world.cap(key, "usd").await;
    let reserved = AMOUNT * i64::try_from(held.len()).unwrap();
    assert_eq!(cap["reserved"], reserved, "{cap}");
    assert_eq!(cap["settled"], world.taken(), "{cap}");
    for row in &held {
        release_by_hand(&world, row).await;
    }
    world.assert_balanced(key).await;
}

/// The reconciler was off, so that each answer's own proof was seen.
async fn restart_with_the_reconciler(world: &mut World) {
    world.apps.pop().unwrap().stop().await.unwrap();
    for (name, value) in [
        ("SPENDCAP_RECONCILE_ENABLED", "true"),
        ("SPENDCAP_RECONCILE_INTERVAL_MS", "50"),
        ("SPENDCAP_RECONCILE_READS_PER_SECOND", "100"),
    ] {
        world.environment.push((name.to_owned(), value.to_owned()));
    }
    world.add_replica().await;
}

/// The operator knows from Stripe's support that nothing was made.
async fn release_by_hand(world: &World, row: &Value) {
    let made = world.sandbox.charges_of(row["customer"].as_str().unwrap());
    assert!(made.is_empty(), "{row}");
    let released = json!({ "state": "released", "reason": "Stripe's support" });
    let path = format!("/v1/reservations/{}/resolve", row["id"].as_str().unwrap());
    let resolved = world.admin(Method::POST, &path, Some(released)).await;
    resolved.expect(200);
}
