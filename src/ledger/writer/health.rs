//! Whether the ledger can be written: what a probe that only reads does not see (a full disk, a locked
//! file, a database that became read-only).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the writer, read by whoever asks. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Writable(Arc<AtomicBool>);

impl Writable {
    /// Until a write fails, a ledger that was opened can be written.
    pub(in crate::ledger) fn yes() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub(in crate::ledger) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self) {
        self.0.store(false, Ordering::Release);
    }

    pub(super) fn works(&self) {
        if !self.0.swap(true, Ordering::AcqRel) {
            tracing::info!("The ledger is written again");
        }
    }
}
