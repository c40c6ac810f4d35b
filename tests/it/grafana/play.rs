//! Three replicas on one PostgreSQL, and a billing run like the demo's that does not end before it is told to:
//! races with duplicates, a decline, a cap that is reached, unknown outcomes and a breaker that opens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use spendcap::clock::Clock;
use spendcap::sandbox::{Fault, FaultKind, Sandbox, SandboxSettings};
use tempfile::TempDir;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::Charge;
use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::operator::{Operator, VaultKey};
use crate::support::world::{LedgerKind, environment, ledger_url, try_charge};

const REPLICAS: usize = 3;
/// The replica whose breaker opens.
const UNLUCKY: usize = 2;
const CUSTOMERS: usize = 40;
const AMOUNT_MINOR: i64 = 9_900;
/// Two unknown outcomes open the breaker, and no probe closes it while this plays; each is of another charge.
const SETTINGS: [(&str, &str); 3] = [
    ("SPENDCAP_UPSTREAM_RESENDS_MAX", "0"),
    ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "2"),
    ("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", "600000"),
];
/// One charge a replica that often keeps every rate above nothing.
const PACE: Duration = Duration::from_millis(100);

/// Everything that plays; dropped, it all stops.
pub(super) struct Play {
    pub(super) replicas: Vec<Daemon>,
    pub(super) operator: Operator,
    /// `on_duplicate = replay`, and room for all who come.
    pub(super) replay: VaultKey,
    /// `on_duplicate = flag`, at its cap.
    pub(super) flag: VaultKey,
    /// Of another period and currency.
    pub(super) other: VaultKey,
    actors: Arc<Actors>,
    stop: Arc<AtomicBool>,
    goes_on: Option<JoinHandle<()>>,
    _folder: TempDir,
}

/// Who sends charges where.
struct Actors {
    client: Client,
    proxies: Vec<String>,
    sandbox: Sandbox,
    customers: AtomicUsize,
}

impl Play {
    /// Starts the replicas and issues the vault keys. Nothing is charged yet.
    pub(super) async fn start() -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        let folder = TempDir::new().unwrap();
        let ledger = ledger_url(LedgerKind::Postgres, &folder).await;
        let environment = environment(&ledger, &sandbox.base_url(), &SETTINGS);
        let mut replicas = Vec::new();
        for _ in 0..REPLICAS {
            replicas.push(Daemon::start(folder.path(), &environment).await);
        }
        let client = Client::new();
        let operator = Operator {
            client: client.clone(),
            admin_url: format!("http://{}", replicas[0].admin),
            clock: Clock::system(),
        };
        let expected = AMOUNT_MINOR * i64::try_from(CUSTOMERS).unwrap();
        let flag = json!({ "on_duplicate": "flag" });
        let other = json!({ "currency": "eur", "billing_period": "2026.09" });
        let proxies = replicas.iter().map(|one| format!("http://{}", one.proxy));
        Self {
            replay: operator.issue(expected * 1_000, json!({})).await,
            flag: operator.issue(expected, flag).await,
            other: operator.issue(expected, other).await,
            actors: Arc::new(Actors {
                client,
                proxies: proxies.collect(),
                sandbox,
                customers: AtomicUsize::new(0),
            }),
            replicas,
            operator,
            stop: Arc::default(),
            goes_on: None,
            _folder: folder,
        }
    }

    /// Where Prometheus finds the replicas.
    pub(super) fn targets(&self) -> Vec<String> {
        let replicas = self.replicas.iter();
        replicas.map(|one| one.admin.to_string()).collect()
    }

    /// Plays it once, and then goes on with some of everything in the background.
    pub(super) async fn go(&mut self) {
        let actors = &self.actors;
        let raced = actors.race(&self.replay, 200).await;
        assert_eq!(raced, REPLICAS * CUSTOMERS);
        // Ten percent above the 40 of them.
        let raced = actors.race(&self.flag, 200).await;
        assert_eq!(raced, CUSTOMERS * 11 / 10);
        let eur = actors.charge(0, &self.other, "cus_1", "eur").await;
        assert_eq!(eur, 200);
        let decline = Fault::new(FaultKind::Decline).customer("cus_declined");
        actors.sandbox.add_fault(decline);
        let declined = actors.charge(1, &self.replay, "cus_declined", "usd");
        assert_eq!(declined.await, 402);
        for customer in ["cus_lost_1", "cus_lost_2"] {
            let lost = Fault::new(FaultKind::CommitThenFin).customer(customer);
            actors.sandbox.add_fault(lost);
            let unknown = actors.charge(UNLUCKY, &self.replay, customer, "usd");
            assert_eq!(unknown.await, 504);
        }
        let refused = actors.charge(UNLUCKY, &self.replay, "cus_late", "usd");
        assert_eq!(refused.await, 503);
        let keys = [self.replay.clone(), self.flag.clone()];
        let (actors, stop) = (Arc::clone(actors), Arc::clone(&self.stop));
        self.goes_on = Some(tokio::spawn(async move {
            let mut pace = tokio::time::interval(PACE);
            while !stop.load(Ordering::Acquire) {
                pace.tick().await;
                actors.go_on(&keys).await;
            }
        }));
    }

    /// Nothing is sent any more, and every answer has come.
    pub(super) async fn end(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.goes_on.take().unwrap().await.unwrap();
    }
}

impl Actors {
    /// Every replica asks for every customer's charge under a fresh key, all at once; returns how many got `status`.
    async fn race(self: &Arc<Self>, key: &VaultKey, status: u16) -> usize {
        let mut requests = JoinSet::new();
        for replica in 0..REPLICAS {
            for customer in 0..CUSTOMERS {
                let (actors, key) = (Arc::clone(self), key.clone());
                requests.spawn(async move {
                    let customer = format!("cus_{customer}");
                    actors.charge(replica, &key, &customer, "usd").await
                });
            }
        }
        let answers = requests.join_all().await;
        answers.iter().filter(|answer| **answer == status).count()
    }

    /// A new customer, its duplicate elsewhere, one more than the cap holds, and one at the open breaker.
    async fn go_on(&self, [replay, flag]: &[VaultKey; 2]) {
        let number = self.customers.fetch_add(1, Ordering::Relaxed);
        let customer = format!("cus_next_{number}");
        let first = self.charge(0, replay, &customer, "usd").await;
        let again = self.charge(1, replay, &customer, "usd").await;
        let capped = self.charge(1, flag, &customer, "usd").await;
        let refused = self.charge(UNLUCKY, replay, &customer, "usd").await;
        assert_eq!([first, again, capped, refused], [200, 200, 402, 503]);
    }

    async fn charge(&self, replica: usize, key: &VaultKey, customer: &str, currency: &str) -> u16 {
        let charge = Charge {
            customer,
            currency,
            amount: AMOUNT_MINOR,
            idempotency_key: Some(&uuid::Uuid::new_v4().to_string()),
            ..Charge::default()
        };
        let answer = try_charge(&self.client, &self.proxies[replica], &key.secret, charge);
        answer.await.unwrap().status.as_u16()
    }
}
