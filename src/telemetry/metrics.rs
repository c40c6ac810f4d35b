//! What Prometheus scrapes. Every metric's name, labels and meaning stand here and in the files below;
//! no other module may name the crate.
//!
//! What one process did is counted in its own registry, through handles that are resolved once. What the
//! ledger holds is read when somebody scrapes, and is the same on every replica ([`LedgerGauges`]).

mod label;
mod ledger;
mod reconcile;
mod requests;
mod upstream;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use thiserror::Error;

pub use label::{Decision, DuplicateAction, Operation, UpstreamStatus};
pub use ledger::{CapAmounts, CapLabels, LedgerGauges};
pub use requests::Tally;

use reconcile::Reconciled;
use requests::Requests;
use upstream::Upstream;
use writer::Writer;

use crate::domain::reservation::State;

/// What the text is (Prometheus's text exposition format).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric cannot be made or written: two have one name, or a name that Prometheus does not take.
#[derive(Debug, Error)]
#[error("the metrics do not agree with each other")]
pub struct MetricsError(#[from] prometheus::Error);

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Requests,
    upstream: Upstream,
    writer: Writer,
    reconciled: Reconciled,
    ledger_up: IntGauge,
    ledger_queue_depth: IntGauge,
}

/// What is known when somebody scrapes.
#[derive(Clone, Copy, Debug)]
pub struct Scraped<'a> {
    /// The ledger's gauges; `None` where it cannot be read, and then they are absent.
    pub ledger: Option<&'a LedgerGauges>,
    /// The last write did not fail.
    pub writable: bool,
    /// Commands that wait for the writer.
    pub queue_depth: usize,
}

impl Metrics {
    /// Every metric, at zero.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        #[cfg(target_os = "linux")]
        registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        let build = Opts::new("spendcap_build_info", "Which spendcap this is; always 1.");
        let build = build.const_label("version", env!("CARGO_PKG_VERSION"));
        registered(&registry, IntGauge::with_opts(build))?.set(1);
        Ok(Self {
            requests: Requests::new(&registry)?,
            upstream: Upstream::new(&registry)?,
            writer: Writer::new(&registry)?,
            reconciled: Reconciled::new(&registry)?,
            ledger_up: gauge(
                &registry,
                "spendcap_ledger_up",
                "1 while the ledger can be read and written and has lost nothing; at 0 money is refused.",
            )?,
            ledger_queue_depth: gauge(
                &registry,
                "spendcap_ledger_queue_depth",
                "Commands that wait for the ledger's writer.",
            )?,
            registry,
        })
    }

    /// A request has come; what is returned counts it when it is dropped.
    pub fn request(self: &Arc<Self>) -> Tally {
        Tally::new(self)
    }

    /// Stripe answered, or did not.
    pub fn upstream_answered(&self, operation: Operation, status: UpstreamStatus, took: Duration) {
        self.upstream.answered(operation, status, took);
    }

    /// The breaker has opened or closed.
    pub fn breaker(&self, open: bool) {
        self.upstream.breaker(open);
    }

    /// The ledger's writer has committed a batch.
    pub fn committed(&self, commands: usize, took: Duration) {
        self.writer.committed(commands, took);
    }

    /// It was found out at Stripe where a reservation stands.
    pub fn reconciled(&self, state: State) {
        self.reconciled.found(state);
    }

    /// The feed that is behind most is read up to so many seconds ago.
    pub fn feed_lag(&self, seconds: i64) {
        self.reconciled.feed_lag(seconds);
    }

    /// Whether the real key lacks a permission to read.
    pub fn reconcile_forbidden(&self, forbidden: bool) {
        self.reconciled.forbidden(forbidden);
    }

    /// Everything as text, of [`CONTENT_TYPE`].
    pub fn text(&self, scraped: Scraped<'_>) -> Result<String, MetricsError> {
        let up = scraped.ledger.is_some_and(LedgerGauges::takes_money) && scraped.writable;
        self.ledger_up.set(i64::from(up));
        let depth = i64::try_from(scraped.queue_depth).unwrap_or(i64::MAX);
        self.ledger_queue_depth.set(depth);
        let mut families = self.registry.gather();
        families.extend(
            scraped
                .ledger
                .map(LedgerGauges::families)
                .unwrap_or_default(),
        );
        Ok(TextEncoder::new().encode_to_string(&families)?)
    }
}

fn gauge(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, MetricsError> {
    registered(registry, IntGauge::new(name, help))
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, MetricsError> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

/// By operation.
fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: &[f64],
) -> Result<HistogramVec, MetricsError> {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    registered(registry, HistogramVec::new(options, &["operation"]))
}

/// Adds a metric to the registry and gives it back.
fn registered<M: Collector + Clone + 'static>(
    registry: &Registry,
    metric: prometheus::Result<M>,
) -> Result<M, MetricsError> {
    let metric = metric?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
