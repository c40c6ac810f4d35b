//! A sandbox Stripe and one or more proxies on one ledger, all in this process, over real sockets.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use spendcap::app::App;
use spendcap::clock::Clock;
use spendcap::config::{Environment, Settings};
use spendcap::sandbox::{MadeCharge, Sandbox, SandboxSettings};
use tempfile::TempDir;

use super::http::{Client, Reply};
use super::operator::{ADMIN_TOKEN, Operator, VaultKey};
use super::postgres::fresh_database;

/// Which ledger a test runs on. Every end-to-end behaviour is shown on both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LedgerKind {
    Sqlite,
    Postgres,
}

/// Everything a test needs; dropped, it all stops.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) apps: Vec<App>,
    /// Moves the sandbox's and the ledger's time.
    pub(crate) clock: Clock,
    pub(crate) client: Client,
    pub(crate) environment: Vec<(String, String)>,
    _directory: TempDir,
}

/// A charge to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Charge<'a> {
    pub(crate) customer: &'a str,
    pub(crate) amount: i64,
    pub(crate) currency: &'a str,
    pub(crate) idempotency_key: Option<&'a str>,
    /// More form parameters, as `&name=value`.
    pub(crate) more: &'a str,
    pub(crate) headers: Vec<(&'a str, &'a str)>,
}

impl Default for Charge<'_> {
    fn default() -> Self {
        Self {
            customer: "cus_1",
            amount: 9900,
            currency: "usd",
            idempotency_key: None,
            more: "",
            headers: Vec::new(),
        }
    }
}

impl World {
    /// One proxy on a fresh ledger.
    pub(crate) async fn on(kind: LedgerKind) -> Self {
        Self::start(kind, 1, &[]).await
    }

    /// `replicas` proxies on one fresh ledger, with settings as `SPENDCAP_SECTION_KEY` variables.
    pub(crate) async fn start(
        kind: LedgerKind,
        replicas: usize,
        settings: &[(&str, &str)],
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let url = ledger_url(kind, &directory).await;
        Self::over(&url, directory, replicas, settings).await
    }

    /// The same on a ledger that a test has prepared.
    pub(crate) async fn over(
        ledger_url: &str,
        directory: TempDir,
        replicas: usize,
        settings: &[(&str, &str)],
    ) -> Self {
        let clock = Clock::system();
        let sandbox = Sandbox::start(SandboxSettings {
            clock: clock.clone(),
            ..SandboxSettings::default()
        })
        .unwrap();
        let environment = environment(ledger_url, &sandbox.base_url(), settings);
        let mut world = Self {
            sandbox,
            apps: Vec::new(),
            clock,
            client: Client::new(),
            environment,
            _directory: directory,
        };
        for _ in 0..replicas {
            world.add_replica().await;
        }
        world
    }

    /// Starts one more proxy on the same ledger.
    pub(crate) async fn add_replica(&mut self) {
        let environment: Environment = self.environment.iter().cloned().collect();
        let settings = Settings::load(None, &environment).unwrap();
        self.apps
            .push(App::start(settings, self.clock.clone()).await.unwrap());
    }

    /// Where the ledger is, as in the settings.
    pub(crate) fn ledger_url(&self) -> &str {
        let setting = |(name, _): &&(String, String)| name == "SPENDCAP_LEDGER_URL";
        let found = self.environment.iter().find(setting);
        &found.unwrap().1
    }

    /// The data plane of replica `index`.
    pub(crate) fn proxy_url(&self, index: usize) -> String {
        format!("http://{}", self.apps[index].proxy_addr())
    }

    /// The operator, at the first replica.
    pub(crate) fn operator(&self) -> Operator {
        Operator {
            client: self.client.clone(),
            admin_url: format!("http://{}", self.apps[0].admin_addr()),
            clock: self.clock.clone(),
        }
    }

