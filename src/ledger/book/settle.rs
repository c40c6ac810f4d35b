//! Outcomes and deadlines meet the book.

use super::{Book, BookError};
use crate::domain::flag::FlagKind;
use crate::domain::id::{ReservationId, VaultKeyId};
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, State};
use crate::domain::settlement::{DoubleCharge, Facts, Report, settle};
use crate::ledger::command::Settled;

impl Book {
    pub(super) fn settle(&mut self, report: &Report) -> Result<Settled, BookError> {
        let carried = &report.reservation;
        let Some(row) = self.reservations.get(&carried.id).cloned() else {
            return self.settle_lost(report);
        };
        if !is_same(&row, carried) {
            // The row is gone and so was the count of its id: the outcome must not move another's money.
            let mut report = report.clone();
            report.reservation.id = self.take_id()?;
            return self.settle_lost(&report);
        }
        let facts = self.settle_facts(&row, &report.outcome);
        let settlement = settle(&row, report, &facts);
        let (currency, vault_key) = (row.currency, row.vault_key.clone());
        let came_back = !row.state.is_reserved()
            && row.state != State::Settled
            && matches!(settlement.row.state, State::Open | State::Settled);
        if settlement.row != row {
            self.put(settlement.row.clone())?;
        }
        for kind in &settlement.flags {
            self.flag(row.id, *kind);
        }
        if settlement.flags.contains(&FlagKind::ForeignReplay)
            && let Some(owner) = facts.object_owner
        {
            self.hand_over_claims(&row, owner)?;
        }
        if let Some(double) = &settlement.double_charge {
            self.record_double_charge(&row, double)?;
        }
        let over = came_back && self.is_over(&vault_key, currency);
        if settlement.stop_key || over {
            self.stop_key(&vault_key);
        }
        Ok(Settled {
            state: settlement.row.state,
            flags: settlement.flags,
            remaining: self.remaining(&vault_key, currency),
        })
    }

    fn settle_facts(&self, row: &Reservation, outcome: &Outcome) -> Facts {
        let taken = |claim| self.holder(claim).is_some_and(|holder| holder.id != row.id);
        let owner = outcome
            .object_id()
            .and_then(|id| self.object_owner(&row.account, id))
            // A capture that adopted the object holds no slot: who made it is yet to be told, so it counts
            // at both.
            .filter(|owner| owner.state != State::Released && owner.operation == row.operation);
        Facts {
            now: self.now,
            object_owner: owner.map(|owner| owner.id),
            slot_taken: taken(row.slot_claim),
            intent_taken: taken(row.intent_claim),
        }
    }

    /// The object that `row` was given is counted at `owner`, which billed the same place before and came
    /// back without its claims because `row` held them: they are the owner's again, or the place would
    /// look free although it is billed.
    fn hand_over_claims(
        &mut self,
        row: &Reservation,
        owner: ReservationId,
    ) -> Result<(), BookError> {
        let Some(owner) = self.reservations.get(&owner).cloned() else {
            return Ok(());
        };
        if place(row) != place(&owner) {
            return Ok(());
        }
        let mut billed = owner.clone();
        billed.slot_claim = owner.slot_claim.or(row.slot_claim);
        billed.intent_claim = owner.intent_claim.or(row.intent_claim);
        if billed == owner {
            return Ok(());
        }
        self.put(billed)
    }

    /// The reservation that already counts the object which `outcome` names for a row without one.
    pub(super) fn foreign_owner(
        &self,
        row: &Reservation,
        outcome: &Outcome,
    ) -> Option<ReservationId> {
        let owner = self.settle_facts(row, outcome).object_owner?;
        (row.object_id.is_none() && owner != row.id).then_some(owner)
    }

