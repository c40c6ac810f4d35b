//! What an outcome does to a reservation (design §3.1 and §3.2): a pure step of the state machine.
//!
//! **Invariant:** a reservation is given back only by a proof that speaks of every send so far, and
//! proof that money moved is recorded in whatever state it meets the row.

mod write_off;

#[cfg(test)]
mod tests;

use super::flag::FlagKind;
use super::id::ReservationId;
#[cfg(test)]
use super::mistake::{Mistake, is_planted};
use super::money::AmountMinor;
use super::outcome::Outcome;
use super::reservation::{Reservation, State};
use super::time::UnixMs;

pub use write_off::write_off;

/// One send's outcome, with the whole reservation as its sender knew it, so that a lost row can be
/// rebuilt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The row as it was when it was sent; its `send.sends` names the send.
    pub reservation: Reservation,
    /// What the answer proved.
    pub outcome: Outcome,
}

/// What else the ledger knows that bears on an outcome.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The store's clock.
    pub now: UnixMs,
    /// The unreleased reservation of the same operation that owns the object the outcome names.
    pub object_owner: Option<ReservationId>,
    /// Another unreleased row holds this row's slot.
    pub slot_taken: bool,
    /// Another unreleased row holds this row's intent.
    pub intent_taken: bool,
}

/// The row after an outcome, and what follows from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// The row as it stands now.
    pub row: Reservation,
    /// What was observed about it.
    pub flags: Vec<FlagKind>,
    /// More moved than was reserved, or money moved twice: no more money under this key.
    pub stop_key: bool,
    /// Another object than the row's own: to be recorded as a row of its own.
    pub double_charge: Option<DoubleCharge>,
}

/// A second object for one intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DoubleCharge {
    /// The object.
    pub object_id: String,
    /// What it took, in minor units.
    pub settled: AmountMinor,
    /// What it may still take, in minor units.
    pub reserved: AmountMinor,
}

impl Settlement {
    fn of(row: Reservation) -> Self {
        Self {
            row,
            flags: Vec::new(),
            stop_key: false,
            double_charge: None,
        }
    }

    fn flagged(mut self, kind: FlagKind) -> Self {
        self.flags.push(kind);
        self
    }

    fn stopping(mut self) -> Self {
        self.stop_key = true;
        self
    }
}

/// Applies `report` to the row as the ledger has it. A row that already says so comes back unchanged.
pub fn settle(row: &Reservation, report: &Report, facts: &Facts) -> Settlement {
    let sent = &report.reservation.send;
    let this_send = sent.sends == row.send.sends;
    let same_key = sent.upstream_key == row.send.upstream_key;
    let pending = matches!(row.state, State::InFlight | State::Held);
    #[cfg(test)]
    if row.state != State::InFlight && is_planted(Mistake::SettleDroppedOnAlready) {
        return Settlement::of(row.clone());
    }
    match &report.outcome {
        Outcome::ServerError if pending => Settlement::of(Reservation {
            state: if this_send { State::Held } else { row.state },
            server_error: true,
            ..row.clone()
        }),
        Outcome::Unknown if this_send && row.state == State::InFlight => {
            Settlement::of(with_state(row, State::Held))
        }
        Outcome::NotSent | Outcome::RefusedThisSend if this_send && pending => {
            Settlement::of(refused_this_send(row, facts.now))
        }
        // On an object that exists no refusal speaks of earlier calls (contract §1.8).
        Outcome::StoredRefusal if row.object_id.is_some() && this_send && pending => {
            Settlement::of(refused_this_send(row, facts.now))
        }
        Outcome::StoredRefusal if row.object_id.is_none() && same_key && pending => {
            Settlement::of(released(row, true, facts.now))
        }
        Outcome::Unknown
        | Outcome::ServerError
        | Outcome::NotSent
        | Outcome::RefusedThisSend
        | Outcome::StoredRefusal => Settlement::of(row.clone()),
        Outcome::Dead { object_id } => Settlement::of(dead(row, object_id, facts.now)),
        Outcome::Settled { object_id, amount } => {
            let object = Object {
                id: object_id,
                settled: Some(*amount),
                reserved: AmountMinor::ZERO,
            };
            exists(row, this_send, &object, facts)
        }
        Outcome::Open { object_id, ceiling } => {
            // A row that found its object there only answers for what it asked to take of it.
            let reserved = if row.operation.creates() {
                *ceiling
            } else {
                row.amount
            };
            let object = Object {
                id: object_id,
                settled: None,
                reserved,
            };
            exists(row, this_send, &object, facts)
        }
    }
}

/// An operator says that the money of a row did not move, and will not.
pub fn release(row: &Reservation, now: UnixMs) -> Reservation {
    // An answer that Stripe stored stays stored: the same key would only replay it.
    released(row, row.outcome_stored, now)
}

fn with_state(row: &Reservation, state: State) -> Reservation {
    Reservation {
        state,
        ..row.clone()
    }
}

/// This send did nothing. The row goes back only where it is the only one: of earlier sends it says
/// nothing. The count stays, so that one report recorded twice does not speak for two sends.
fn refused_this_send(row: &Reservation, now: UnixMs) -> Reservation {
    if row.send.unproven <= 1 {
        undo(row, now)
    } else {
        with_state(row, State::Held)
    }
}

