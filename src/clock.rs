//! The two clocks: the time of day, and the time since boot that no suspension stops.
//!
//! Time enters the crate here and nowhere else. The ledger decides by the store's clock: SQLite's is
//! [`Clock::now`], PostgreSQL's is the database's `clock_timestamp()` plus
//! [`Clock::offset_ms`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::domain::time::UnixMs;

/// The system's clock, and an offset that only tests and the sandbox move. Clones share the offset.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    source: Source,
    offset_ms: Arc<AtomicI64>,
}

/// Where the time comes from.
#[derive(Clone, Debug, Default)]
enum Source {
    /// The operating system.
    #[default]
    System,
    /// The runtime's own clock, which a test stops and moves; the first instant is the second's time.
    #[cfg(test)]
    Runtime(tokio::time::Instant, UnixMs),
}

/// A point on this machine's clock since boot, which goes on while the machine is suspended. It
/// means nothing on another machine or after a restart, so it is never stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BootMs(i64);

impl Clock {
    /// The system's clock with no offset.
    pub fn system() -> Self {
        Self::default()
    }

    /// The runtime's clock in place of the system's, beginning now at `started`: a test stops and moves
    /// it, and both clocks of every process in it go by it.
    #[cfg(test)]
    pub(crate) fn of_the_runtime(started: UnixMs) -> Self {
        Self {
            source: Source::Runtime(tokio::time::Instant::now(), started),
            offset_ms: Arc::default(),
        }
    }

    /// The time of day.
    pub fn now(&self) -> UnixMs {
        self.source.time_of_day().plus_ms(self.offset_ms())
    }

    /// The time since boot, for deadlines that a suspended machine must not outlive (design §2.4).
    pub fn boot(&self) -> BootMs {
        BootMs(self.source.since_boot_ms().saturating_add(self.offset_ms()))
    }

    /// How far the clock was moved.
    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    /// Moves this clock and all its clones forward. For tests and the sandbox.
    pub fn advance(&self, by: Duration) {
        self.offset_ms.fetch_add(millis(by), Ordering::AcqRel);
    }
}

impl Source {
    fn time_of_day(&self) -> UnixMs {
        match self {
            Self::System => {
                #[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
                UnixMs(millis(since_epoch.unwrap_or_default()))
            }
            #[cfg(test)]
            Self::Runtime(first, started) => started.plus_ms(millis(first.elapsed())),
        }
    }

    fn since_boot_ms(&self) -> i64 {
        match self {
            Self::System => {
                // macOS has no CLOCK_BOOTTIME; its monotonic clock counts suspension.
                #[cfg(target_os = "linux")]
                let id = ClockId::Boottime;
                #[cfg(not(target_os = "linux"))]
                let id = ClockId::Monotonic;
                millis(Duration::try_from(clock_gettime(id)).unwrap_or_default())
            }
            #[cfg(test)]
            Self::Runtime(first, _) => millis(first.elapsed()),
        }
    }
}

impl BootMs {
    /// This point and `by` later.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }

    /// How long it is from `earlier` to this point; nothing where `earlier` is the later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let ms = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }
}

/// Whole milliseconds; the largest number where they do not fit.
fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_advance_together_on_both_clocks() {
        let clock = Clock::system();
        let (now, boot) = (clock.now(), clock.boot());
        let same_clock = clock.clone();
        same_clock.advance(Duration::from_hours(24));
        assert_eq!(clock.offset_ms(), 86_400_000);
        assert!(clock.now().ms_since(now) >= 86_400_000);
        assert!(clock.boot() >= boot.after(Duration::from_hours(24)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_runtimes_clock_stands_until_it_is_moved() {
        let clock = Clock::of_the_runtime(UnixMs(1000));
        let boot = clock.boot();
        assert_eq!(clock.now(), UnixMs(1000));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(clock.now(), UnixMs(31_000));
        assert_eq!(clock.boot(), boot.after(Duration::from_secs(30)));
    }

    #[test]
    fn the_clocks_tell_a_plausible_time() {
        let clock = Clock::system();
        assert!(clock.now() > UnixMs::from_unix_seconds(1_700_000_000));
        assert!(clock.boot() > BootMs(0));
        assert!(clock.boot() < clock.boot().after(Duration::from_secs(1)));
    }
}
