//! The faults that are set, and an outage if there is one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::api::Call;
use super::faults::{Fault, FaultKind, Outage};

/// The faults that are set, in the order in which they were.
#[derive(Debug, Default)]
pub(crate) struct FaultBoard {
    /// Spares every request the lock while nothing is set.
    count: AtomicUsize,
    faults: Mutex<Vec<Fault>>,
    outage: Mutex<Outage>,
}

impl FaultBoard {
    pub(crate) fn add(&self, fault: Fault) {
        self.change(|faults| faults.push(fault));
    }

    /// Takes every fault off and ends an outage.
    pub(crate) fn clear(&self) {
        self.change(Vec::clear);
        self.set_outage(Outage::Off);
    }

    pub(crate) fn outage(&self) -> Outage {
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_outage(&self, outage: Outage) {
        *self.outage.lock().unwrap_or_else(PoisonError::into_inner) = outage;
    }

    /// Takes the gates off, so that released requests and their repeats go through.
    pub(crate) fn clear_gates(&self) {
        self.change(|faults| faults.retain(|f| !matches!(f.kind, FaultKind::Gate { .. })));
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.lock().clone()
    }

    /// The first fault that meets the call; uses up one of its times.
    pub(crate) fn take(&self, call: &Call) -> Option<FaultKind> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut taken = None;
        self.change(|faults| {
            let Some(index) = faults.iter().position(|fault| fault.meets(call)) else {
                return;
            };
            taken = Some(faults[index].kind);
            if let Some(times) = &mut faults[index].times {
                *times = times.saturating_sub(1);
                if *times == 0 {
                    faults.remove(index);
                }
            }
        });
        taken
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Fault>)) {
        let mut faults = self.lock();
        edit(&mut faults);
        self.count.store(faults.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
