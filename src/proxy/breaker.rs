//! The breaker: after some unknown outcomes in a row, money is refused before anything is sent, so that
//! an outage of Stripe costs ten held rows and not ten thousand. A read closes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::upstream::Upstream;
use crate::domain::refusal::Refusal;

/// When the breaker opens, and how it finds out that Stripe is back.
#[derive(Clone, Copy, Debug)]
pub struct BreakerSettings {
    /// Unknown outcomes in a row that open it.
    pub unknown_outcomes_max: u32,
    /// How long between two probes while it is open.
    pub probe_interval: Duration,
}

#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    upstream: Arc<Upstream>,
    unknown_in_a_row: AtomicU32,
    open: AtomicBool,
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings, upstream: Arc<Upstream>) -> Self {
        Self {
            settings,
            upstream,
            unknown_in_a_row: AtomicU32::new(0),
            open: AtomicBool::new(false),
        }
    }

    /// Refuses money while the breaker is open.
    pub(super) fn admit(&self) -> Result<(), Refusal> {
        if self.open.load(Ordering::Acquire) {
            Err(Refusal::UpstreamUnhealthy)
        } else {
            Ok(())
        }
    }

    /// Stripe answered something that proves what happened.
    pub(super) fn known(&self) {
        self.unknown_in_a_row.store(0, Ordering::Release);
    }

    /// An outcome is unknown. The one that opens the breaker starts its probe.
    pub(super) fn unknown(self: &Arc<Self>) {
        let in_a_row = self
            .unknown_in_a_row
            .fetch_add(1, Ordering::AcqRel)
            .saturating_add(1);
        if in_a_row >= self.settings.unknown_outcomes_max && !self.open.swap(true, Ordering::AcqRel)
        {
            tracing::error!(in_a_row, "Stripe's outcomes are unknown: money is refused");
            tokio::spawn(Arc::clone(self).probe());
        }
    }

    async fn probe(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.settings.probe_interval).await;
            if self.upstream.is_healthy().await {
                self.unknown_in_a_row.store(0, Ordering::Release);
                self.open.store(false, Ordering::Release);
                tracing::info!("Stripe answers again: money is accepted");
                return;
            }
        }
    }
}
