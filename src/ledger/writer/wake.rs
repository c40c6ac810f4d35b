//! Wakes requests that wait for a reservation's outcome.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::domain::id::ReservationId;
use crate::ledger::command::{Answer, Control, Verdict, Work};

/// After this many new ones, all are looked through for ones nobody waits on any more.
const PRUNE_EVERY: usize = 1024;

/// One channel for each request that waits for a reservation; dropping it is the signal. They are
/// dropped in the order in which the requests came.
#[derive(Default)]
pub(super) struct Wakers {
    waited_for: BTreeMap<ReservationId, Vec<oneshot::Sender<()>>>,
    /// Since all were looked through.
    new: usize,
}

impl Wakers {
    /// Hands a waiting caller its channel, or wakes those who wait for what was just recorded. Runs in
    /// the writer, after the commit, in the order of the commands: no outcome slips between.
    pub(super) fn after(&mut self, work: &Work, answer: &mut Answer) {
        if let Answer::Verdict(Verdict::Wait(waiting)) = answer {
            let (sender, woken) = oneshot::channel();
            let senders = self.waited_for.entry(waiting.reservation).or_default();
            senders.push(sender);
            self.new += 1;
            waiting.woken = Some(woken);
        }
        match work {
            Work::Settle(report) => drop(self.waited_for.remove(&report.reservation.id)),
            Work::Sweep => self.waited_for.clear(),
            Work::Control(request) => {
                if let Control::Resolve { reservation, .. } = &request.control {
                    drop(self.waited_for.remove(&reservation.id));
                }
            }
            Work::Reserve(_) | Work::Observe(_) | Work::WriteOff(_) => {}
        }
    }

    /// Drops the channels of callers that gave up; another process's outcome never comes through here.
    pub(super) fn prune(&mut self) {
        if self.new > PRUNE_EVERY {
            self.new = 0;
            self.waited_for.retain(|_, senders| {
                senders.retain(|sender| !sender.is_closed());
                !senders.is_empty()
            });
        }
    }
}
