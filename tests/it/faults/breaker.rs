//! The breaker: an outage of Stripe costs ten held rows, not ten thousand (design §4).

use std::sync::Arc;

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};
use tokio::task::JoinSet;

use crate::support::http::Reply;
use crate::support::patience::until;
use crate::support::{Charge, LedgerKind, VaultKey, World};

/// The default of `breaker.unknown_outcomes_max`.
const UNKNOWN_MAX: usize = 10;
const SETTINGS: [(&str, &str); 1] = [("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", "20")];

#[tokio::test(flavor = "multi_thread")]
async fn it_opens_after_ten_unknown_outcomes_and_a_read_closes_it() {
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let world = World::start(ledger, 1, &SETTINGS).await;
        let more = json!({ "permissions": ["charges:write", "charges:read"] });
        let key = world.issue(1_000_000, more).await;
        let before = charge(&world, &key, "before").await.expect(200).json();
        break_stripe(&world);
        for n in 0..UNKNOWN_MAX {
            let lost = charge(&world, &key, &format!("lost_{n}")).await;
            assert_eq!(lost.expect(503).code(), "");
        }
        let sent = posts(&world);
        for customer in ["refused", "lost_0", "before"] {
            let refused = charge(&world, &key, customer).await.expect(503);
            assert_eq!(refused.code(), "upstream_unhealthy");
            assert_eq!(refused.json()["error"]["type"], "api_error");
            assert_eq!(refused.header("stripe-should-retry"), "true");
        }
        assert_eq!(posts(&world), sent);
        assert_eq!(held(&world).await, UNKNOWN_MAX);
        let rows = world.operator().reservations("customer=cus_refused").await;
        assert!(rows.is_empty(), "{rows:?}");
        // Reads go on.
        let path = format!("/v1/charges/{}", before["id"].as_str().unwrap());
        world.get(&key, &path).await.expect(200);

        world.sandbox.clear_faults();
        until_closed(&world, &key, "refused").await;
        for n in 0..UNKNOWN_MAX {
            charge(&world, &key, &format!("lost_{n}")).await.expect(200);
        }
        assert_eq!(world.made().len(), UNKNOWN_MAX + 2);
        world.assert_balanced(&key).await;
        // It counts from nothing again.
        break_stripe(&world);
        for n in 0..UNKNOWN_MAX {
            let lost = charge(&world, &key, &format!("again_{n}")).await;
            assert_eq!(lost.expect(503).code(), "");
        }
        let refused = charge(&world, &key, "again").await.expect(503);
        assert_eq!(refused.code(), "upstream_unhealthy");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_it_holds_ten_and_what_is_on_its_way() {
    const CLIENTS: usize = 6;
    for ledger in [LedgerKind::Sqlite, LedgerKind::Postgres] {
        let world = Arc::new(World::start(ledger, 1, &SETTINGS).await);
        let key = world.issue(10_000_000, json!({})).await;
        break_stripe(&world);
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (world, key) = (Arc::clone(&world), key.clone());
            clients.spawn(async move {
                for n in 0..20 {
                    let refused = charge(&world, &key, &format!("{client}_{n}")).await;
                    assert_eq!(refused.status, 503, "{}", refused.text);
                }
            });
        }
        clients.join_all().await;
        let held = held(&world).await;
        assert!(
            (UNKNOWN_MAX..UNKNOWN_MAX + CLIENTS).contains(&held),
            "{held}"
        );
        assert_eq!(posts(&world), held);
        let cap = world.cap(&key, "usd").await;
        assert_eq!(cap["reserved"], 9_900 * i64::try_from(held).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_outcome_starts_the_count_over() {
    let world = World::start(LedgerKind::Sqlite, 1, &SETTINGS).await;
    let key = world.issue(10_000_000, json!({})).await;
    for (round, known) in [
        None,
        Some(FaultKind::Decline),
        Some(FaultKind::RateLimit429),
        None,
    ]
    .into_iter()
    .enumerate()
    {
        for n in 1..UNKNOWN_MAX {
            let customer = format!("{round}_{n}");
            let fault = Fault::new(FaultKind::Status503).once();
            world
                .sandbox
                .add_fault(fault.customer(format!("cus_{customer}")));
            let lost = charge(&world, &key, &customer).await.expect(503);
            assert_eq!(lost.code(), "", "{customer}");
        }
        let customer = format!("{round}_known");
        if let Some(known) = known {
            let fault = Fault::new(known).once();
            world
                .sandbox
                .add_fault(fault.customer(format!("cus_{customer}")));
        }
        let answer = charge(&world, &key, &customer).await;
        assert_ne!(answer.status, 503, "{}", answer.text);
    }
}

/// Charges get no proof, and neither does the breaker's probe; other reads are answered.
fn break_stripe(world: &World) {
    let down = || Fault::new(FaultKind::Status503);
    world.sandbox.add_fault(down().method("POST"));
    world.sandbox.add_fault(down().path_prefix("/v1/account"));
}

/// A client that does what `Stripe-Should-Retry` says.
async fn until_closed(world: &World, key: &VaultKey, customer: &str) {
    until("the breaker is closed", async || {
        let answer = charge(world, key, customer).await;
        if answer.status == 200 {
            return Some(());
        }
        assert_eq!(answer.expect(503).code(), "upstream_unhealthy");
        None
    })
    .await;
}

async fn charge(world: &World, key: &VaultKey, customer: &str) -> Reply {
    let customer = format!("cus_{customer}");
    let charge = Charge {
        customer: &customer,
        idempotency_key: Some(&customer),
        ..Charge::default()
    };
    world.charge(key, charge).await
}

async fn held(world: &World) -> usize {
    let path = "/v1/reservations?state=held&limit=100";
    let list = world.admin(Method::GET, path, None).await.expect(200);
    list.json()["data"].as_array().unwrap().len()
}

fn posts(world: &World) -> usize {
    let requests = world.sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}
