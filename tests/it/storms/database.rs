//! PostgreSQL is killed, cut off or made to hang at random moments under load, again and again. After each
//! round the sandbox's charges and the ledger agree, and no customer was charged twice.

use std::time::Duration;

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment, Sandbox, SandboxSettings};
use tokio::task::JoinSet;

use crate::support::cluster::Cluster;
use crate::support::fleet::Fleet;
use crate::support::random::{Random, rounds};
use crate::support::relay::Relay;
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey};

/// `SPENDCAP_TEST_ROUNDS` runs more.
const ROUNDS: u64 = 9;
const CUSTOMERS_PER_ROUND: u64 = 12;
const REPLICAS: usize = 2;
const AMOUNT: i64 = 9_900;

/// Longer than a charge takes here, so that some rounds end with everything answered.
const BREAK_WITHIN_MS: u64 = 300;
const AWAY_UP_TO_MS: u64 = 500;

#[tokio::test(flavor = "multi_thread")]
async fn killed_cut_off_or_hanging_at_random_it_loses_nothing() {
    let (mut random, rounds) = (Random::seeded(), rounds(ROUNDS));
    let mut cluster = Cluster::start().await;
    let relay = Relay::to(cluster.address());
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let settings = [("SPENDCAP_PROXY_REPEAT_WAIT_MS", "200")];
    let mut fleet = Fleet::over(sandbox, &Cluster::url_at(relay.addr()), &settings);
    for _ in 0..REPLICAS {
        fleet.add(&[]).await;
    }
    let customers = i64::try_from(rounds * CUSTOMERS_PER_ROUND).unwrap();
    let exactly = json!({ "headroom": "1" });
    let key = fleet.issue(customers * AMOUNT, exactly).await;
    for round in 0..rounds {
        let at = [Moment::BeforeCommit, Moment::AfterCommit][usize::from(random.below(2) == 0)];
        let ms = random.below(BREAK_WITHIN_MS);
        let slow = Fault::new(FaultKind::Slow { ms, at }).method("POST");
        fleet.sandbox.add_fault(slow);
        let load = load(&fleet, &key, round);
        tokio::time::sleep(Duration::from_millis(random.below(BREAK_WITHIN_MS))).await;
        let away = Duration::from_millis(random.below(AWAY_UP_TO_MS));
        match round % 3 {
            0 => {
                cluster.kill().await;
                tokio::time::sleep(away).await;
                cluster.run_again().await;
                relay.retarget(cluster.address());
            }
            1 => {
                relay.cut();
                tokio::time::sleep(away).await;
            }
            _ => {
                relay.stall();
                tokio::time::sleep(away).await;
            }
        }
        relay.mend();
        let answered = load.join_all().await;
        fleet.sandbox.clear_faults();
        agree(&fleet, &key, round, answered).await;
    }
}

/// Each customer at each replica at once, under keys of their own; gives the charges that were answered.
fn load(fleet: &Fleet, key: &VaultKey, round: u64) -> JoinSet<Option<String>> {
    let mut load = JoinSet::new();
    for customer in customers_of(round) {
        for replica in 0..REPLICAS {
            let (client, secret) = (fleet.client.clone(), key.secret.clone());
            let url = format!("http://{}", fleet.proxy(replica));
            let customer = customer.clone();
            load.spawn(async move {
                let idempotency_key = format!("{customer}-{replica}");
                let charge = Charge {
                    customer: &customer,
                    idempotency_key: Some(&idempotency_key),
                    ..Charge::default()
                };
                let answer = try_charge(&client, &url, &secret, charge).await.unwrap();
                let charge = (answer.status == 200).then(|| answer.json())?;
                Some(charge["id"].as_str().unwrap().to_owned())
            });
        }
    }
    load
}

async fn agree(fleet: &Fleet, key: &VaultKey, round: u64, answered: Vec<Option<String>>) {
    let mut made = Vec::new();
    for (n, customer) in customers_of(round).enumerate() {
        let known = fleet.until_known(n % REPLICAS, key, &customer).await;
        let charges = fleet.sandbox.charges_of(&customer);
        assert_eq!(charges.len(), 1, "{customer} {charges:?}");
        assert_eq!(known, charges[0].id, "{customer}");
        made.push(known);
    }
    for charge in answered.iter().flatten() {
        assert!(made.contains(charge), "{charge}");
    }
    // What was reserved under a commit that nobody saw confirmed is given back, or held at its deadline.
    fleet.bring_deadlines_forward().await;
    fleet.until_state(0, "in_flight", 0).await;
    fleet.until_state(0, "held", 0).await;
    for index in 0..REPLICAS {
        fleet.assert_balanced(index, key).await;
    }
}

fn customers_of(round: u64) -> impl Iterator<Item = String> {
    (0..CUSTOMERS_PER_ROUND).map(move |n| format!("cus_{round}_{n}"))
}
