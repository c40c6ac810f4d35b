//! The breaker: after some unknown outcomes in a row, money is refused before anything is sent, so that
//! an outage of Stripe costs ten held rows and not ten thousand. A read closes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::tasks::Tasks;
use super::upstream::Upstream;
use crate::domain::refusal::Refusal;
use crate::telemetry::metrics::Metrics;

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
    tasks: Tasks,
    metrics: Arc<Metrics>,
    unknown_in_a_row: AtomicU32,
    open: AtomicBool,
}

impl Breaker {
    pub(super) fn new(
        settings: BreakerSettings,
        upstream: Arc<Upstream>,
        tasks: Tasks,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            settings,
            upstream,
            tasks,
            metrics,
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
            self.metrics.breaker(true);
            tracing::error!(in_a_row, "Stripe's outcomes are unknown: money is refused");
            self.tasks.spawn_aside(Arc::clone(self).probe());
        }
    }

    async fn probe(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.settings.probe_interval).await;
            if self.upstream.is_healthy().await {
                self.half_open();
                tracing::info!("Stripe answers again: money is accepted");
                return;
            }
        }
    }

    /// A read that works does not say that charges do: the next unknown outcome opens it again, and the
    /// next known one closes it for good. So an outage of charges alone costs one held row a probe.
    fn half_open(&self) {
        let one_short = self.settings.unknown_outcomes_max.saturating_sub(1);
        self.unknown_in_a_row.store(one_short, Ordering::Release);
        self.metrics.breaker(false);
        self.open.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use http::uri::{Authority, Scheme};
    use secrecy::SecretString;

    use super::*;
    use crate::clock::Clock;
    use crate::proxy::{RealKey, UpstreamSettings};

    fn breaker() -> Arc<Breaker> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let upstream = UpstreamSettings {
            scheme: Scheme::HTTP,
            authority: Authority::from_static("127.0.0.1:9"),
            tls,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
        };
        let key = RealKey::new(SecretString::from("sk_test_1"));
        let settings = BreakerSettings {
            unknown_outcomes_max: 3,
            probe_interval: Duration::from_hours(1),
        };
        let metrics = Arc::new(Metrics::new().unwrap());
        let upstream = Upstream::new(upstream, Clock::system(), key, Arc::clone(&metrics));
        Arc::new(Breaker::new(
            settings,
            Arc::new(upstream),
            Tasks::default(),
            metrics,
        ))
    }

    #[tokio::test]
    async fn it_opens_at_the_bound_and_only_for_outcomes_in_a_row() {
        let breaker = breaker();
        breaker.unknown();
        breaker.unknown();
        breaker.known();
        breaker.unknown();
        breaker.unknown();
        assert_eq!(breaker.admit(), Ok(()));
        breaker.unknown();
        assert_eq!(breaker.admit(), Err(Refusal::UpstreamUnhealthy));
    }

    #[tokio::test]
    async fn after_a_probe_one_more_unknown_outcome_opens_it_again() {
        let breaker = breaker();
        (0..3).for_each(|_| breaker.unknown());
        breaker.half_open();
        assert_eq!(breaker.admit(), Ok(()));
        breaker.unknown();
        assert_eq!(breaker.admit(), Err(Refusal::UpstreamUnhealthy));
        breaker.half_open();
        breaker.known();
        breaker.unknown();
        assert_eq!(breaker.admit(), Ok(()));
    }
}
