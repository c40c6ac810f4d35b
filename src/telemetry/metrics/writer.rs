//! The ledger's writer.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, Registry};

use super::{MetricsError, registered};

/// From a local file to the longest that a step may take.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 12.0,
];

/// To the largest batch.
const COMMANDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// The metrics of the writer.
#[derive(Debug)]
pub(super) struct Writer {
    commit_seconds: Histogram,
    batch_commands: Histogram,
}

impl Writer {
    pub(super) fn new(registry: &Registry) -> Result<Self, MetricsError> {
        let seconds = HistogramOpts::new(
            "spendcap_ledger_commit_seconds",
            "Time that one batch took in the ledger: load, decide, write, commit.",
        );
        let commands = HistogramOpts::new(
            "spendcap_ledger_batch_commands",
            "Commands that were committed together.",
        );
        let seconds = Histogram::with_opts(seconds.buckets(SECONDS.to_vec()));
        let commands = Histogram::with_opts(commands.buckets(COMMANDS.to_vec()));
        Ok(Self {
            commit_seconds: registered(registry, seconds)?,
            batch_commands: registered(registry, commands)?,
        })
    }

    pub(super) fn committed(&self, commands: usize, took: Duration) {
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        self.batch_commands.observe(f64::from(commands));
        self.commit_seconds.observe(took.as_secs_f64());
    }
}
