//! What all parts of one simulated run share: chance, time, the trace, and the first thing that went
//! wrong.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::rng::Rng;

/// One run's surroundings.
pub(super) struct World {
    rng: Mutex<Rng>,
    began: Instant,
    /// No more faults: everything comes to rest.
    calm: AtomicBool,
    trace: Mutex<String>,
    failure: Mutex<Option<String>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    failed: tokio::sync::Notify,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Mutex::new(Rng::new(seed)),
            began: Instant::now(),
            calm: AtomicBool::new(false),
            trace: Mutex::default(),
            failure: Mutex::default(),
            counts: Mutex::default(),
            failed: tokio::sync::Notify::new(),
        }
    }

    /// Milliseconds since the run began: the true time, which no clock in it has to show.
    pub(super) fn ms(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        lock(&self.rng).below(end)
    }

    pub(super) fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        let at = self.below(u64::try_from(of.len()).unwrap());
        &of[usize::try_from(at).unwrap()]
    }

    /// True `permille` times of a thousand.
    pub(super) fn chance(&self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// As [`Self::chance`], but never once the world is calm; counted under its name.
    pub(super) fn fault(&self, name: &'static str, permille: u64) -> bool {
        let happens = permille > 0 && !self.is_calm() && self.chance(permille);
        if happens {
            self.count(name);
        }
        happens
    }

    pub(super) async fn pause(&self, ms_min: u64, ms_max: u64) {
        let ms = ms_min + self.below(ms_max - ms_min + 1);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    /// How long a step between two machines that are well takes: mostly nothing or little.
    pub(super) async fn hop(&self) {
        match self.below(8) {
            0..=2 => {}
            3..=6 => self.pause(1, 3).await,
            _ => self.pause(5, 40).await,
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(super) fn count(&self, name: &'static str) {
        *lock(&self.counts).entry(name).or_insert(0) += 1;
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.counts).clone()
    }

    /// Writes a line of the trace.
    pub(super) fn say(&self, line: std::fmt::Arguments<'_>) {
        use std::fmt::Write as _;
        let _infallible = writeln!(lock(&self.trace), "{:>9} {line}", self.ms());
    }

    pub(super) fn trace(&self) -> String {
        lock(&self.trace).clone()
    }

    /// The run has failed; only the first reason is kept.
    pub(super) fn fail(&self, reason: &str) {
        let mut failure = lock(&self.failure);
        if failure.is_none() {
            self.say(format_args!("FAILED: {reason}"));
            *failure = Some(reason.to_owned());
            self.failed.notify_one();
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Returns once something went wrong.
    pub(super) async fn failed(&self) {
        while self.failure().is_none() {
            self.failed.notified().await;
        }
    }
}

/// Locks a mutex that only one thread ever takes.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
