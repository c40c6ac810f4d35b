//! `[reconcile]`: how it is found out at Stripe what became of what is held or open.

use std::time::Duration;

use super::ms;
use crate::config::reader::Reader;

/// How it is found out at Stripe what became of what is held or open (design §3.4).
#[derive(Clone, Debug)]
pub struct ReconcileConfig {
    /// Whether it is done at all.
    pub enabled: bool,
    /// How long between two looks; also how soon a row is looked at again.
    pub interval: Duration,
    /// The most reads a second. Stripe counts them together with everybody else's.
    pub reads_per_second: u32,
    /// How often the event feed is read on, for refunds and for charges that went around.
    pub feed_interval: Duration,
    /// Whether what left no trace at Stripe is given up after a day.
    pub write_off: bool,
}

impl ReconcileConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "reconcile";
        let enabled = reader.truth(SECTION, "enabled");
        let interval = reader.duration_ms(SECTION, "interval_ms", 10..=3_600_000);
        let reads_per_second = reader.integer(SECTION, "reads_per_second", 1..=100);
        let feed_interval = reader.duration_ms(SECTION, "feed_interval_ms", 10..=3_600_000);
        let write_off = reader.truth(SECTION, "write_off");
        Self {
            enabled: enabled.unwrap_or(true),
            interval: ms(interval, 10_000),
            reads_per_second: reads_per_second.unwrap_or(3),
            feed_interval: ms(feed_interval, 60_000),
            write_off: write_off.unwrap_or(false),
        }
    }
}
