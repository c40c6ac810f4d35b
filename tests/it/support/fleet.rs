//! Several spendcaps as processes of their own on one PostgreSQL database, over one sandbox.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use spendcap::clock::Clock;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tempfile::TempDir;

use super::daemon::Daemon;
use super::http::{Client, Reply};
use super::operator::{Operator, VaultKey};
use super::patience::until;
use super::postgres::fresh_database;
use super::world::{Charge, environment, try_charge};

/// Everything a test needs; dropped, it all stops.
pub(crate) struct Fleet {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
    pub(crate) replicas: Vec<Daemon>,
    pub(crate) ledger_url: String,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Fleet {
    /// `count` replicas with settings as `SPENDCAP_SECTION_KEY` variables.
    pub(crate) async fn start(count: usize, settings: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        let mut fleet = Self::over(sandbox, &fresh_database().await, settings);
        for _ in 0..count {
            fleet.add(&[]).await;
        }
        fleet
    }

    /// None yet, over a sandbox and a ledger that are there.
    pub(crate) fn over(sandbox: Sandbox, ledger_url: &str, settings: &[(&str, &str)]) -> Self {
        Self {
            client: Client::new(),
            replicas: Vec::new(),
            ledger_url: ledger_url.to_owned(),
            environment: environment(ledger_url, &sandbox.base_url(), settings),
            folder: TempDir::new().unwrap(),
            sandbox,
        }
    }

    /// One more replica, with settings of its own over the others'.
    pub(crate) async fn add(&mut self, settings: &[(&str, &str)]) {
        let replica = self.another(settings).await;
        self.replicas.push(replica);
    }

    /// Starts a replica that is nobody's yet.
    pub(crate) async fn another(&self, settings: &[(&str, &str)]) -> Daemon {
        let own = settings.iter();
        let own = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment: Vec<_> = self.environment.iter().cloned().chain(own).collect();
        Daemon::start(self.folder(), &environment).await
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn proxy(&self, index: usize) -> SocketAddr {
        self.replicas[index].proxy
    }

    /// The operator, at replica `index`.
    pub(crate) fn operator(&self, index: usize) -> Operator {
        operator_at(&self.client, self.replicas[index].admin)
    }

    pub(crate) async fn issue(&self, expected_total: i64, more: Value) -> VaultKey {
        self.operator(0).issue(expected_total, more).await
    }

    /// Asks replica `index` for a charge.
    pub(crate) async fn charge(&self, index: usize, key: &VaultKey, charge: Charge<'_>) -> Reply {
        let url = format!("http://{}", self.proxy(index));
        let answer = try_charge(&self.client, &url, &key.secret, charge).await;
        answer.unwrap()
    }

    /// Waits until replica `index` shows so many reservations in `state`.
    pub(crate) async fn until_state(&self, index: usize, state: &str, count: usize) -> Vec<Value> {
        let filter = format!("state={state}");
        until(&format!("{count} are {state}"), async || {
            let rows = self.operator(index).reservations(&filter).await;
            (rows.len() == count).then_some(rows)
        })
        .await
    }

    /// Repeats under fresh keys while the answer says that it may come; returns the charge's id.
    pub(crate) async fn until_known(&self, index: usize, key: &VaultKey, customer: &str) -> String {
        let mut attempt = 0;
        until(&format!("{customer} is answered"), async || {
            attempt += 1;
            let idempotency_key = format!("{customer}-again-{attempt}");
            let charge = Charge {
                customer,
                idempotency_key: Some(&idempotency_key),
                ..Charge::default()
            };
            let answer = self.charge(index, key, charge).await;
            if answer.status == 200 {
                return Some(answer.json()["id"].as_str().unwrap().to_owned());
            }
            let retry = answer.header("stripe-should-retry");
            assert_eq!(retry, "true", "{}", answer.text);
            None
        })
        .await
    }

    /// Moves the deadline of what is in flight to now, so that a test need not wait for it.
    pub(crate) async fn bring_deadlines_forward(&self) {
        let mut connection = PgConnection::connect(&self.ledger_url).await.unwrap();
        let pass = "UPDATE reservations SET deadline_ms = 0 WHERE state = 'in_flight'";
        connection.execute(pass).await.unwrap();
        connection.close().await.unwrap();
    }

    /// What the sandbox took, in minor units.
    pub(crate) fn taken(&self) -> i64 {
        let made = self.sandbox.charges();
        made.iter().map(|charge| charge.amount_captured).sum()
    }

    /// How many requests that could move money reached Stripe.
    pub(crate) fn posts(&self) -> usize {
        let requests = self.sandbox.requests();
        requests.iter().filter(|seen| seen.method == "POST").count()
    }

    /// Replica `index` shows that settled is what was taken and nothing is reserved.
    pub(crate) async fn assert_balanced(&self, index: usize, key: &VaultKey) {
        let cap = self.operator(index).cap(key, "usd").await;
        assert_eq!(cap["settled"], self.taken(), "{cap}");
        assert_eq!(cap["reserved"], json!(0), "{cap}");
    }
}

/// The operator of any replica.
pub(crate) fn operator_at(client: &Client, admin: SocketAddr) -> Operator {
    Operator {
        client: client.clone(),
        admin_url: format!("http://{admin}"),
        clock: Clock::system(),
    }
}
