//! The race: three replicas of a billing job ask for the same 500 charges at the same moment. Every
//! duplicate policy, with fresh, shared and no idempotency keys, on SQLite and on three processes that
//! share one PostgreSQL. What is counted is the sandbox's books.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const CUSTOMERS: usize = 500;
const REPLICAS: usize = 3;
const AMOUNT_MINOR: i64 = 9_900;
/// 500 × $99.00; the cap is ten percent above it and fits 550 charges.
const EXPECTED_TOTAL_MINOR: i64 = 4_950_000;
/// A server takes at most 200 requests at once on one HTTP/2 connection; with three for each replica
/// all 1,500 are under way together.
const CONNECTIONS: usize = 3;

/// What the replicas send as `Idempotency-Key`.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Keys {
    /// Each request its own, as a retry interceptor does.
    Fresh,
    /// One per customer, the same in every replica.
    Stable,
    Missing,
}

/// How many answers there were of each status and code.
type Answers = BTreeMap<(u16, String), usize>;

#[tokio::test(flavor = "multi_thread")]
async fn replay_makes_500_charges_and_answers_everyone_on_sqlite() {
    on_sqlite("replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_makes_500_charges_and_refuses_fresh_keys_on_sqlite() {
    on_sqlite("reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_stops_fresh_keys_at_the_cap_on_sqlite() {
    on_sqlite("flag").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_makes_500_charges_and_answers_everyone_on_three_processes() {
    on_three_processes("replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_makes_500_charges_and_refuses_fresh_keys_on_three_processes() {
    on_three_processes("reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_stops_fresh_keys_at_the_cap_on_three_processes() {
    on_three_processes("flag").await;
}

async fn on_sqlite(policy: &str) {
    spendcap::cli::raise_open_files();
    let world = World::on(LedgerKind::Sqlite).await;
    let urls = vec![world.proxy_url(0); REPLICAS];
    races(&world, &urls, policy).await;
}

async fn on_three_processes(policy: &str) {
    spendcap::cli::raise_open_files();
    // The world's own proxy issues the keys and shows the books; the race goes through the processes.
    let world = World::on(LedgerKind::Postgres).await;
    let folder = tempfile::tempdir().unwrap();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        let mut command = Command::new("sh");
        // Many systems give a process room for few open files; each of these needs some hundreds.
        command.args(["-c", "ulimit -Sn 256 && exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_spendcap"));
        replicas.push(Daemon::start_by(command, folder.path(), &world.environment).await);
    }
    let urls: Vec<String> = replicas
        .iter()
        .map(|replica| format!("http://{}", replica.proxy))
        .collect();
    races(&world, &urls, policy).await;
}

async fn races(world: &World, urls: &[String], policy: &str) {
    for keys in [Keys::Fresh, Keys::Stable, Keys::Missing] {
        world.sandbox.reset();
        // Another period for each, or the second would find the first one's slots.
        let more = json!({ "on_duplicate": policy, "billing_period": format!("{keys:?}") });
        let key = world.issue(EXPECTED_TOTAL_MINOR, more).await;
        let answers = race(urls, &key, keys).await;
        let expected = Expected::of(policy, keys);
        assert_eq!(answers, expected.answers, "{policy} {keys:?}");
        assert_eq!(world.made().len(), expected.charges, "{policy} {keys:?}");
        world.assert_balanced(&key).await;
        let customers = customers_charged(world);
        if expected.charges == CUSTOMERS {
            assert_eq!(customers, CUSTOMERS, "{policy} {keys:?}");
        } else {
            assert_duplicates_flagged(world, &key, customers).await;
        }
        for (kind, count) in expected.flags {
            let flagged = world.operator().flagged(&key, kind).await;
            assert_eq!(flagged, count, "{policy} {keys:?} {kind}");
        }
    }
}

struct Expected {
    answers: Answers,
    charges: usize,
    /// Flags by kind, with the sum of their counts.
    flags: Vec<(&'static str, i64)>,
}

impl Expected {
    fn of(policy: &str, keys: Keys) -> Self {
        let everyone = Answers::from([((200, String::new()), 1_500)]);
        let (duplicate, repeated) = ("duplicate_customer_period", "idempotency_key_repeated");
        match (policy, keys) {
            ("replay", Keys::Fresh) => Self {
                answers: everyone,
                charges: 500,
                flags: vec![(duplicate, 1_000), (repeated, 0)],
            },
            ("reject", Keys::Fresh) => Self {
                answers: Answers::from([
                    ((200, String::new()), 500),
                    ((400, duplicate.to_owned()), 1_000),
                ]),
                charges: 500,
                flags: vec![(duplicate, 1_000), (repeated, 0)],
            },
            ("flag", Keys::Fresh) => Self {
                answers: Answers::from([
                    ((200, String::new()), 550),
                    ((402, "spend_cap_reached".to_owned()), 950),
                ]),
                charges: 550,
                flags: vec![(repeated, 0)],
            },
            // A racing stable key is no worse than a fresh one, whatever the policy.
            _ => Self {
                answers: everyone,
                charges: 500,
                flags: vec![(duplicate, 0), (repeated, 1_000)],
            },
        }
    }
}

/// All requests at once, each replica over connections of its own.
async fn race(urls: &[String], key: &VaultKey, keys: Keys) -> Answers {
    let mut requests = JoinSet::new();
    for url in urls {
        let connections: Vec<Client> = (0..CONNECTIONS).map(|_| Client::http2()).collect();
        for customer in 0..CUSTOMERS {
            let client = connections[customer % CONNECTIONS].clone();
            let (url, secret) = (url.clone(), key.secret.clone());
            requests.spawn(async move {
                let customer = format!("cus_race{customer:03}");
                let idempotency_key = match keys {
                    Keys::Fresh => Some(Uuid::new_v4().to_string()),
                    Keys::Stable => Some(format!("bill-{customer}")),
                    Keys::Missing => None,
                };
                let charge = Charge {
                    customer: &customer,
                    amount: AMOUNT_MINOR,
                    idempotency_key: idempotency_key.as_deref(),
                    ..Charge::default()
                };
                try_charge(&client, &url, &secret, charge).await.unwrap()
            });
        }
    }
    let mut answers = Answers::new();
    while let Some(reply) = requests.join_next().await {
        let reply = reply.unwrap();
        *answers
            .entry((reply.status.as_u16(), reply.code()))
            .or_default() += 1;
    }
    answers
}

/// How many customers were charged; each charge has the right amount.
fn customers_charged(world: &World) -> usize {
    let made = world.made();
    let right = made.iter().all(|charge| charge.amount == AMOUNT_MINOR);
    assert!(right, "{made:?}");
    let customers: BTreeSet<_> = made.iter().map(|charge| &charge.customer).collect();
    customers.len()
}

/// Under `flag` some customers' duplicates take the room of others' first charge. Whoever was charged
/// has two duplicates, and each is flagged, charged or not; one that was charged after it had waited is
/// recorded with both charges.
async fn assert_duplicates_flagged(world: &World, key: &VaultKey, customers: usize) {
    let duplicate = "duplicate_customer_period";
    let flagged = world.operator().flagged(key, duplicate).await;
    let flagged = usize::try_from(flagged).unwrap();
    let (least, charged_twice) = (2 * customers, world.made().len() - customers);
    assert!(
        (least..=least + charged_twice).contains(&flagged),
        "{customers} {flagged}"
    );
}
