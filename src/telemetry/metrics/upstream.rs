//! What is asked of Stripe, and how it answers.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge, Registry};

use super::label::{Operation, PerOperation, PerUpstreamStatus, UpstreamStatus};
use super::{MetricsError, counters, gauge, histograms};

/// From a sandbox next door to the upstream timeout.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 80.0,
];

/// The metrics of the way to Stripe.
#[derive(Debug)]
pub(super) struct Upstream {
    responses: PerOperation<PerUpstreamStatus<IntCounter>>,
    seconds: PerOperation<Histogram>,
    breaker_open: IntGauge,
}

impl Upstream {
    pub(super) fn new(registry: &Registry) -> Result<Self, MetricsError> {
        let responses = counters(
            registry,
            "spendcap_upstream_responses_total",
            "Requests to Stripe by what was asked and how it answered.",
            &["operation", "status"],
        )?;
        let seconds = histograms(
            registry,
            "spendcap_upstream_seconds",
            "Time from a request to Stripe until its answer, or until none came.",
            SECONDS,
        )?;
        Ok(Self {
            responses: PerOperation::of_each(|operation| {
                PerUpstreamStatus::of_each(|status| {
                    responses.with_label_values(&[operation.as_str(), status.as_str()])
                })
            }),
            seconds: PerOperation::of_each(|operation| {
                seconds.with_label_values(&[operation.as_str()])
            }),
            breaker_open: gauge(
                registry,
                "spendcap_breaker_open",
                "1 while money is refused because Stripe's outcomes are unknown.",
            )?,
        })
    }

    pub(super) fn answered(&self, operation: Operation, status: UpstreamStatus, took: Duration) {
        self.responses.of(operation).of(status).inc();
        self.seconds.of(operation).observe(took.as_secs_f64());
    }

    pub(super) fn breaker(&self, open: bool) {
        self.breaker_open.set(i64::from(open));
    }
}
