//! The decision: what happens to one request that can move money (design §3.3).
//!
//! [`decide`] is a pure function of the vault key and its cap, the request rows of this idempotency
//! key, the rows that hold its slot and intent, and the request. First match wins, in the order of
//! the functions below.

mod create;
mod existing;
mod limits;
mod observed;

#[cfg(test)]
mod tests;

use super::digest::Digest16;
use super::flag::FlagKind;
use super::id::{ReservationId, VaultKeyId};
use super::idempotency::{ClientKey, DerivedKey, Fingerprint};
use super::money::{AmountMinor, Money};
use super::operation::MoneyOperation;
use super::refusal::Refusal;
use super::reservation::{Request, Reservation, Slot, State};
use super::time::UnixMs;
use super::vault_key::VaultKey;

use observed::Observed;

/// How long a reservation may wait for its first byte to leave.
pub const FORWARD_WINDOW_MS: i64 = 30_000;

/// How long after the first unproven send the same key may be sent again. Stripe may forget keys from
/// 24 h on (contract §2.1) and would then charge anew; the hour is the margin.
pub const RESEND_WINDOW_MS: i64 = 23 * 3_600_000;

/// What one request asks for, fully judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The key it came with.
    pub vault_key: VaultKeyId,
    /// That key's namespace (it never changes).
    pub namespace: String,
    /// That key's billing period (it never changes).
    pub billing_period: String,
    /// What it does.
    pub operation: MoneyOperation,
    /// The account whose money moves; empty for the platform's own.
    pub account: String,
    /// The customer it names.
    pub customer: Option<String>,
    /// `Spendcap-Reference`.
    pub reference: String,
    /// The most it can move.
    pub money: Money,
    /// The object it works on; `None` for a create.
    pub target: Option<Target>,
    /// Its idempotency key.
    pub key: ClientKey,
    /// What it asks with.
    pub fingerprint: Fingerprint,
    /// First look, or again after a wait.
    pub look: Look,
}

/// An object that exists at Stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its id.
    pub object_id: String,
    /// The reservation that owns it and the vault key whose cap that uses, where the ledger knows one.
    pub owner: Option<(ReservationId, VaultKeyId)>,
}

/// Whether this request was decided before and waited: its flags are counted once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Not decided before.
    First,
    /// Decided before, waited since.
    Again,
}

impl Ask {
    /// The slot it bills; creates with a customer only.
    pub fn slot(&self) -> Option<Slot> {
        if self.target.is_some() {
            return None;
        }
        Some(Slot {
            account: self.account.clone(),
            namespace: self.namespace.clone(),
            billing_period: self.billing_period.clone(),
            customer: self.customer.clone()?,
            reference: self.reference.clone(),
        })
    }

    /// Names the intent within its slot.
    pub fn intent_digest(&self) -> Option<Digest16> {
        let slot = self.slot()?;
        Some(slot.intent_digest(self.operation, self.money.amount, self.money.currency))
    }
}

/// A request row and what it points at.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The row.
    pub request: &'a Request,
    /// Its reservation.
    pub reservation: &'a Reservation,
}

/// What the ledger knows that bears on one request, read under the vault key's lock.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The store's clock.
    pub now: UnixMs,
    /// The vault key with its caps, as it stands now.
    pub vault_key: Option<&'a VaultKey>,
    /// The row of a given key, or of the first derived one.
    pub known: Option<Known<'a>>,
    /// The row of the derived key for another amount.
    pub known_other_amount: Option<Known<'a>>,
    /// The unreleased row that holds the slot.
    pub slot_holder: Option<&'a Reservation>,
    /// The unreleased row that holds the intent.
    pub intent_holder: Option<&'a Reservation>,
    /// The row that owns the target.
    pub owner: Option<&'a Reservation>,
    /// The vault key whose cap the owner uses.
    pub owner_key: Option<&'a VaultKey>,
}

/// What to do, and what to record about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// What was observed.
    pub flags: Vec<Observation>,
}

/// A flag and the row it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// `None` for the reservation that this decision makes.
    pub reservation: Option<ReservationId>,
    /// What was observed.
    pub kind: FlagKind,
}