    /// Calls the admin API of the first replica.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        self.operator().admin(method, path, body).await
    }

    /// Issues a vault key for 2026-08 with one usd cap; `more` overrides and adds fields.
    pub(crate) async fn issue(&self, expected_total: i64, more: Value) -> VaultKey {
        self.operator().issue(expected_total, more).await
    }

    /// The key's cap in `currency`, as the admin API shows it.
    pub(crate) async fn cap(&self, key: &VaultKey, currency: &str) -> Value {
        self.operator().cap(key, currency).await
    }

    /// The key's reservations, newest first, at most 100.
    pub(crate) async fn reservations(&self, key: &VaultKey) -> Vec<Value> {
        let filter = format!("vault_key={}", key.id);
        self.operator().reservations(&filter).await
    }

    /// Asks replica `index` for a charge; `Err` where no complete answer came.
    pub(crate) async fn try_charge(
        &self,
        index: usize,
        key: &VaultKey,
        charge: Charge<'_>,
    ) -> Result<Reply, String> {
        try_charge(&self.client, &self.proxy_url(index), &key.secret, charge).await
    }

    /// Asks the first replica for a charge.
    pub(crate) async fn charge(&self, key: &VaultKey, charge: Charge<'_>) -> Reply {
        self.try_charge(0, key, charge).await.unwrap()
    }

    /// Reads through the first replica.
    pub(crate) async fn get(&self, key: &VaultKey, path: &str) -> Reply {
        let bearer = format!("Bearer {}", key.secret);
        let url = format!("{}{path}", self.proxy_url(0));
        self.client
            .send(Method::GET, &url, &[("authorization", &bearer)], "")
            .await
    }

    /// Every charge the sandbox really made.
    pub(crate) fn made(&self) -> Vec<MadeCharge> {
        self.sandbox.charges()
    }

    /// What the sandbox took, in minor units, all currencies alike.
    pub(crate) fn taken(&self) -> i64 {
        self.made()
            .iter()
            .map(|charge| charge.amount_captured)
            .sum()
    }

    /// The books agree with Stripe: settled is what was taken, nothing is reserved.
    pub(crate) async fn assert_balanced(&self, key: &VaultKey) {
        let cap = self.cap(key, "usd").await;
        assert_eq!(cap["settled"], self.taken(), "{cap} {:?}", self.made());
        assert_eq!(cap["reserved"], 0, "{cap}");
    }

    /// The same where `around` was taken past the proxy.
    pub(crate) async fn assert_balanced_but_for(&self, key: &VaultKey, around: i64) {
        let cap = self.cap(key, "usd").await;
        assert_eq!(
            cap["settled"],
            self.taken() - around,
            "{cap} {:?}",
            self.made()
        );
        assert_eq!(cap["reserved"], 0, "{cap}");
    }

    /// Ends every send that is past its deadline.
    pub(crate) async fn pass_deadlines(&self) {
        self.clock.advance(Duration::from_mins(5));
        self.apps[0].ledger().sweep().await.unwrap();
    }
}

/// A fresh ledger; SQLite's in `folder`.
pub(crate) async fn ledger_url(kind: LedgerKind, folder: &TempDir) -> String {
    match kind {
        LedgerKind::Sqlite => format!("sqlite://{}/ledger.db", folder.path().display()),
        LedgerKind::Postgres => fresh_database().await,
    }
}

/// What a spendcap of the tests is started with: free ports, no pause when it drains, and `settings`
/// over that.
pub(crate) fn environment(
    ledger_url: &str,
    stripe_url: &str,
    settings: &[(&str, &str)],
) -> Vec<(String, String)> {
    let basics = [
        ("SPENDCAP_PROXY_LISTEN", "127.0.0.1:0"),
        ("SPENDCAP_ADMIN_LISTEN", "127.0.0.1:0"),
        ("SPENDCAP_PROXY_DRAIN_MS", "0"),
        // What a test leaves held stays so; the tests of the reconciler switch it on.
        ("SPENDCAP_RECONCILE_ENABLED", "false"),
        ("SPENDCAP_LEDGER_URL", ledger_url),
        ("SPENDCAP_UPSTREAM_BASE_URL", stripe_url),
        (
            "STRIPE_SECRET_KEY",
            spendcap::sandbox::cli::SECRET_KEY_DEFAULT,
        ),
        ("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN),
    ];
    let all = basics.iter().chain(settings);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A charge against any base URL with any key.
pub(crate) async fn try_charge(
    client: &Client,
    base_url: &str,
    secret: &str,
    charge: Charge<'_>,
) -> Result<Reply, String> {
    let bearer = format!("Bearer {secret}");
    let mut headers = vec![
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    headers.extend(charge.idempotency_key.map(|key| ("idempotency-key", key)));
    headers.extend(charge.headers.iter().copied());
    let customer = match charge.customer {
        "" => String::new(),
        customer => format!("&customer={customer}"),
    };
    let body = format!(
        "amount={}&currency={}{customer}{}",
        charge.amount, charge.currency, charge.more
    );
    let url = format!("{base_url}/v1/charges");
    client.try_send(Method::POST, &url, &headers, body).await
}
