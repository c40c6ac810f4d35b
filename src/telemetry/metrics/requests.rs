//! The requests of the data plane.

use std::sync::Arc;

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use super::label::{Decision, Operation, PerDecision, PerOperation};
use super::{Metrics, MetricsError, gauge, registered};

/// What is counted of requests.
#[derive(Debug)]
pub(super) struct Requests {
    total: PerOperation<PerDecision<IntCounter>>,
    in_flight: IntGauge,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Self, MetricsError> {
        let total = IntCounterVec::new(
            Opts::new(
                "spendcap_requests_total",
                "Requests of the data plane, each once, by what was decided.",
            ),
            &["operation", "decision"],
        );
        let total = registered(registry, total)?;
        Ok(Self {
            total: PerOperation::of_each(|operation| {
                PerDecision::of_each(|decision| {
                    total.with_label_values(&[operation.as_str(), decision.as_str()])
                })
            }),
            in_flight: gauge(
                registry,
                "spendcap_requests_in_flight",
                "Requests of the data plane under way.",
            )?,
        })
    }
}

/// One request, filled in as it goes along and counted once, when this is dropped: however it ends, and
/// whether or not its client is still there.
#[derive(Debug)]
pub struct Tally {
    metrics: Arc<Metrics>,
    operation: Operation,
    decision: Decision,
}

impl Tally {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.requests.in_flight.inc();
        Self {
            metrics: Arc::clone(metrics),
            operation: Operation::Other,
            decision: Decision::default(),
        }
    }

    /// What the request does is known.
    pub fn operate(&mut self, operation: Operation) {
        self.operation = operation;
    }

    /// What happens to it is decided.
    pub fn decide(&mut self, decision: Decision) {
        self.decision = decision;
    }

    /// What was decided so far.
    pub fn decision(&self) -> Decision {
        self.decision
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let requests = &self.metrics.requests;
        requests.in_flight.dec();
        requests.total.of(self.operation).of(self.decision).inc();
    }
}