/// The idempotency key to record and to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyUse {
    /// Its name in the ledger.
    pub digest: Digest16,
    /// What Stripe sees.
    pub upstream_text: String,
    /// Stored declines behind it, for derived keys.
    pub attempt: u32,
}

/// What to do with a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Make a reservation and send.
    Reserve {
        /// The key to send under.
        key: KeyUse,
        /// The slot it takes.
        slot_claim: Option<Digest16>,
        /// The intent it takes.
        intent_claim: Option<Digest16>,
    },
    /// Send a new operation on an object whose reservation exists.
    SendOn {
        /// The owner.
        reservation: ReservationId,
        /// What is reserved on top.
        additional: AmountMinor,
        /// The key to send under.
        key: KeyUse,
    },
    /// Send once more what was sent, under the key it was first sent with.
    Resend {
        /// What was sent.
        reservation: ReservationId,
        /// This request's own key, recorded as one of that reservation.
        key: KeyUse,
    },
    /// Read the object that exists and answer with it.
    Read {
        /// What made it.
        reservation: ReservationId,
        /// The object.
        object_id: String,
        /// This request's own key, recorded as one of that reservation.
        key: KeyUse,
    },
    /// Wait for that reservation's outcome, then decide again.
    Wait {
        /// What to wait for.
        reservation: ReservationId,
    },
    /// Answer with a refusal; nothing is sent, nothing is stored under the key.
    Refuse(Refusal),
}

/// Decides one request.
pub fn decide(facts: &Facts<'_>, ask: &Ask) -> Decision {
    let mut observed = Observed::at(ask.look);
    let action = decide_action(facts, ask, &mut observed).unwrap_or_else(Action::Refuse);
    Decision {
        action,
        flags: observed.into_flags(),
    }
}

fn decide_action(facts: &Facts<'_>, ask: &Ask, observed: &mut Observed) -> Result<Action, Refusal> {
    let vault_key = facts.vault_key.ok_or(Refusal::VaultKeyInvalid)?;
    vault_key.check_money(facts.now)?;
    let (key, known) = recognise(facts, ask, observed)?;
    if let Some(known) = known {
        observed.on(known.reservation.id, FlagKind::IdempotencyKeyRepeated);
        if let Some(action) = repeat(facts.now, ask, known.reservation, &key)? {
            return Ok(action);
        }
    }
    match &ask.target {
        None => create::decide(facts, vault_key, ask, key, observed),
        Some(_) => existing::decide(facts, vault_key, ask, key, observed),
    }
}

/// Step 2, first half: which key this is, and the row that knows it. A key that is bound to other
/// parameters is refused as Stripe would (contract §2.2).
fn recognise<'a>(
    facts: &Facts<'a>,
    ask: &Ask,
    observed: &mut Observed,
) -> Result<(KeyUse, Option<Known<'a>>), Refusal> {
    match &ask.key {
        ClientKey::Given { digest, text } => {
            let key = KeyUse {
                digest: *digest,
                upstream_text: text.clone(),
                attempt: 0,
            };
            match facts.known {
                Some(known) if binds(&known) && !asks_the_same(&known, ask) => {
                    observed.on(known.reservation.id, FlagKind::IdempotencyKeyReused);
                    Err(Refusal::IdempotencyKeyReused { key: text.clone() })
                }
                // Not bound and other parameters: Stripe never stored it, so it is a new key.
                Some(known) if !asks_the_same(&known, ask) => Ok((key, None)),
                known => Ok((key, known)),
            }
        }
        ClientKey::Derived {
            first,
            other_amount,
        } => {
            // The key of an operation on an object is made from all its parameters: it has no other.
            let bound_elsewhere = ask.target.is_none()
                && facts
                    .known
                    .is_some_and(|known| binds(&known) && !same_intent(known.reservation, ask));
            // This amount was sent under its own key while the first one was bound: it still is, even
            // where the first one has come free since.
            let known_by_amount = facts.known_other_amount.is_some_and(|known| {
                known.reservation.state != State::Released && same_intent(known.reservation, ask)
            });
            match (bound_elsewhere || known_by_amount, other_amount) {
                (true, Some(other)) => Ok(derived(other, facts.known_other_amount)),
                (true, None) => Err(Refusal::IdempotencyKeyReused {
                    key: first.upstream_text(0),
                }),
                (false, _) => Ok(derived(first, facts.known)),
            }
        }
    }
}

