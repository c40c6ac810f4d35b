//! The data plane: one request, one way.
//!
//! ```text
//! accept → authenticate → classify → reserve → forward → settle → respond
//! ```
//!
//! [`pipeline`] is a plain async function, top to bottom; each stage takes the previous stage's proof
//! and returns the next. From the reserve on, the work lives in a task of its own, started before the
//! reserve is queued: a client that hangs up changes nothing.

mod authenticate;
mod body;
mod breaker;
mod classify;
mod forward;
mod key_cache;
mod money_log;
mod own_key;
mod pipeline;
mod read;
mod resend;
mod reserve;
mod respond;
mod server;
mod settle;
#[cfg(test)]
pub(crate) mod simulated;
mod tasks;
mod upstream;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::domain::idempotency::KeyScope;
use crate::domain::refusal::Refusal;
use crate::ledger::Ledger;
use crate::telemetry::metrics::Metrics;

pub use breaker::BreakerSettings;
pub use server::{Drain, serve};
pub use upstream::{KeyOwner, RealKey, Upstream, UpstreamError, UpstreamSettings, WayError};

use breaker::Breaker;
use key_cache::KeyCache;
use tasks::Tasks;

/// The bounds of the data plane.
#[derive(Clone, Copy, Debug)]
pub struct ProxySettings {
    /// How long a repeat waits for the first request's outcome.
    pub repeat_wait: Duration,
    /// How long an answer waits for its settle to be stored; the settle goes on after that.
    pub settle_wait: Duration,
    /// How often a request whose answer Stripe lost is sent again.
    pub resends_max: u32,
    /// Largest request body, in bytes.
    pub body_bytes_max: usize,
    /// Most requests under way at once.
    pub in_flight_max: usize,
}

/// Whose money the real key moves, as pinned in the ledger.
#[derive(Clone, Debug)]
pub struct Platform {
    /// The platform's own account, where the real key may read it.
    pub account: Option<String>,
    /// Live or test mode.
    pub livemode: bool,
}

impl Platform {
    /// The ledger's name for an account: the platform's own is empty, however the client names it.
    fn canonical_account(&self, named: String) -> String {
        if self.account.as_ref() == Some(&named) {
            String::new()
        } else {
            named
        }
    }

    fn key_scope<'a>(&self, account: &'a str, billing_period: &'a str) -> KeyScope<'a> {
        KeyScope {
            account,
            livemode: self.livemode,
            billing_period,
        }
    }
}

/// Everything a request needs; shared by all of them.
#[derive(Debug)]
pub struct Proxy {
    ledger: Ledger,
    clock: Clock,
    upstream: Arc<Upstream>,
    breaker: Arc<Breaker>,
    keys: KeyCache,
    platform: OnceLock<Platform>,
    settings: ProxySettings,
    permits: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    tasks: Tasks,
    draining: CancellationToken,
}

/// The parts a proxy is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where money is reserved.
    pub ledger: Ledger,
    /// Its clock.
    pub clock: Clock,
    /// Stripe.
    pub upstream: Upstream,
    /// When money is refused because Stripe does not answer.
    pub breaker: BreakerSettings,
    /// Whose money it is; `None` while Stripe does not tell, until [`Proxy::confirm`].
    pub platform: Option<Platform>,
    /// The bounds.
    pub settings: ProxySettings,
    /// Where requests are counted.
    pub metrics: Arc<Metrics>,
    /// Once cancelled, answers ask clients to close their connections.
    pub draining: CancellationToken,
}

impl Proxy {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Arc<Self> {
        Self::with(parts, Tasks::default())
    }

    /// As [`Self::new`], but every task it starts belongs to `owner`.
    #[cfg(test)]
    pub(crate) fn owned_by(owner: simulated::Owner, parts: Parts) -> Arc<Self> {
        Self::with(parts, Tasks::owned_by(owner))
    }

    fn with(parts: Parts, tasks: Tasks) -> Arc<Self> {
        let upstream = Arc::new(parts.upstream);
        Arc::new(Self {
            keys: KeyCache::new(parts.ledger.clone()),
            ledger: parts.ledger,
            clock: parts.clock,
            breaker: Arc::new(Breaker::new(
                parts.breaker,
                Arc::clone(&upstream),
                tasks.clone(),
                Arc::clone(&parts.metrics),
            )),
            upstream,
            platform: parts.platform.map(OnceLock::from).unwrap_or_default(),
            settings: parts.settings,
            permits: Arc::new(Semaphore::new(parts.settings.in_flight_max)),
            metrics: parts.metrics,
            tasks,
            draining: parts.draining,
        })
    }

    /// Where this process counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Puts another real key in place of the old one, for requests from now on.
    pub fn replace_real_key(&self, key: RealKey) {
        self.upstream.replace_key(key);
    }

    /// Says whose money the real key moves. Before that nothing goes to Stripe: a key of another account
    /// would charge anew what this ledger knows as charged.
    pub fn confirm(&self, platform: Platform) {
        // A later key is held against the same pin.
        let _the_first_stays = self.platform.set(platform);
    }

    fn platform(&self) -> Result<&Platform, Refusal> {
        self.platform.get().ok_or(Refusal::UpstreamUnhealthy)
    }

    /// Waits until every send has its outcome recorded.
    pub async fn finish(&self) {
        self.tasks.finish().await;
    }

    fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}