/// No send of this operation did anything: an owned object is open as before, a new row is released.
fn undo(row: &Reservation, now: UnixMs) -> Reservation {
    if row.object_id.is_some() && row.send.operation != row.operation {
        let mut open = with_state(row, State::Open);
        open.amount_reserved = row.amount;
        proven(&mut open);
        return open;
    }
    released(row, false, now)
}

fn released(row: &Reservation, stored: bool, now: UnixMs) -> Reservation {
    let mut released = with_state(row, State::Released);
    released.amount_reserved = AmountMinor::ZERO;
    released.outcome_stored = stored;
    released.resolved_at = Some(now);
    proven(&mut released);
    released
}

fn proven(row: &mut Reservation) {
    row.send.unproven = 0;
    row.send.first_unproven_at = None;
    row.server_error = false;
}

/// The object exists and its money can no longer move.
fn dead(row: &Reservation, object_id: &str, now: UnixMs) -> Reservation {
    let own = row
        .object_id
        .as_deref()
        .is_none_or(|known| known == object_id);
    if !own || !row.state.is_reserved() {
        return row.clone();
    }
    let mut released = released(row, true, now);
    released.object_id = Some(object_id.to_owned());
    released
}

struct Object<'a> {
    id: &'a str,
    /// What moved; `None` while it is open.
    settled: Option<AmountMinor>,
    reserved: AmountMinor,
}

/// An object exists at Stripe: the strongest proof there is.
fn exists(row: &Reservation, this_send: bool, object: &Object<'_>, facts: &Facts) -> Settlement {
    let foreign = facts.object_owner.is_some_and(|owner| owner != row.id);
    if foreign && row.object_id.is_none() {
        return foreign_replay(row, facts.now);
    }
    if row
        .object_id
        .as_deref()
        .is_some_and(|known| known != object.id)
    {
        let in_doubt = this_send && row.state == State::InFlight;
        let row = if in_doubt {
            with_state(row, State::Held)
        } else {
            row.clone()
        };
        return if foreign {
            Settlement::of(row)
        } else {
            another_object(row, object)
        };
    }
    let pending = matches!(row.state, State::InFlight | State::Held);
    let began_later = pending && !this_send && row.object_id.is_some();
    match (row.state, object.settled) {
        // An older send found the object open; what the operation since then does is not known.
        (_, None) if began_later => Settlement::of(row.clone()),
        // Given back on what this object came to: that it was open once is older than that.
        (State::Released, None) if row.object_id.is_some() => Settlement::of(row.clone()),
        (State::Settled, None) => Settlement::of(row.clone()),
        (State::Settled, Some(amount)) if amount <= row.amount_settled => {
            Settlement::of(row.clone())
        }
        (State::Released | State::WrittenOff, _) => late(row, object, facts),
        (State::InFlight | State::Open | State::Held | State::Settled, _) => {
            let total = object.settled.unwrap_or(object.reserved);
            let excess = total > row.amount_reserved.saturating_add(row.amount_settled);
            let settlement = Settlement::of(record(row, object, facts.now));
            if excess {
                settlement
                    .flagged(FlagKind::SettledAboveReserved)
                    .stopping()
            } else {
                settlement
            }
        }
    }
}

/// One key makes one object, and this one is counted where it is owned: the row made nothing. Counting
/// it here too would take the money off the cap twice.
fn foreign_replay(row: &Reservation, now: UnixMs) -> Settlement {
    if row.state.is_reserved() {
        Settlement::of(released(row, true, now)).flagged(FlagKind::ForeignReplay)
    } else {
        Settlement::of(row.clone())
    }
}

/// Money moved after the reservation was given back: recorded all the same. The book stops the key
/// where that passes the cap.
fn late(row: &Reservation, object: &Object<'_>, facts: &Facts) -> Settlement {
    let mut row = record(row, object, facts.now);
    row.slot_claim = row.slot_claim.filter(|_| !facts.slot_taken);
    row.intent_claim = row.intent_claim.filter(|_| !facts.intent_taken);
    Settlement::of(row).flagged(FlagKind::LateSettlement)
}

fn record(row: &Reservation, object: &Object<'_>, now: UnixMs) -> Reservation {
    let mut row = row.clone();
    if object.settled.is_none() && row.object_id.is_some() {
        // An object that is known and still open does not tell what the operations on it may yet take.
        row.amount_reserved = row.amount_reserved.max(object.reserved);
    } else {
        row.amount_reserved = object.reserved;
        proven(&mut row);
    }
    row.object_id = Some(object.id.to_owned());
    row.amount_settled = object.settled.unwrap_or(AmountMinor::ZERO);
    row.state = if object.settled.is_some() {
        State::Settled
    } else {
        State::Open
    };
    row.resolved_at = object.settled.map(|_| now);
    row.outcome_stored = true;
    row
}

/// The row has its own object, and the answer names one that no reservation knows.
fn another_object(row: Reservation, object: &Object<'_>) -> Settlement {
    let mut settlement = Settlement::of(row).stopping();
    settlement.double_charge = Some(DoubleCharge {
        object_id: object.id.to_owned(),
        settled: object.settled.unwrap_or(AmountMinor::ZERO),
        reserved: object.reserved,
    });
    settlement
}
