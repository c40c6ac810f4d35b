//! The composition root: knows every part, and puts them together. Besides it only the commands do.

mod reconcile;
mod secrets;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, AdminState, Gauges};
use crate::clock::Clock;
use crate::config::{Config, LedgerUrl, Settings, StripeKey};
use crate::domain::decision::FORWARD_WINDOW_MS;
use crate::ledger::book::SendTimes;
use crate::ledger::{Ledger, LedgerOptions, WriterObserver};
use crate::proxy::{self, BreakerSettings, Drain, KeyOwner, Parts, Platform, Proxy, ProxySettings};
use crate::telemetry::metrics::Metrics;

/// Between the upstream timeout and the moment a row is held: time to record a late answer.
const DEADLINE_GRACE: Duration = Duration::from_secs(15);

/// Beyond the upstream timeout, what finishing takes when draining: settles and their answers.
const FLUSH: Duration = Duration::from_secs(10);

/// A running spendcap: both listeners, the ledger, the background work.
#[derive(Debug)]
pub struct App {
    proxy_addr: SocketAddr,
    admin_addr: SocketAddr,
    proxy: Arc<Proxy>,
    ledger: Ledger,
    drain: Duration,
    draining: CancellationToken,
    stop_proxy: CancellationToken,
    stop_rest: CancellationToken,
    proxy_task: JoinHandle<()>,
    admin_task: JoinHandle<()>,
    secrets_task: JoinHandle<()>,
    reconcile_task: JoinHandle<()>,
    writer_task: JoinHandle<()>,
}

impl App {
    /// Opens the ledger, pins the account, and listens.
    pub async fn start(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        Self::begin(settings, clock, false).await
    }

    /// The same on a ledger that was restored from a backup: it takes no money until Stripe's feed was read.
    pub async fn start_restored(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        Self::begin(settings, clock, true).await
    }

    async fn begin(settings: Settings, clock: Clock, restored: bool) -> anyhow::Result<Self> {
        let Settings {
            config,
            secrets,
            watch,
        } = settings;
        let metrics = Arc::new(Metrics::new()?);
        let (ledger, writer_task) = open_ledger(&config, clock.clone(), &metrics, restored).await?;
        let key = &secrets.stripe_key;
        let upstream = tls::upstream(&config.upstream, clock.clone(), key, &metrics)?;
        let platform = secrets::pin(&ledger, &upstream, key).await?;
        announce(&config, platform.as_ref());
        let proxy_listener = bind(config.proxy.listen, "proxy.listen").await?;
        let admin_listener = bind(config.admin.listen, "admin.listen").await?;
        let (proxy_addr, admin_addr) = (proxy_listener.local_addr()?, admin_listener.local_addr()?);
        let draining = CancellationToken::new();
        let proxy = Proxy::new(Parts {
            ledger: ledger.clone(),
            clock: clock.clone(),
            upstream,
            breaker: breaker(&config),
            platform: platform.clone(),
            settings: bounds(&config),
            metrics: Arc::clone(&metrics),
            draining: draining.clone(),
        });
        let (stop_proxy, stop_rest) = (CancellationToken::new(), CancellationToken::new());
        let proxy_task = serve_proxy(&config, &proxy, proxy_listener, stop_proxy.clone())?;
        let (tokens, tokens_now) = watch::channel(secrets.admin_tokens);
        let state = AdminState {
            ledger: ledger.clone(),
            clock: clock.clone(),
            tokens: tokens_now,
            defaults: Arc::new(config.defaults.clone()),
            metrics: Arc::clone(&metrics),
            gauges: Gauges::default(),
            stripe: Arc::clone(&proxy) as _,
            draining: draining.clone(),
        };
        let admin_stop = stop_rest.clone().cancelled_owned();
        let admin_task = tokio::spawn(admin::serve(admin_listener, state, admin_stop));
        let reconcile_task = reconcile::start(&config, &ledger, &proxy, &clock, &stop_rest);
        let reload = secrets::Reload {
            watch,
            untold: platform.is_none().then_some(secrets.stripe_key),
            tokens,
            proxy: Arc::clone(&proxy),
            ledger: ledger.clone(),
            upstream: config.upstream.clone(),
            clock,
            metrics,
        };
        let secrets_task = tokio::spawn(reload.run(stop_rest.clone()));
        Ok(Self {
            proxy_addr,
            admin_addr,
            proxy,
            ledger,
            drain: config.proxy.drain,
            draining,
            stop_proxy,
            stop_rest,
            proxy_task,
            admin_task,
            secrets_task,
            reconcile_task,
            writer_task,
        })
    }

    /// Where the data plane listens.
    pub fn proxy_addr(&self) -> SocketAddr {
        self.proxy_addr
    }

