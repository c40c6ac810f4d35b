//! A request that can move money meets the book.

use super::{Book, BookError};
use crate::domain::decision::{
    Action, Ask, Decision, FORWARD_WINDOW_MS, Facts, KeyUse, Known, decide,
};
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::idempotency::ClientKey;
use crate::domain::money::AmountMinor;
use crate::domain::refusal::Refusal;
use crate::domain::reservation::{Request, Reservation, SendState, State};
use crate::ledger::command::{Existing, Refused, Ticket, Verdict, Waiting};

impl Book {
    pub(super) fn reserve(&mut self, ask: &Ask) -> Result<Verdict, BookError> {
        if self.lost.is_some() {
            return Ok(Verdict::Refuse(Refused {
                refusal: Refusal::LedgerLostCommits,
                flags: Vec::new(),
            }));
        }
        // A released owner's cap is not touched, so its key need not be at hand.
        let owner = self
            .owner(ask)
            .filter(|owner| owner.state != State::Released);
        if owner.is_some_and(|owner| !self.vault_keys.contains_key(&owner.vault_key)) {
            return Ok(Verdict::LookAgain);
        }
        let decision = decide(&self.facts(ask), ask);
        let kinds: Vec<FlagKind> = decision.flags.iter().map(|flag| flag.kind).collect();
        let (made, verdict) = self.carry_out(ask, &decision, kinds)?;
        for flag in &decision.flags {
            // Flags on a new reservation are dropped with it where the request is refused.
            if let Some(id) = flag.reservation.or(made) {
                self.flag(id, flag.kind);
            }
        }
        Ok(verdict)
    }

    fn owner(&self, ask: &Ask) -> Option<&Reservation> {
        let target = ask.target.as_ref()?;
        self.object_owner(&ask.account, &target.object_id)
    }

