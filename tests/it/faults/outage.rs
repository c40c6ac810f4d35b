//! The ledger goes away and comes back: money is refused meanwhile, nothing reaches Stripe, nothing is
//! lost, and nobody has to help.

mod commit;
mod disk;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::patience::{until, within};
use crate::support::postgres::fresh_database;
use crate::support::relay::Relay;
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey, World};

/// The default of `proxy.settle_wait_ms`, and time for a slow machine.
const SETTLE_WAIT: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn money_is_refused_while_the_ledger_is_cut_off() {
    refused_until_it_is_back(Relay::cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_refused_while_the_ledger_does_not_answer() {
    refused_until_it_is_back(Relay::stall).await;
}

async fn refused_until_it_is_back(go_away: fn(&Relay)) {
    let (world, relay) = behind_a_relay().await;
    let more = json!({ "permissions": ["charges:write", "charges:read"] });
    let key = world.issue(100_000, more).await;
    let stranger = world.issue(100_000, json!({ "namespace": "other" })).await;
    let before = world.charge(&key, charge("cus_1", "k1")).await.expect(200);
    let posts_before = posts(&world);

    go_away(&relay);
    let refused = tokio::join!(
        world.charge(&key, charge("cus_2", "k2")),
        world.charge(&stranger, charge("cus_2", "k3")),
        world.charge(&key, charge("cus_1", "k1")),
    );
    for refused in <[_; 3]>::from(refused) {
        let refused = refused.expect(503);
        assert_eq!(refused.code(), "ledger_unavailable");
        assert_eq!(refused.header("stripe-should-retry"), "true");
    }
    assert_eq!(posts(&world), posts_before);
    let ready = world.admin(Method::GET, "/readyz", None).await.expect(503);
    assert_eq!(ready.json()["status"], "unavailable");
    world.admin(Method::GET, "/healthz", None).await.expect(200);
    // A key that is known may go on reading.
    let path = format!("/v1/charges/{}", before.json()["id"].as_str().unwrap());
    world.get(&key, &path).await.expect(200);

    relay.mend();
    until_ready(&world).await;
    world.charge(&key, charge("cus_2", "k2")).await.expect(200);
    world
        .charge(&key, charge("cus_1", "again"))
        .await
        .expect(200);
    assert_eq!(world.made().len(), 2);
    world.assert_balanced(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_wait_for_ever_and_its_settle_is_stored_later() {
    tokio::join!(settled_later(Relay::cut), settled_later(Relay::stall));
}

async fn settled_later(go_away: fn(&Relay)) {
    let (world, relay) = behind_a_relay().await;
    let key = world.issue(9_000, json!({})).await;
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    world.sandbox.add_fault(gate);
    let released_at = async {
        within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
        go_away(&relay);
        world.sandbox.release_gate();
        Instant::now()
    };
    let first = world.charge(&key, charge("cus_1", "k1"));
    let (answer, released_at) = tokio::join!(first, released_at);
    assert!(released_at.elapsed() < SETTLE_WAIT + SLACK);
    assert_eq!(answer.expect(200).json()["id"], world.made()[0].id.as_str());
    let early = world.charge(&key, charge("cus_1", "k1")).await.expect(503);
    assert_eq!(early.code(), "ledger_unavailable");

    relay.mend();
    until_state(&world, &key, "settled").await;
    world.charge(&key, charge("cus_1", "k2")).await.expect(200);
    let refused = world.charge(&key, charge("cus_2", "k3")).await.expect(402);
    assert_eq!(refused.code(), "spend_cap_reached");
    assert_eq!(world.made().len(), 1);
    world.assert_balanced(&key).await;
}

/// A run begins under a key that this replica does not know while the ledger does not answer: nobody queues
/// up behind the others' attempts to read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_under_an_unknown_key_is_refused_in_bounded_time() {
    let (world, relay) = behind_a_relay().await;
    let stranger = world.issue(100_000, json!({})).await;
    let posts_before = posts(&world);
    relay.stall();
    let began = Instant::now();
    let mut crowd = JoinSet::new();
    for _ in 0..20 {
        let (client, url) = (world.client.clone(), world.proxy_url(0));
        let secret = stranger.secret.clone();
        crowd.spawn(async move {
            let charge = charge("cus_1", "k1");
            try_charge(&client, &url, &secret, charge).await.unwrap()
        });
    }
    for refused in within("answers", crowd.join_all()).await {
        assert_eq!(refused.expect(503).code(), "ledger_unavailable");
    }
    // One turn and one read, not twenty of them.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(posts(&world), posts_before);
}

/// A world whose way to PostgreSQL is a relay.
pub(crate) async fn behind_a_relay() -> (World, Relay) {
    let url = fresh_database().await;
    let (server, database) = url.rsplit_once('/').unwrap();
    let (login, host) = server.rsplit_once('@').unwrap();
    let host: SocketAddr = host.parse().unwrap();
    let relay = Relay::to_postgres(host);
    let url = format!("{login}@{}/{database}?sslmode=disable", relay.addr());
    let world = World::over(&url, TempDir::new().unwrap(), 1, &[]).await;
    (world, relay)
}

async fn until_ready(world: &World) {
    until("spendcap is ready", async || {
        let ready = world.admin(Method::GET, "/readyz", None).await;
        (ready.status == 200).then_some(())
    })
    .await;
}

/// Waits until the key's only reservation is in `state`.
async fn until_state(world: &World, key: &VaultKey, state: &str) {
    let path = format!("/v1/reservations?vault_key={}", key.id);
    until(&format!("it is {state}"), async || {
        let list = world.admin(Method::GET, &path, None).await;
        let list = (list.status == 200).then(|| list.json())?;
        assert!(list["data"].as_array().unwrap().len() <= 1, "{list}");
        (list["data"][0]["state"] == state).then_some(())
    })
    .await;
}

fn charge<'a>(customer: &'a str, idempotency_key: &'a str) -> Charge<'a> {
    Charge {
        customer,
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}

fn posts(world: &World) -> usize {
    let requests = world.sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}