    /// Where the admin API listens.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The ledger, for what runs beside the listeners.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Says "not ready", keeps serving while load balancers notice, stops accepting, finishes what is in
    /// flight, closes the ledger (design §6).
    pub async fn drain(self) -> anyhow::Result<()> {
        self.draining.cancel();
        tracing::info!(seconds = self.drain.as_secs(), "Draining");
        tokio::time::sleep(self.drain).await;
        self.stop().await
    }

    /// Stops accepting at once and finishes what is in flight.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.draining.cancel();
        self.stop_proxy.cancel();
        self.proxy_task
            .await
            .context("the data plane ended early")?;
        self.stop_rest.cancel();
        self.admin_task.await.context("the admin API ended early")?;
        self.secrets_task
            .await
            .context("the secrets' watch ended early")?;
        self.reconcile_task
            .await
            .context("the reconciler ended early")?;
        drop((self.proxy, self.ledger));
        // A client that does not take its answer keeps a handle of the ledger; what was confirmed is stored.
        if let Ok(ended) = tokio::time::timeout(FLUSH, self.writer_task).await {
            ended.context("the ledger's writer ended early")?;
        }
        tracing::info!("Stopped");
        Ok(())
    }
}

impl WriterObserver for Metrics {
    fn committed(&self, commands: usize, took: Duration) {
        self.committed(commands, took);
    }
}

/// Opens the ledger that the settings name, and brings its schema up to date.
async fn open_ledger(
    config: &Config,
    clock: Clock,
    metrics: &Arc<Metrics>,
    restored: bool,
) -> anyhow::Result<(Ledger, JoinHandle<()>)> {
    let send = config
        .upstream
        .timeout
        .saturating_add(DEADLINE_GRACE)
        .as_millis();
    let deadline_ms = i64::try_from(send)
        .unwrap_or(i64::MAX)
        .saturating_add(FORWARD_WINDOW_MS);
    let options = LedgerOptions {
        clock,
        times: SendTimes { deadline_ms },
        migrate: true,
        restored,
        observer: Arc::clone(metrics) as _,
    };
    let opened = match &config.ledger.url {
        LedgerUrl::Sqlite(file) => Ledger::open_sqlite(file, options).await,
        LedgerUrl::Postgres(url) => {
            Ledger::open_postgres(&SecretString::from(url.expose()), options).await
        }
    };
    opened.context("the ledger cannot be opened")
}

/// Asks Stripe whose key it is.
pub async fn key_owner(config: &Config, key: &StripeKey, clock: Clock) -> anyhow::Result<KeyOwner> {
    let upstream = tls::upstream(&config.upstream, clock, key, &Arc::new(Metrics::new()?))?;
    Ok(upstream.key_owner().await?)
}

/// The kinds of objects the reconciler reads that the real key may not.
pub async fn unreadable(
    config: &Config,
    key: &StripeKey,
    clock: Clock,
) -> anyhow::Result<Vec<&'static str>> {
    let upstream = tls::upstream(&config.upstream, clock, key, &Arc::new(Metrics::new()?))?;
    let mut kinds = Vec::new();
    for kind in ["charges", "events"] {
        if !upstream.may_read(&format!("/v1/{kind}?limit=1")).await? {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// What this process works with, for whoever reads its log first.
fn announce(config: &Config, platform: Option<&Platform>) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        ledger = %config.ledger.url,
        upstream = %config.upstream.base_url,
        mode = platform.map(|platform| if platform.livemode { "live" } else { "test" }),
        account = platform.and_then(|platform| platform.account.as_deref()),
        "Starting"
    );
}

/// Serves the data plane until `stop`, then finishes what is under way.
fn serve_proxy(
    config: &Config,
    proxy: &Arc<Proxy>,
    listener: TcpListener,
    stop: CancellationToken,
) -> anyhow::Result<JoinHandle<()>> {
    let acceptor = config.proxy.tls.as_ref().map(tls::acceptor).transpose()?;
    let patience = config.upstream.timeout.saturating_add(FLUSH);
    let drain = Drain { stop, patience };
    let serving = proxy::serve(Arc::clone(proxy), listener, acceptor, drain);
    Ok(tokio::spawn(serving))
}

async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{setting} = {address} cannot be listened on"))
}

fn breaker(config: &Config) -> BreakerSettings {
    BreakerSettings {
        unknown_outcomes_max: config.breaker.unknown_outcomes_max,
        probe_interval: config.breaker.probe_interval,
    }
}

fn bounds(config: &Config) -> ProxySettings {
    ProxySettings {
        repeat_wait: config.proxy.repeat_wait,
        settle_wait: config.proxy.settle_wait,
        resends_max: config.upstream.resends_max,
        body_bytes_max: config.proxy.body_bytes_max,
        in_flight_max: config.proxy.in_flight_max,
    }
}