    /// The row is gone (a restored or lagging database): it is rebuilt as it was sent, unless the outcome
    /// says that there is nothing to remember. What its amount was reserved from may be spent since: then
    /// the key stops, as after any late proof.
    fn settle_lost(&mut self, report: &Report) -> Result<Settled, BookError> {
        let mut row = report.reservation.clone();
        let nothing = Settled {
            state: State::Released,
            flags: Vec::new(),
            remaining: self.remaining(&row.vault_key, row.currency),
        };
        // A refused operation leaves its object as it was: still open, still reserved.
        let owns_object = row.object_id.is_some() && row.send.operation != row.operation;
        match report.outcome {
            Outcome::NotSent | Outcome::RefusedThisSend
                if row.send.unproven <= 1 && !owns_object =>
            {
                return Ok(nothing);
            }
            Outcome::StoredRefusal if !owns_object => return Ok(nothing),
            Outcome::Dead { .. } => return Ok(nothing),
            _ => {}
        }
        let facts = self.settle_facts(&row, &report.outcome);
        row.slot_claim = row.slot_claim.filter(|_| !facts.slot_taken);
        row.intent_claim = row.intent_claim.filter(|_| !facts.intent_taken);
        if !self.vault_keys.contains_key(&row.vault_key) {
            return Err(BookError::UnknownVaultKey(row.vault_key));
        }
        let (vault_key, currency) = (row.vault_key.clone(), row.currency);
        self.put(row)?;
        let settled = self.settle(report)?;
        if settled.state != State::Released && self.is_over(&vault_key, currency) {
            self.stop_key(&vault_key);
        }
        Ok(settled)
    }

    pub(super) fn is_over(&self, vault_key: &VaultKeyId, currency: Currency) -> bool {
        self.cap(vault_key, currency)
            .is_some_and(|cap| cap.used() > cap.max_amount)
    }

    /// Money moved twice for one intent: the second object gets a row of its own, over the cap if need be.
    fn record_double_charge(
        &mut self,
        row: &Reservation,
        double: &DoubleCharge,
    ) -> Result<(), BookError> {
        let id = self.take_id()?;
        let mut second = row.clone();
        second.id = id;
        (second.slot_claim, second.intent_claim) = (None, None);
        second.object_id = Some(double.object_id.clone());
        second.amount_reserved = double.reserved;
        second.amount_settled = double.settled;
        second.amount = double.reserved.saturating_add(double.settled);
        let settled = double.settled > AmountMinor::ZERO;
        second.state = if settled { State::Settled } else { State::Open };
        second.send.unproven = 0;
        second.send.first_unproven_at = None;
        second.server_error = false;
        second.amount_refunded = AmountMinor::ZERO;
        second.outcome_stored = true;
        second.created_at = self.now;
        second.resolved_at = settled.then_some(self.now);
        self.put(second)?;
        self.flag(id, FlagKind::DoubleCharge);
        Ok(())
    }

    /// Holds every loaded in-flight row past its deadline: nobody may say any more what became of it.
    pub(super) fn sweep(&mut self) -> Result<usize, BookError> {
        let overdue: Vec<ReservationId> = self
            .reservations
            .values()
            .filter(|row| row.state == State::InFlight && row.send.deadline <= self.now)
            .map(|row| row.id)
            .collect();
        for id in &overdue {
            if let Some(row) = self.reservations.get(id) {
                let held = Reservation {
                    state: State::Held,
                    ..row.clone()
                };
                self.put(held)?;
            }
        }
        Ok(overdue.len())
    }
}

/// Where a create bills, and what.
fn place(row: &Reservation) -> impl PartialEq + '_ {
    let slot = (&row.account, &row.namespace, &row.billing_period);
    let asked = (row.operation, row.amount, row.currency);
    (slot, &row.customer, &row.reference, asked)
}

/// Whether the stored row is the one that was sent, told by what never changes of it. After a restore the
/// database may hand out an id again that a process still carries.
fn is_same(row: &Reservation, carried: &Reservation) -> bool {
    let origin = |row: &Reservation| {
        let asked = (row.operation, row.amount, row.currency, row.created_at);
        (row.vault_key.clone(), row.customer.clone(), asked)
    };
    origin(row) == origin(carried)
}
