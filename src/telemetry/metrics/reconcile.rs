//! The reconciler.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry};

use super::{MetricsError, gauge, registered};
use crate::domain::reservation::State;

/// Where a row can end, or be found.
const RESULTS: [State; 4] = [
    State::Settled,
    State::Released,
    State::Open,
    State::WrittenOff,
];

/// What is counted of the reconciler.
#[derive(Debug)]
pub(super) struct Reconciled {
    total: IntCounterVec,
    feed_lag: IntGauge,
    forbidden: IntGauge,
}

impl Reconciled {
    pub(super) fn new(registry: &Registry) -> Result<Self, MetricsError> {
        let total = IntCounterVec::new(
            Opts::new(
                "spendcap_reconciled_total",
                "Reservations whose state this process found out at Stripe, by that state.",
            ),
            &["result"],
        );
        let total = registered(registry, total)?;
        for state in RESULTS {
            total.with_label_values(&[state.as_str()]).reset();
        }
        Ok(Self {
            total,
            feed_lag: gauge(
                registry,
                "spendcap_feed_lag_seconds",
                "How far behind now Stripe's event feed is read, the account that is behind most.",
            )?,
            forbidden: gauge(
                registry,
                "spendcap_reconcile_forbidden",
                "1 while the real key may not read charges or events of some account.",
            )?,
        })
    }

    pub(super) fn found(&self, state: State) {
        if RESULTS.contains(&state) {
            self.total.with_label_values(&[state.as_str()]).inc();
        }
    }

    pub(super) fn feed_lag(&self, seconds: i64) {
        self.feed_lag.set(seconds);
    }

    pub(super) fn forbidden(&self, forbidden: bool) {
        self.forbidden.set(i64::from(forbidden));
    }
}
