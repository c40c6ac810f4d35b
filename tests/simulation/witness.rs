//! Tells the auditor, and the world what the auditor says.

use std::sync::{Arc, Mutex};

use super::auditor::{Auditor, Verdict};
use super::world::{World, lock};

pub(super) struct Witness {
    world: Arc<World>,
    auditor: Mutex<Auditor>,
}

impl Witness {
    pub(super) fn new(world: Arc<World>, slots_are_single: bool) -> Arc<Self> {
        let auditor = Mutex::new(Auditor::new(slots_are_single));
        Arc::new(Self { world, auditor })
    }

    pub(super) fn see(&self, tell: impl FnOnce(&mut Auditor) -> Verdict) {
        if let Err(reason) = tell(&mut lock(&self.auditor)) {
            self.world.fail(&reason);
        }
    }

    pub(super) fn ask<T>(&self, question: impl FnOnce(&Auditor) -> T) -> T {
        question(&lock(&self.auditor))
    }
}
