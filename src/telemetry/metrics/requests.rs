//! The requests of the data plane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};

use super::label::{
    Decision, DuplicateAction, Operation, PerDecision, PerDuplicateAction, PerOperation,
};
use super::{Metrics, MetricsError, counters, gauge, histograms};
use crate::stripe::envelope;

/// From nothing to wait for, to the longest that a repeat waits for the first request.
const OVERHEAD_SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 30.0,
];

/// What is counted of requests.
#[derive(Debug)]
pub(super) struct Requests {
    total: PerOperation<PerDecision<IntCounter>>,
    refusals: IntCounterVec,
    duplicates: PerDuplicateAction<IntCounter>,
    overhead: PerOperation<Histogram>,
    in_flight: IntGauge,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Self, MetricsError> {
        let total = counters(
            registry,
            "spendcap_requests_total",
            "Requests of the data plane, each once, by what was decided.",
            &["operation", "decision"],
        )?;
        let refusals = counters(
            registry,
            "spendcap_refusals_total",
            "Answers that spendcap made in place of Stripe's, by error code.",
            &["code"],
        )?;
        for code in envelope::codes() {
            refusals.with_label_values(&[code]);
        }
        let duplicates = counters(
            registry,
            "spendcap_duplicates_total",
            "Requests for what was charged already, by what became of them.",
            &["action"],
        )?;
        let overhead = histograms(
            registry,
            "spendcap_overhead_seconds",
            "Time that spendcap added to a request: its whole time without Stripe's.",
            OVERHEAD_SECONDS,
        )?;
        Ok(Self {
            total: PerOperation::of_each(|operation| {
                PerDecision::of_each(|decision| {
                    total.with_label_values(&[operation.as_str(), decision.as_str()])
                })
            }),
            refusals,
            duplicates: PerDuplicateAction::of_each(|action| {
                duplicates.with_label_values(&[action.as_str()])
            }),
            overhead: PerOperation::of_each(|operation| {
                overhead.with_label_values(&[operation.as_str()])
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
    began: Instant,
    /// Time that is not spendcap's own.
    away: Duration,
}

impl Tally {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        metrics.requests.in_flight.inc();
        Self {
            metrics: Arc::clone(metrics),
            operation: Operation::Other,
            decision: Decision::default(),
            began: Instant::now(),
            away: Duration::ZERO,
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

    /// It asks for what was charged already.
    pub fn duplicate(&self, action: DuplicateAction) {
        self.metrics.requests.duplicates.of(action).inc();
    }

    /// Waits for what is not spendcap's own time: Stripe, or the client's body.
    pub async fn away<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let come = wait.await;
        self.was_away(began.elapsed());
        come
    }

    /// The same, where the time is known.
    pub fn was_away(&mut self, time: Duration) {
        self.away = self.away.saturating_add(time);
    }

    /// It has its answer; `code` where that is a refusal.
    pub fn answered(self, code: Option<&str>) {
        if let Some(code) = code {
            let refusals = &self.metrics.requests.refusals;
            refusals.with_label_values(&[code]).inc();
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let requests = &self.metrics.requests;
        requests.in_flight.dec();
        requests.total.of(self.operation).of(self.decision).inc();
        let own = self.began.elapsed().saturating_sub(self.away);
        requests
            .overhead
            .of(self.operation)
            .observe(own.as_secs_f64());
    }
}
