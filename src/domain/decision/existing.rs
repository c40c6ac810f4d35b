//! Operations on an object that exists at Stripe: one unresolved operation per object, and only what
//! goes beyond the owner's reservation is reserved in addition (design §3.3).

use super::limits::{self, Limits};
use super::{Action, Ask, Facts, KeyUse, Observed, read, resend};
use crate::domain::flag::FlagKind;
use crate::domain::money::Money;
use crate::domain::refusal::Refusal;
use crate::domain::reservation::{Reservation, State, object_claim};
use crate::domain::vault_key::{KeyStatus, OnDuplicate, VaultKey};

pub(super) fn decide(
    facts: &Facts<'_>,
    vault_key: &VaultKey,
    ask: &Ask,
    key: KeyUse,
    observed: &mut Observed,
) -> Result<Action, Refusal> {
    let Some(owner) = facts.owner else {
        return reserve_in_full(vault_key, ask, key, observed);
    };
    match owner.state {
        State::Open => send_on(facts, vault_key, ask, owner, key, observed),
        // Nothing of it is reserved any more: whatever Stripe still lets through counts anew.
        State::Released => reserve_in_full(vault_key, ask, key, observed),
        State::InFlight => {
            observed.on(owner.id, FlagKind::DuplicateOperation);
            Ok(Action::Wait {
                reservation: owner.id,
            })
        }
        State::Held => {
            observed.on(owner.id, FlagKind::DuplicateOperation);
            resend(facts.now, ask, owner, &key)
        }
        State::Settled => {
            observed.on(owner.id, FlagKind::DuplicateOperation);
            again(vault_key, ask, owner, &key)
        }
        State::WrittenOff => Err(Refusal::OutcomeUnknown { retryable: false }),
    }
}

fn send_on(
    facts: &Facts<'_>,
    vault_key: &VaultKey,
    ask: &Ask,
    owner: &Reservation,
    key: KeyUse,
    observed: &mut Observed,
) -> Result<Action, Refusal> {
    let additional = ask.money.amount.saturating_sub(owner.amount_reserved);
    if !additional.is_zero() {
        // The book sees to it that the owner's key is at hand.
        let cap_key = facts.owner_key.ok_or(Refusal::VaultKeyInvalid)?;
        if cap_key.status != KeyStatus::Active {
            return Err(Refusal::VaultKeyStopped);
        }
        let additional = Money {
            amount: additional,
            currency: owner.currency,
        };
        limits::check(
            &Limits {
                vault_key,
                cap_key,
                charge: ask.money,
                additional,
            },
            observed,
        )?;
    }
    Ok(Action::SendOn {
        reservation: owner.id,
        additional,
        key,
    })
}

fn reserve_in_full(
    vault_key: &VaultKey,
    ask: &Ask,
    key: KeyUse,
    observed: &mut Observed,
) -> Result<Action, Refusal> {
    limits::check(
        &Limits {
            vault_key,
            cap_key: vault_key,
            charge: ask.money,
            additional: ask.money,
        },
        observed,
    )?;
    let object = ask
        .target
        .as_ref()
        .map(|target| object_claim(&ask.account, &target.object_id));
    Ok(Action::Reserve {
        key,
        slot_claim: None,
        intent_claim: object,
    })
}

/// The money moved already. The same capture again gets what exists; anything else gets what Stripe
/// would say.
fn again(
    vault_key: &VaultKey,
    ask: &Ask,
    owner: &Reservation,
    key: &KeyUse,
) -> Result<Action, Refusal> {
    let same = owner.send.operation == ask.operation && owner.amount_settled == ask.money.amount;
    if same && vault_key.on_duplicate == OnDuplicate::Replay {
        read(owner, key)
    } else {
        Err(Refusal::ChargeAlreadyCaptured {
            charge: owner.existing_name(),
        })
    }
}