    fn facts(&self, ask: &Ask) -> Facts<'_> {
        let (known, known_other_amount) = match &ask.key {
            ClientKey::Given { digest, .. } => (self.known(*digest), None),
            ClientKey::Derived {
                first,
                other_amount,
            } => {
                let other = other_amount
                    .as_ref()
                    .and_then(|other| self.known(other.digest));
                (self.known(first.digest), other)
            }
        };
        let owner = self.owner(ask);
        Facts {
            now: self.now,
            vault_key: self.vault_keys.get(&ask.vault_key),
            known,
            known_other_amount,
            slot_holder: self.holder(ask.slot().map(|slot| slot.digest())),
            intent_holder: self.holder(ask.intent_digest()),
            owner,
            owner_key: owner.and_then(|owner| self.vault_keys.get(&owner.vault_key)),
        }
    }

    fn known(&self, digest: Digest16) -> Option<Known<'_>> {
        let request = self.requests.get(&digest)?;
        let reservation = self.reservations.get(&request.reservation)?;
        Some(Known {
            request,
            reservation,
        })
    }

    /// Returns the row that flags without a row of their own belong to, and the verdict.
    fn carry_out(
        &mut self,
        ask: &Ask,
        decision: &Decision,
        flags: Vec<FlagKind>,
    ) -> Result<(Option<ReservationId>, Verdict), BookError> {
        match &decision.action {
            Action::Reserve {
                key,
                slot_claim,
                intent_claim,
            } => {
                let id = self.take_id()?;
                let row = self.new_row(ask, id, key, (*slot_claim, *intent_claim));
                self.put(row)?;
                self.point(ask, key, id);
                Ok((Some(id), self.ticket(ask, id, flags)?))
            }
            Action::SendOn {
                reservation: id,
                additional,
                key,
            } => {
                let row = self.sent_on(ask, *id, *additional, key)?;
                self.put(row)?;
                self.point(ask, key, *id);
                Ok((Some(*id), self.ticket(ask, *id, flags)?))
            }
            Action::Resend {
                reservation: id,
                key,
            } => {
                let row = self.resent(*id)?;
                self.put(row)?;
                self.point(ask, key, *id);
                Ok((Some(*id), self.ticket(ask, *id, flags)?))
            }
            Action::Read {
                reservation: id,
                object_id,
                key,
            } => {
                self.point(ask, key, *id);
                let row = self.row(*id)?;
                let (state, upstream_key) = (row.state, row.send.upstream_key.clone());
                let remaining = self.remaining(&ask.vault_key, ask.money.currency);
                let object_id = object_id.clone();
                let existing = Existing {
                    reservation: *id,
                    state,
                    object_id,
                    upstream_key,
                    flags,
                    remaining,
                };
                Ok((Some(*id), Verdict::Read(existing)))
            }
            Action::Wait { reservation } => {
                let waiting = Waiting {
                    reservation: *reservation,
                    flags,
                    woken: None,
                };
                Ok((Some(*reservation), Verdict::Wait(waiting)))
            }
            Action::Refuse(refusal) => Ok((
                None,
                Verdict::Refuse(Refused {
                    refusal: refusal.clone(),
                    flags,
                }),
            )),
        }
    }

    fn row(&self, id: ReservationId) -> Result<&Reservation, BookError> {
        // The decision was made from a row of this book, so its id is in the book.
        self.reservations
            .get(&id)
            .ok_or_else(|| BookError::Missing(id.to_string()))
    }

    fn ticket(
        &self,
        ask: &Ask,
        id: ReservationId,
        flags: Vec<FlagKind>,
    ) -> Result<Verdict, BookError> {
        let reservation = Box::new(self.row(id)?.clone());
        // A re-send may be another key's reservation, which adds nothing to that key's cap and so does not
        // load it; who asks is then told about its own.
        let charged = self.vault_keys.contains_key(&reservation.vault_key);
        let vault_key = if charged {
            &reservation.vault_key
        } else {
            &ask.vault_key
        };
        let remaining = self.remaining(vault_key, reservation.currency);
        Ok(Verdict::Send(Ticket {
            reservation,
            flags,
            remaining,
        }))
    }

    fn new_row(
        &self,
        ask: &Ask,
        id: ReservationId,
        key: &KeyUse,
        (slot_claim, intent_claim): (Option<Digest16>, Option<Digest16>),
    ) -> Reservation {
        Reservation {
            id,
            version: 1,
            vault_key: ask.vault_key.clone(),
            account: ask.account.clone(),
            namespace: ask.namespace.clone(),
            billing_period: ask.billing_period.clone(),
            customer: ask.customer.clone(),
            reference: ask.reference.clone(),
            slot_claim,
            intent_claim,
            operation: ask.operation,
            currency: ask.money.currency,
            amount: ask.money.amount,
            amount_reserved: ask.money.amount,
            amount_settled: AmountMinor::ZERO,
            state: State::InFlight,
            object_id: ask.target.as_ref().map(|target| target.object_id.clone()),
            send: self.first_send(ask, key, (1, 1)),
            attempt: key.attempt,
            outcome_stored: false,
            server_error: false,
            amount_refunded: AmountMinor::ZERO,
            created_at: self.now,
            resolved_at: None,
        }
    }

    fn first_send(&self, ask: &Ask, key: &KeyUse, (sends, unproven): (u32, u32)) -> SendState {
        SendState {
            operation: ask.operation,
            upstream_key: key.upstream_text.clone(),
            fingerprint: ask.fingerprint,
            sends,
            unproven,
            first_unproven_at: Some(self.now),
            forward_by: self.now.plus_ms(FORWARD_WINDOW_MS),
            deadline: self.now.plus_ms(self.times.deadline_ms),
        }
    }

    /// A new operation on an open object.
    fn sent_on(
        &self,
        ask: &Ask,
        id: ReservationId,
        additional: AmountMinor,
        key: &KeyUse,
    ) -> Result<Reservation, BookError> {
        let mut row = self.row(id)?.clone();
        let unbalanced = || BookError::Unbalanced(row.vault_key.clone());
        row.amount_reserved = row
            .amount_reserved
            .checked_add(additional)
            .ok_or_else(unbalanced)?;
        row.state = State::InFlight;
        let sends = row.send.sends.saturating_add(1);
        // An earlier operation on the object may still be unproven.
        let unproven = row.send.unproven.saturating_add(1);
        row.send = self.first_send(ask, key, (sends, unproven));
        Ok(row)
    }

    /// The same send once more: a transition of its own, with a new deadline and the old first time.
    fn resent(&self, id: ReservationId) -> Result<Reservation, BookError> {
        let mut row = self.row(id)?.clone();
        row.state = State::InFlight;
        row.send.sends = row.send.sends.saturating_add(1);
        row.send.unproven = row.send.unproven.saturating_add(1);
        row.send.first_unproven_at = row.send.first_unproven_at.or(Some(self.now));
        row.send.forward_by = self.now.plus_ms(FORWARD_WINDOW_MS);
        row.send.deadline = self.now.plus_ms(self.times.deadline_ms);
        Ok(row)
    }

    /// Records that this request's key stands for that reservation.
    fn point(&mut self, ask: &Ask, key: &KeyUse, reservation: ReservationId) {
        let request = Request {
            digest: key.digest,
            key: key.upstream_text.clone(),
            reservation,
            operation: ask.operation,
            fingerprint: ask.fingerprint,
            created_at: self.now,
        };
        match self.requests.get(&key.digest) {
            Some(known) if known.reservation == reservation => return,
            Some(known) => {
                let old = known.reservation;
                if !self.changes.new_requests.contains(&key.digest) {
                    self.changes.moved_requests.entry(key.digest).or_insert(old);
                }
            }
            None => {
                self.changes.new_requests.insert(key.digest);
            }
        }
        self.requests.insert(key.digest, request);
    }
}
