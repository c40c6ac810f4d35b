//! A sandbox in this process and spendcap as a process of its own, on a ledger that outlives it.

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
use super::world::{Charge, LedgerKind, environment, ledger_url, try_charge};

/// Everything a test needs; dropped, it all stops.
pub(crate) struct Outside {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
    pub(crate) daemon: Daemon,
    pub(crate) ledger_url: String,
    ledger: LedgerKind,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Outside {
    /// Starts both, with settings as `SPENDCAP_SECTION_KEY` variables.
    pub(crate) async fn start(ledger: LedgerKind, settings: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        Self::with(sandbox, ledger, settings).await
    }

    /// The same over a sandbox that runs already.
    pub(crate) async fn with(
        sandbox: Sandbox,
        ledger: LedgerKind,
        settings: &[(&str, &str)],
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let ledger_url = ledger_url(ledger, &folder).await;
        let environment = environment(&ledger_url, &sandbox.base_url(), settings);
        let daemon = Daemon::start(folder.path(), &environment).await;
        Self {
            sandbox,
            client: Client::new(),
            daemon,
            ledger_url,
            ledger,
            environment,
            folder,
        }
    }

    /// Starts another process on the same ledger in place of the one before, which is killed.
    pub(crate) async fn restart(&mut self) {
        self.daemon.kill();
        self.daemon = Daemon::start(self.folder.path(), &self.environment).await;
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator {
            client: self.client.clone(),
            admin_url: format!("http://{}", self.daemon.admin),
            clock: Clock::system(),
        }
    }

    pub(crate) async fn issue(&self, expected_total: i64) -> VaultKey {
        self.operator().issue(expected_total, json!({})).await
    }

    pub(crate) fn proxy_url(&self) -> String {
        format!("http://{}", self.daemon.proxy)
    }

    /// `Err` where no complete answer came.
    pub(crate) async fn try_charge(
        &self,
        key: &VaultKey,
        charge: Charge<'_>,
    ) -> Result<Reply, String> {
        try_charge(&self.client, &self.proxy_url(), &key.secret, charge).await
    }

    pub(crate) async fn charge(&self, key: &VaultKey, charge: Charge<'_>) -> Reply {
        self.try_charge(key, charge).await.unwrap()
    }

    /// Waits until so many reservations are in `state`.
    pub(crate) async fn until_state(&self, state: &str, count: usize) -> Vec<Value> {
        let filter = format!("state={state}");
        until(&format!("{count} are {state}"), async || {
            let rows = self.operator().reservations(&filter).await;
            (rows.len() == count).then_some(rows)
        })
        .await
    }

    /// What in-flight rows of a dead process become: SQLite holds them at the start, PostgreSQL at their
    /// deadlines, which this moves to now.
    pub(crate) async fn pass_deadlines(&self) {
        if self.ledger == LedgerKind::Postgres {
            let mut connection = PgConnection::connect(&self.ledger_url).await.unwrap();
            let pass = "UPDATE reservations SET deadline_ms = 0 WHERE state = 'in_flight'";
            connection.execute(pass).await.unwrap();
        }
        self.until_state("in_flight", 0).await;
    }

    /// What the sandbox took, in minor units.
    pub(crate) fn taken(&self) -> i64 {
        let made = self.sandbox.charges();
        made.iter().map(|charge| charge.amount_captured).sum()
    }

    /// The books agree with Stripe: settled is what was taken, nothing is reserved.
    pub(crate) async fn assert_balanced(&self, key: &VaultKey) {
        let cap = self.operator().cap(key, "usd").await;
        assert_eq!(cap["settled"], self.taken(), "{cap}");
        assert_eq!(cap["reserved"], 0, "{cap}");
    }
}
