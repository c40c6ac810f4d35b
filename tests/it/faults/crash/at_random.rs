//! Killed at random moments under load, again and again; each time everything is repeated and counted.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tokio::task::JoinSet;

use crate::support::patience::until;
use crate::support::random::{Random, rounds};
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, Outside, VaultKey};

/// `SPENDCAP_TEST_ROUNDS` runs more.
const ROUNDS: u64 = 20;
const CUSTOMERS_PER_ROUND: u64 = 12;
const AMOUNT: i64 = 9_900;

/// Longer than a charge takes here, so that some rounds end with everything answered.
const KILL_WITHIN_MS: u64 = 400;

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    one_charge_each(LedgerKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    one_charge_each(LedgerKind::Postgres).await;
}

async fn one_charge_each(ledger: LedgerKind) {
    let (mut random, rounds) = (Random::seeded(), rounds(ROUNDS));
    let settings = [("SPENDCAP_PROXY_REPEAT_WAIT_MS", "200")];
    let mut outside = Outside::start(ledger, &settings).await;
    let customers = i64::try_from(rounds * CUSTOMERS_PER_ROUND).unwrap();
    let key = outside.operator();
    let key = key
        .issue(customers * AMOUNT, json!({ "headroom": "1" }))
        .await;
    for round in 0..rounds {
        // Now and then Stripe takes its time, so that some are killed on either side of the commit.
        outside.sandbox.clear_faults();
        let at = if random.below(2) == 0 {
            Moment::BeforeCommit
        } else {
            Moment::AfterCommit
        };
        let ms = random.below(KILL_WITHIN_MS);
        outside
            .sandbox
            .add_fault(Fault::new(FaultKind::Slow { ms, at }).method("POST"));
        let load = spawn_load(&outside, &key, round);
        tokio::time::sleep(Duration::from_millis(random.below(KILL_WITHIN_MS))).await;
        outside.daemon.kill();
        let answered = load.join_all().await;
        outside.restart().await;
        outside.sandbox.clear_faults();
        outside.pass_deadlines().await;
        agree(&outside, &key, round, answered.into_iter().flatten()).await;
    }
}

/// After repeats every customer of the round has one charge, whoever was answered was told of it, and the
/// ledger says what the sandbox says.
async fn agree(
    outside: &Outside,
    key: &VaultKey,
    round: u64,
    answered: impl Iterator<Item = String>,
) {
    let mut charges = BTreeSet::new();
    for customer in customers_of(round) {
        let repeat = until_known(outside, key, &customer).await;
        let made = outside.sandbox.charges_of(&customer);
        assert_eq!(made.len(), 1, "{customer} {made:?}");
        assert_eq!(repeat, made[0].id, "{customer}");
        charges.insert(repeat);
    }
    for charge in answered {
        assert!(charges.contains(&charge), "{charge}");
    }
    let held = outside.operator().reservations("state=held").await;
    assert!(held.is_empty(), "{held:?}");
    outside.assert_balanced(key).await;
}

fn customers_of(round: u64) -> impl Iterator<Item = String> {
    (0..CUSTOMERS_PER_ROUND).map(move |n| format!("cus_{round}_{n}"))
}

/// Two replicas with fresh keys; each gives the charge it was answered with.
fn spawn_load(outside: &Outside, key: &VaultKey, round: u64) -> JoinSet<Option<String>> {
    let mut load = JoinSet::new();
    for customer in customers_of(round) {
        for replica in ["a", "b"] {
            let (client, url) = (outside.client.clone(), outside.proxy_url());
            let (secret, customer) = (key.secret.clone(), customer.clone());
            load.spawn(async move {
                let idempotency_key = format!("{customer}-{replica}");
                let charge = Charge {
                    customer: &customer,
                    idempotency_key: Some(&idempotency_key),
                    ..Charge::default()
                };
                let answer = try_charge(&client, &url, &secret, charge).await.ok()?;
                let charge = (answer.status == 200).then(|| answer.json())?;
                Some(charge["id"].as_str().unwrap().to_owned())
            });
        }
    }
    load
}

/// Repeats under a fresh key while the answer says that it may come.
async fn until_known(outside: &Outside, key: &VaultKey, customer: &str) -> String {
    let mut attempt = 0;
    until(&format!("{customer} is answered"), async || {
        attempt += 1;
        let idempotency_key = format!("{customer}-again-{attempt}");
        let charge = Charge {
            customer,
            idempotency_key: Some(&idempotency_key),
            ..Charge::default()
        };
        let answer = outside.charge(key, charge).await;
        if answer.status == 200 {
            return Some(answer.json()["id"].as_str().unwrap().to_owned());
        }
        let retry = answer.header("stripe-should-retry");
        assert_eq!(retry, "true", "{}", answer.text);
        None
    })
    .await
}
