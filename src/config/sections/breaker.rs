//! `[breaker]`: when money stops going to a Stripe that does not answer.

use std::time::Duration;

use super::ms;
use crate::config::reader::Reader;

/// When money stops going to a Stripe that does not answer (design §4).
#[derive(Clone, Debug)]
pub struct BreakerConfig {
    /// How many unknown outcomes in a row open it. Each leaves a held row to resolve.
    pub unknown_outcomes_max: u32,
    /// How often a read asks whether Stripe is back.
    pub probe_interval: Duration,
}

impl BreakerConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "breaker";
        let unknown_outcomes_max = reader.integer(SECTION, "unknown_outcomes_max", 1..=100_000);
        let probe_interval = reader.duration_ms(SECTION, "probe_interval_ms", 10..=600_000);
        Self {
            unknown_outcomes_max: unknown_outcomes_max.unwrap_or(10),
            probe_interval: ms(probe_interval, 5_000),
        }
    }
}
