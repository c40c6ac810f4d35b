//! One replica stands still in the middle of a transaction, with a vault key's lock: the others wait for
//! it no longer than five seconds, and nothing is lost or charged twice by it.

use std::time::{Duration, Instant};

use serde_json::json;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tokio::task::JoinSet;

use crate::support::fleet::Fleet;
use crate::support::http::Reply;
use crate::support::postgres::fresh_database;
use crate::support::raw::RawClient;
use crate::support::relay::{Loss, Relay};
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey};

/// What a transaction may stand still before the database ends it, and how long a lock is waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Time for a busy machine.
const SLACK: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_frozen_in_its_transaction_blocks_nobody_for_longer_than_five_seconds() {
    let url = fresh_database().await;
    let (relay, behind_relay) = relay_to(&url);
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let mut fleet = Fleet::over(sandbox, &url, &[]);
    fleet.add(&[("SPENDCAP_LEDGER_URL", &behind_relay)]).await;
    fleet.add(&[]).await;
    fleet.add(&[]).await;
    let key = fleet.issue(10_000_000, json!({})).await;
    relay.trap().set("write::new_reservations", Loss::Stuck);
    let mut client = RawClient::charge(fleet.proxy(0), &key, &charge("cus_stuck", "stuck")).await;
    relay.trap().sprung().await;
    fleet.replicas[0].freeze();

    for (answer, took) in ask_all(&fleet, &key, [1, 2]).await {
        assert!(took < LIMIT + SLACK, "{took:?} {}", answer.text);
        answer.expect(200);
    }
    // The lock is free, so nobody waits any more.
    let began = Instant::now();
    fleet
        .charge(1, &key, charge("cus_next", "next"))
        .await
        .expect(200);
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());

    fleet.replicas[0].thaw();
    let answer = client.read_until("}").await;
    let told = crate::support::raw::status(&answer);
    assert!([200, 503].contains(&told), "{answer}");
    let again = fleet.charge(0, &key, charge("cus_stuck", "again")).await;
    again.expect(200);
    assert_eq!(fleet.sandbox.charges_of("cus_stuck").len(), 1);
    for index in 0..3 {
        fleet.assert_balanced(index, &key).await;
    }
}

/// A session of somebody else's, such as an operator's, is not ours to end: requests that need its lock
/// are refused in time and go through once it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_lock_on_a_vault_key_costs_five_seconds_and_then_a_refusal() {
    let fleet = Fleet::start(2, &[]).await;
    let key = fleet.issue(10_000_000, json!({})).await;
    let other = fleet
        .issue(10_000_000, json!({ "namespace": "other" }))
        .await;
    let mut operator = PgConnection::connect(&fleet.ledger_url).await.unwrap();
    operator.execute("BEGIN").await.unwrap();
    let lock = "SELECT id FROM vault_keys WHERE id = $1 FOR UPDATE";
    let locked = sqlx::query(lock).bind(&key.id).fetch_one(&mut operator);
    locked.await.unwrap();

    let began = Instant::now();
    let refused = fleet
        .charge(0, &key, charge("cus_1", "k1"))
        .await
        .expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    assert!(began.elapsed() < LIMIT + SLACK, "{:?}", began.elapsed());
    let began = Instant::now();
    fleet
        .charge(1, &other, charge("cus_2", "k2"))
        .await
        .expect(200);
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    let all = ask_all(&fleet, &key, [0, 1]);
    for (answer, took) in all.await {
        // A request may come just after a batch began to wait.
        assert!(took < 2 * LIMIT + SLACK, "{took:?}");
        assert_eq!(answer.expect(503).code(), "ledger_unavailable");
    }
    assert_eq!(fleet.sandbox.charges().len(), 1);

    operator.close().await.unwrap();
    for (answer, _) in ask_all(&fleet, &key, [0, 1]).await {
        answer.expect(200);
    }
}

/// Some charges at once at each of two replicas, and how long each took.
async fn ask_all(fleet: &Fleet, key: &VaultKey, at: [usize; 2]) -> Vec<(Reply, Duration)> {
    let mut asked = JoinSet::new();
    for n in 0..10 {
        let index = at[n % at.len()];
        let (client, secret) = (fleet.client.clone(), key.secret.clone());
        let url = format!("http://{}", fleet.proxy(index));
        asked.spawn(async move {
            let began = Instant::now();
            let customer = format!("cus_{n}");
            let answer = try_charge(&client, &url, &secret, charge(&customer, &customer)).await;
            (answer.unwrap(), began.elapsed())
        });
    }
    asked.join_all().await
}

/// A relay before a database, and the database's URL through it.
fn relay_to(url: &str) -> (Relay, String) {
    let (server, database) = url.rsplit_once('/').unwrap();
    let (login, host) = server.rsplit_once('@').unwrap();
    let relay = Relay::to_postgres(host.parse().unwrap());
    let behind = format!("{login}@{}/{database}?sslmode=disable", relay.addr());
    (relay, behind)
}

fn charge<'a>(customer: &'a str, idempotency_key: &'a str) -> Charge<'a> {
    Charge {
        customer,
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}
