//! While the first request of an intent is on its way, no second one leaves, under any policy.

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use std::collections::BTreeSet;

use crate::support::patience::{until, within};
use crate::support::{Charge, LedgerKind, World};

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    under_every_policy(LedgerKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    under_every_policy(LedgerKind::Postgres).await;
}

async fn under_every_policy(ledger: LedgerKind) {
    for policy in ["replay", "reject", "flag"] {
        for keys in [["a", "a", "a"], ["a", "b", "c"], ["", "", ""]] {
            repeats_wait_for_the_first(ledger, policy, keys).await;
        }
    }
}

async fn repeats_wait_for_the_first(ledger: LedgerKind, policy: &str, keys: [&str; 3]) {
    let world = World::on(ledger).await;
    let key = world
        .issue(100_000, json!({ "on_duplicate": policy }))
        .await;
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    world.sandbox.add_fault(gate);
    let ask = |name: &'static str| {
        let charge = Charge {
            idempotency_key: Some(name).filter(|name| !name.is_empty()),
            ..Charge::default()
        };
        world.charge(&key, charge)
    };
    let keys = keys.map(|name| match name {
        "a" => "a",
        "b" => "b",
        "c" => "c",
        _ => "",
    });
    let first = async { ask(keys[0]).await.expect(200) };
    let repeats = async {
        within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
        tokio::join!(ask(keys[1]), ask(keys[2]))
    };
    let release = async {
        within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
        until_flagged(&world, 2).await;
        assert_eq!(posts(&world), 1, "{policy} {keys:?}");
        world.sandbox.release_gate();
    };
    let (first, (second, third), ()) = tokio::join!(first, repeats, release);
    let mut charged = BTreeSet::from([first.json()["id"].to_string()]);
    for repeat in [second, third] {
        if policy == "reject" && keys[1] == "b" {
            assert_eq!(repeat.expect(400).code(), "duplicate_customer_period");
            continue;
        }
        charged.insert(repeat.expect(200).json()["id"].to_string());
    }
    let lawful = if policy == "flag" && keys[1] == "b" {
        3
    } else {
        1
    };
    assert_eq!(charged.len(), lawful, "{policy} {keys:?}");
    assert_eq!(world.made().len(), lawful, "{policy} {keys:?}");
    world.assert_balanced(&key).await;
}

/// Waits until the ledger has seen so many repeats.
async fn until_flagged(world: &World, repeats: i64) {
    until("both repeats are seen", async || {
        let flags = world.admin(Method::GET, "/v1/flags?limit=100", None).await;
        let flags = flags.expect(200).json();
        let flags = flags["data"].as_array().unwrap();
        let seen: i64 = flags.iter().filter_map(|flag| flag["count"].as_i64()).sum();
        (seen >= repeats).then_some(())
    })
    .await;
}

fn posts(world: &World) -> usize {
    let requests = world.sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}
