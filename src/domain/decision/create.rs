//! Creates: the slot, the duplicate policies, the reservation (design §3.3, steps 3 to 6).

use super::limits::{self, Limits};
use super::{Action, Ask, Facts, KeyUse, Observed, join};
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::refusal::Refusal;
use crate::domain::reservation::{Reservation, State};
use crate::domain::vault_key::{OnDuplicate, VaultKey};

pub(super) fn decide(
    facts: &Facts<'_>,
    vault_key: &VaultKey,
    ask: &Ask,
    key: KeyUse,
    observed: &mut Observed,
) -> Result<Action, Refusal> {
    let claims = match ask.slot() {
        None => {
            attribute(vault_key, observed)?;
            Claims {
                slot: false,
                intent: false,
                met: None,
            }
        }
        Some(_) => match meet_holders(facts, vault_key, ask, &key, observed)? {
            Met::Follow(action) => return Ok(action),
            Met::GoOn(claims) => claims,
        },
    };
    let within = limits::check(
        &Limits {
            vault_key,
            cap_key: vault_key,
            charge: ask.money,
            additional: ask.money,
        },
        observed,
    );
    if let (Err(_), Some(met)) = (&within, claims.met) {
        observed.move_to(met);
    }
    within?;
    let slot_claim = ask.slot().filter(|_| claims.slot).map(|slot| slot.digest());
    let intent_claim = ask.intent_digest().filter(|_| claims.intent);
    Ok(Action::Reserve {
        key,
        slot_claim,
        intent_claim,
    })
}

/// A create without a customer has no slot: it is capped, and flagged or refused.
fn attribute(vault_key: &VaultKey, observed: &mut Observed) -> Result<(), Refusal> {
    if vault_key.require_customer {
        if !vault_key.observes() {
            return Err(Refusal::CustomerRequired);
        }
        observed.on_new(FlagKind::WouldRefuseCustomerRequired);
    }
    observed.on_new(FlagKind::Unattributed);
    Ok(())
}

struct Claims {
    slot: bool,
    intent: bool,
    /// The reservation that makes this one a duplicate.
    met: Option<ReservationId>,
}

enum Met {
    Follow(Action),
    GoOn(Claims),
}

/// Step 3: other reservations that stand in the slot.
fn meet_holders(
    facts: &Facts<'_>,
    vault_key: &VaultKey,
    ask: &Ask,
    key: &KeyUse,
    observed: &mut Observed,
) -> Result<Met, Refusal> {
    let (same, any) = (
        facts.intent_holder,
        facts.intent_holder.or(facts.slot_holder),
    );
    let Some(any) = any else {
        return Ok(Met::GoOn(Claims {
            slot: true,
            intent: true,
            met: None,
        }));
    };
    // A first one whose outcome is not known yet is waited for or resolved under every policy: before
    // that nobody can say whether this is a duplicate.
    if let Some(first) = same.filter(|first| is_unresolved(first)) {
        observed.on(first.id, FlagKind::DuplicateCustomerPeriod);
        return join(facts.now, ask, first, key).map(Met::Follow);
    }
    let forward = |observed: &mut Observed| {
        observed.on_new(FlagKind::DuplicateCustomerPeriod);
        if vault_key.observes() && vault_key.on_duplicate != OnDuplicate::Flag {
            observed.on_new(FlagKind::WouldStopDuplicate);
        }
        let slot = facts.slot_holder.is_none();
        Ok(Met::GoOn(Claims {
            slot,
            intent: same.is_none(),
            met: Some(any.id),
        }))
    };
    match (vault_key.on_duplicate, same) {
        (OnDuplicate::Flag, _) | (OnDuplicate::Replay, None) => forward(observed),
        (OnDuplicate::Replay | OnDuplicate::Reject, _) if vault_key.observes() => forward(observed),
        (OnDuplicate::Replay, Some(first)) => {
            observed.on(first.id, FlagKind::DuplicateCustomerPeriod);
            join(facts.now, ask, first, key).map(Met::Follow)
        }
        (OnDuplicate::Reject, _) => reject(any, observed),
    }
}

/// The create's own outcome is unknown; a later operation on its object does not make it so.
fn is_unresolved(row: &Reservation) -> bool {
    match row.state {
        State::InFlight | State::Held => row.send.operation == row.operation,
        State::WrittenOff => true,
        State::Open | State::Settled | State::Released => false,
    }
}

/// Rejects only what certainly exists: a first one of another amount may still be declined.
fn reject(first: &Reservation, observed: &mut Observed) -> Result<Met, Refusal> {
    observed.on(first.id, FlagKind::DuplicateCustomerPeriod);
    match (is_unresolved(first), first.state) {
        (true, State::InFlight) => Ok(Met::Follow(Action::Wait {
            reservation: first.id,
        })),
        (true, state) => Err(Refusal::OutcomeUnknown {
            retryable: state == State::Held,
        }),
        (false, _) => Err(Refusal::DuplicateCustomerPeriod {
            existing: first.existing_name(),
        }),
    }
}
