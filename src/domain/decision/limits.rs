//! Steps 4 and 5: the currency, the largest single charge, the cap.

use super::Observed;
use crate::domain::cap::Cap;
use crate::domain::flag::FlagKind;
use crate::domain::money::Money;
use crate::domain::refusal::{CapReached, Refusal};
use crate::domain::vault_key::VaultKey;

/// What is held against what.
pub(super) struct Limits<'a> {
    /// Whose policy applies.
    pub(super) vault_key: &'a VaultKey,
    /// The cap that is charged.
    pub(super) cap: Option<&'a Cap>,
    /// The whole charge, for the largest single one.
    pub(super) charge: Money,
    /// What is reserved in addition, for the cap.
    pub(super) additional: Money,
}

/// Refuses, or, for a key that observes, flags what it would have refused.
pub(super) fn check(limits: &Limits<'_>, observed: &mut Observed) -> Result<(), Refusal> {
    for (refusal, flag) in [
        (currency(limits), FlagKind::WouldRefuseCurrency),
        (single_charge(limits), FlagKind::WouldRefuseChargeLimit),
        (spend_cap(limits), FlagKind::WouldRefuseSpendCap),
    ] {
        match refusal {
            None => {}
            Some(_) if limits.vault_key.observes() => observed.on_new(flag),
            Some(refusal) => return Err(refusal),
        }
    }
    Ok(())
}

fn currency(limits: &Limits<'_>) -> Option<Refusal> {
    let currency = limits.additional.currency;
    limits
        .cap
        .is_none()
        .then_some(Refusal::CurrencyNotAllowed { currency })
}

fn single_charge(limits: &Limits<'_>) -> Option<Refusal> {
    let Money {
        amount: asked,
        currency,
    } = limits.charge;
    let max_charge = *limits.vault_key.max_charge.get(&currency)?;
    let status = limits.vault_key.refusal_status;
    (asked > max_charge).then_some(Refusal::ChargeLimitExceeded {
        max_charge,
        asked,
        currency,
        status,
    })
}

fn spend_cap(limits: &Limits<'_>) -> Option<Refusal> {
    let cap = limits.cap?;
    let Money {
        amount: asked,
        currency,
    } = limits.additional;
    (!cap.admits(asked)).then_some(Refusal::SpendCapReached(CapReached {
        max_amount: cap.max_amount,
        used: cap.used(),
        asked,
        currency,
        status: limits.vault_key.refusal_status,
    }))
}