fn derived<'a>(key: &DerivedKey, known: Option<Known<'a>>) -> (KeyUse, Option<Known<'a>>) {
    let attempt = known.map_or(0, |known| {
        let row = known.reservation;
        let declined = row.state == State::Released && row.outcome_stored;
        row.attempt.saturating_add(u32::from(declined))
    });
    (
        KeyUse {
            digest: key.digest,
            upstream_text: key.upstream_text(attempt),
            attempt,
        },
        known,
    )
}

/// Only unresolved rows and outcomes that Stripe stored bind a key: after a 429, say, Stripe knows
/// nothing of it.
fn binds(known: &Known<'_>) -> bool {
    let row = known.reservation;
    row.state != State::Released
        || (row.outcome_stored && row.send.upstream_key == known.request.key)
}

/// Whether the key came with the same parameters before. What a rebuilt row was asked with is not known:
/// its charge tells what for.
fn asks_the_same(known: &Known<'_>, ask: &Ask) -> bool {
    if known.request.fingerprint == Fingerprint::UNKNOWN {
        let row = known.reservation;
        return ask.target.is_none() && same_intent(row, ask) && row.customer == ask.customer;
    }
    known.request.fingerprint == ask.fingerprint
}

/// Same operation, amount and currency: payment method, metadata and description do not make a new
/// intent.
fn same_intent(row: &Reservation, ask: &Ask) -> bool {
    row.operation == ask.operation
        && row.amount == ask.money.amount
        && row.currency == ask.money.currency
}

/// Step 2, second half: a key that is known with the same parameters. `None` goes on as a new request.
fn repeat(
    now: UnixMs,
    ask: &Ask,
    row: &Reservation,
    key: &KeyUse,
) -> Result<Option<Action>, Refusal> {
    let reopened = ask.target.is_some() && row.state == State::Open;
    if row.state == State::Released || reopened {
        return Ok(None);
    }
    join(now, ask, row, key).map(Some)
}

/// Follows a reservation that already stands for what is asked: never a second one beside it.
fn join(now: UnixMs, ask: &Ask, row: &Reservation, key: &KeyUse) -> Result<Action, Refusal> {
    // A later operation on the object is under way: this one was answered before it began.
    let answered = row.send.operation != ask.operation && row.object_id.is_some();
    match row.state {
        State::Settled | State::Open => read(row, key),
        State::InFlight | State::Held if answered => read(row, key),
        State::InFlight => Ok(Action::Wait {
            reservation: row.id,
        }),
        State::Held => resend(now, ask, row, key),
        State::Released | State::WrittenOff => Err(Refusal::OutcomeUnknown { retryable: false }),
    }
}

fn read(row: &Reservation, key: &KeyUse) -> Result<Action, Refusal> {
    let object_id = row
        .object_id
        .clone()
        .ok_or(Refusal::OutcomeUnknown { retryable: false })?;
    Ok(Action::Read {
        reservation: row.id,
        object_id,
        key: key.clone(),
    })
}

fn resend(now: UnixMs, ask: &Ask, row: &Reservation, key: &KeyUse) -> Result<Action, Refusal> {
    let first = row.send.first_unproven_at.unwrap_or(row.created_at);
    // A first send in the future is a clock that went back: nobody can say how old it is.
    let young = (0..RESEND_WINDOW_MS).contains(&now.ms_since(first));
    // Bodies are not stored, so only a request that asks for the very same can be sent in its place.
    if young && row.send.fingerprint == ask.fingerprint {
        Ok(Action::Resend {
            reservation: row.id,
            key: key.clone(),
        })
    } else {
        Err(Refusal::OutcomeUnknown { retryable: true })
    }
}
