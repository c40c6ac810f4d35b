//! Wakes requests that wait for a reservation's outcome.

use std::collections::HashMap;

use tokio::sync::watch;

use crate::domain::id::ReservationId;
use crate::ledger::command::{Answer, Control, Verdict, Work};

/// More than this many are looked through for ones nobody waits on any more.
const PRUNE_ABOVE: usize = 1024;

/// One channel for each reservation somebody waits for; dropping it is the signal.
#[derive(Default)]
pub(super) struct Wakers {
    waited_for: HashMap<ReservationId, watch::Sender<()>>,
}

impl Wakers {
    /// Hands a waiting caller its channel, or wakes those who wait for what was just recorded. Runs in
    /// the writer, after the commit, in the order of the commands: no outcome slips between.
    pub(super) fn after(&mut self, work: &Work, answer: &mut Answer) {
        if let Answer::Verdict(Verdict::Wait(waiting)) = answer {
            let sender = self.waited_for.entry(waiting.reservation);
            waiting.woken = Some(sender.or_insert_with(|| watch::channel(()).0).subscribe());
        }
        match work {
            Work::Settle(report) => drop(self.waited_for.remove(&report.reservation.id)),
            Work::Sweep => self.waited_for.clear(),
            Work::Control(request) => {
                if let Control::Resolve { reservation, .. } = &request.control {
                    drop(self.waited_for.remove(&reservation.id));
                }
            }
            Work::Reserve(_) => {}
        }
    }

    /// Drops the channels of callers that gave up; another process's outcome never comes through here.
    pub(super) fn prune(&mut self) {
        if self.waited_for.len() > PRUNE_ABOVE {
            self.waited_for
                .retain(|_, sender| sender.receiver_count() > 0);
        }
    }
}
