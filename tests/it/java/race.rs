//! Three replicas of a billing service, each a JVM with its own executor or its own in-memory Quartz, bill
//! the same 500 customers at the same moment. What is counted is the sandbox's books.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use spendcap::clock::Clock;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;

use super::jvm::{Call, Jvm};
use crate::support::daemon::Daemon;
use crate::support::{LedgerKind, World};

const CUSTOMERS: usize = 500;
const REPLICAS: usize = 3;
const AMOUNT_MINOR: i64 = 9_900;
/// 500 × $99.00; the cap is ten percent above it.
const EXPECTED_TOTAL_MINOR: i64 = 4_950_000;
/// What each replica runs: a fresh key for each send, lost answers and statuses repeated.
const MODE: &str = "retries-lost-answers-and-statuses";

#[tokio::test(flavor = "multi_thread")]
async fn straight_each_customer_is_charged_three_times() {
    let world = World::on(LedgerKind::Sqlite).await;
    let urls = vec![world.sandbox.base_url(); REPLICAS];
    for how in ["executor", "quartz"] {
        world.sandbox.reset();
        let calls = race(&urls, SECRET_KEY_DEFAULT, how).await;
        every_call_ends_with_a_charge(&world, &calls, REPLICAS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn through_one_spendcap_on_sqlite_each_is_charged_once() {
    spendcap::cli::raise_open_files();
    let world = World::on(LedgerKind::Sqlite).await;
    let urls = vec![world.proxy_url(0); REPLICAS];
    charged_once(&world, &urls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn through_three_spendcaps_on_postgres_each_is_charged_once() {
    // The world's own proxy issues the keys and shows the books; each JVM has a process of its own.
    let world = World::on(LedgerKind::Postgres).await;
    let folder = tempfile::tempdir().unwrap();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Daemon::start(folder.path(), &world.environment).await);
    }
    let url = |replica: &Daemon| format!("http://{}", replica.proxy);
    let urls: Vec<String> = replicas.iter().map(url).collect();
    charged_once(&world, &urls).await;
}

async fn charged_once(world: &World, urls: &[String]) {
    for how in ["executor", "quartz"] {
        world.sandbox.reset();
        // Another period for each, or the second would find the first one's charges.
        let more = json!({ "billing_period": how });
        let key = world.issue(EXPECTED_TOTAL_MINOR, more).await;
        let calls = race(urls, &key.secret, how).await;
        every_call_ends_with_a_charge(world, &calls, 1);
        world.assert_balanced(&key).await;
        let operator = world.operator();
        let duplicates = operator.flagged(&key, "duplicate_customer_period").await;
        assert_eq!(duplicates, 1_000, "{how}");
    }
}

/// One JVM for each URL; they start together.
async fn race(urls: &[String], api_key: &str, how: &str) -> Vec<Call> {
    let customers: Vec<String> = (0..CUSTOMERS).map(|n| format!("cus_race{n:03}")).collect();
    let mut arguments = vec![how, MODE];
    arguments.extend(customers.iter().map(String::as_str));
    let start = |url: &String| Jvm::start(url, api_key, &arguments);
    let mut jvms: Vec<Jvm> = urls.iter().map(start).collect();
    for jvm in &mut jvms {
        jvm.ready().await;
    }
    let when = soon();
    for jvm in &mut jvms {
        jvm.go(&when);
    }
    let mut calls = Vec::new();
    for jvm in jvms {
        calls.extend(jvm.ended().await);
    }
    calls
}

/// One to two seconds from now: time enough for three schedulers to take it, mostly.
fn soon() -> String {
    let then = Clock::system().now().unix_seconds() + 2;
    Timestamp::from_second(then).unwrap().to_string()
}

/// All 1,500 calls end with 200 and a charge of their own customer, who has `charges` of them.
fn every_call_ends_with_a_charge(world: &World, calls: &[Call], charges: usize) {
    let made = world.made();
    let mut by_id = BTreeMap::new();
    let mut by_customer: BTreeMap<&str, usize> = BTreeMap::new();
    for charge in &made {
        assert_eq!(charge.amount_captured, AMOUNT_MINOR);
        let customer = charge.customer.as_deref().unwrap();
        by_id.insert(charge.id.as_str(), customer);
        *by_customer.entry(customer).or_default() += 1;
    }
    assert_eq!(made.len(), CUSTOMERS * charges);
    assert_eq!(by_customer.len(), CUSTOMERS);
    assert!(by_customer.values().all(|count| *count == charges));
    assert_eq!(calls.len(), CUSTOMERS * REPLICAS);
    for call in calls {
        assert_eq!(call.status, 200, "{call:?}");
        let customer = by_id.get(call.charge.as_str());
        assert_eq!(customer, Some(&call.customer.as_str()), "{call:?}");
    }
    // Whoever was given a charge that existed was told so.
    let replayed = calls.iter().filter(|call| call.replayed).count();
    assert_eq!(replayed, CUSTOMERS * (REPLICAS - charges));
}
