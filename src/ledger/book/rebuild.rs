//! A charge that no reservation knows meets the book: its reservation was lost and is made again.

use super::control::{Done, Outcomes};
use super::{Book, BookError};
use crate::domain::flag::FlagKind;
use crate::domain::reservation::{Request, Reservation, State};
use crate::ledger::command::{ControlError, EndLost, Rebuild, Subject};

impl Book {
    /// Records the charge whatever the cap, and takes its place: a repeat of it finds it.
    pub(super) fn rebuild(&mut self, lost: &Rebuild) -> Outcomes {
        let wanted = &lost.reservation;
        let object_id = wanted.object_id.as_deref().unwrap_or_default();
        let owner = self
            .object_owner(&wanted.account, object_id)
            .filter(|owner| owner.state != State::Released);
        if let Some(owner) = owner {
            return Ok(Err(ControlError::Known(owner.id)));
        }
        if !self.vault_keys.contains_key(&wanted.vault_key) {
            return Ok(Err(ControlError::NotFound("vault key")));
        }
        let taken = |claim| self.holder(claim).is_some();
        let (slot_taken, intent_taken) = (taken(wanted.slot_claim), taken(wanted.intent_claim));
        let row = Reservation {
            id: self.take_id()?,
            slot_claim: wanted.slot_claim.filter(|_| !slot_taken),
            intent_claim: wanted.intent_claim.filter(|_| !intent_taken),
            ..wanted.clone()
        };
        self.put(row.clone())?;
        self.flag(row.id, FlagKind::Rebuilt);
        self.point_rebuilt(lost, &row);
        if self.is_over(&row.vault_key, row.currency) {
            self.stop_key(&row.vault_key);
        }
        let row = self.reservations.get(&row.id).cloned();
        let row = row.ok_or_else(|| BookError::Missing(object_id.to_owned()))?;
        Ok(Ok(Done {
            action: "reservation.rebuild",
            reason: String::new(),
            detail: format!(
                "{object_id}, {} {} {}, read since {}",
                row.state.as_str(),
                row.amount,
                row.currency,
                lost.since.unix_seconds()
            ),
            subject: Subject::Reservation(Box::new(row)),
        }))
    }

    /// The key that made the charge stands for it, unless it stands for something that may still be.
    fn point_rebuilt(&mut self, lost: &Rebuild, row: &Reservation) {
        let request = Request {
            digest: lost.request,
            key: row.send.upstream_key.clone(),
            reservation: row.id,
            operation: row.operation,
            fingerprint: row.send.fingerprint,
            created_at: row.created_at,
        };
        match self.requests.get(&lost.request) {
            Some(known) => {
                let old = known.reservation;
                let free = self.reservations.get(&old);
                if free.is_some_and(|row| row.state != State::Released) {
                    return;
                }
                if !self.changes.new_requests.contains(&lost.request) {
                    self.changes
                        .moved_requests
                        .entry(lost.request)
                        .or_insert(old);
                }
            }
            None => {
                self.changes.new_requests.insert(lost.request);
            }
        }
        self.requests.insert(lost.request, request);
    }

    /// Takes money again, if nothing that left before could still become a charge when the reading began.
    pub(super) fn end_lost(&mut self, end: &EndLost) -> Result<Done, ControlError> {
        if self.lost.as_ref() != Some(&end.lost) {
            return Err(ControlError::OtherLoss);
        }
        let quiet_at = end.lost.found_at.plus_ms(self.times.deadline_ms);
        if end.read_at < quiet_at {
            return Err(ControlError::TooEarly(quiet_at));
        }
        self.lost = None;
        self.changes.lost_ended = true;
        Ok(Done {
            action: "ledger.reconcile",
            reason: end.reason.clone(),
            detail: format!("{}; {}", end.lost.why, end.detail),
            subject: Subject::Ledger,
        })
    }
}
