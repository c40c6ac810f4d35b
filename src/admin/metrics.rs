//! `/metrics`: what Prometheus scrapes. It takes no token, like the health checks: amounts, ids of vault
//! keys and counts stand there, never a customer and never a secret.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::AdminState;
use crate::ledger::{CapStanding, Reads, Standing};
use crate::telemetry::metrics::{self, CapAmounts, CapLabels, LedgerGauges, MetricsError, Scraped};

/// Vault keys that are shown by name: some thousand series. The rest is summed as `other`.
const KEYS_MAX: u32 = 200;

/// What stands for the keys that are not shown by name; an id begins with `vk_`.
const OTHER: &str = "other";

/// The ledger is read this often, however many scrape.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// How long a scrape waits for the ledger. Prometheus gives up after 10 s by default.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What the ledger held when it was last read. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Gauges(Arc<Mutex<Option<LastRead>>>);

#[derive(Debug)]
struct LastRead {
    at: Instant,
    /// `None` where it could not be read.
    gauges: Option<Arc<LedgerGauges>>,
}

/// Metrics of this process and of the ledger, for Prometheus.
///
/// Amounts by vault key, counts and durations; never a customer, never a secret. No token, so that a
/// scraper needs none; the listener is on loopback by default.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "Health", security(()),
    responses((
        status = 200, description = "Prometheus's text exposition format, version 0.0.4.",
        content_type = "text/plain", body = String,
    )),
)]
pub(super) async fn scrape(State(state): State<AdminState>) -> Response {
    let gauges = state.gauges.now(state.ledger.reads()).await;
    let text = state.metrics.text(Scraped {
        ledger: gauges.as_deref(),
        writable: state.ledger.is_writable(),
        queue_depth: state.ledger.queue_depth(),
    });
    match text {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(error = ?error, "The metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl Gauges {
    /// The ledger's gauges, at most a second old; `None` where it cannot be read in time.
    async fn now(&self, reads: &Reads) -> Option<Arc<LedgerGauges>> {
        let read = async {
            let mut last = Arc::clone(&self.0).lock_owned().await;
            if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < FRESH_FOR) {
                return last.gauges.clone();
            }
            let reads = reads.clone();
            // A task of its own with the lock: whoever gives up waiting does not begin a second read.
            let read = tokio::spawn(async move {
                let gauges = read(&reads).await.map(Arc::new);
                let at = Instant::now();
                last.insert(LastRead { at, gauges }).gauges.clone()
            });
            read.await.ok().flatten()
        };
        timeout(WAIT_MAX, read).await.ok().flatten()
    }
}

async fn read(reads: &Reads) -> Option<LedgerGauges> {
    // Whoever failed has logged why.
    let standing = reads.standing(KEYS_MAX).await.ok()?;
    match gauges(&standing) {
        Ok(gauges) => Some(gauges),
        Err(error) => {
            tracing::error!(error = ?error, "The ledger's gauges cannot be made");
            None
        }
    }
}

fn gauges(standing: &Standing) -> Result<LedgerGauges, MetricsError> {
    let mut gauges = LedgerGauges::empty()?;
    for cap in &standing.caps {
        gauges.cap(labels(cap), &amounts(cap));
    }
    for (kind, count) in &standing.open_flags {
        gauges.flags(*kind, *count);
    }
    let oldest_seconds = standing.oldest_held_ms.unwrap_or_default() / 1000;
    gauges.held(standing.held, oldest_seconds);
    if standing.lost {
        gauges.takes_no_money();
    }
    Ok(gauges)
}

fn labels(cap: &CapStanding) -> CapLabels<'_> {
    let key = cap.key.as_ref();
    CapLabels {
        vault_key: key.map_or(OTHER, |key| key.id.as_str()),
        billing_period: key.map_or(OTHER, |key| &key.billing_period),
        currency: cap.currency,
    }
}

fn amounts(cap: &CapStanding) -> CapAmounts {
    CapAmounts {
        expected_total: cap.expected_total,
        max_amount: cap.max_amount,
        settled: cap.settled,
        in_flight: cap.in_flight,
        open: cap.open,
        held: cap.held,
    }
}
