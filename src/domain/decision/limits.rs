//! Steps 4 and 5: the currency, the largest single charge, the cap.

use super::Observed;
use crate::domain::cap::Cap;
use crate::domain::flag::FlagKind;
use crate::domain::money::Money;
use crate::domain::refusal::{CapReached, Refusal};
use crate::domain::vault_key::VaultKey;

/// What is asked, and whose limits it meets.
pub(super) struct Limits<'a> {
    /// Who asks: its largest single charge applies.
    pub(super) vault_key: &'a VaultKey,
    /// Whose cap is charged: another key's where that key's reservation owns the object.
    pub(super) cap_key: &'a VaultKey,
    /// The whole charge, for the largest single one.
    pub(super) charge: Money,
    /// What is reserved in addition, for the cap.
    pub(super) additional: Money,
}

impl Limits<'_> {
    fn cap(&self) -> Option<&Cap> {
        self.cap_key.cap(self.additional.currency)
    }
}

/// Refuses, or, where the key whose limit it is observes, flags what it would have refused: a key that
/// observes cannot lift the cap of one that does not.
pub(super) fn check(limits: &Limits<'_>, observed: &mut Observed) -> Result<(), Refusal> {
    let (asks, pays) = (limits.vault_key, limits.cap_key);
    for (refusal, owner, flag) in [
        (currency(limits), pays, FlagKind::WouldRefuseCurrency),
        (
            single_charge(limits),
            asks,
            FlagKind::WouldRefuseChargeLimit,
        ),
        (spend_cap(limits), pays, FlagKind::WouldRefuseSpendCap),
    ] {
        match refusal {
            None => {}
            Some(_) if owner.observes() => observed.on_new(flag),
            Some(refusal) => return Err(refusal),
        }
    }
    Ok(())
}

fn currency(limits: &Limits<'_>) -> Option<Refusal> {
    let currency = limits.additional.currency;
    limits
        .cap()
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
    let cap = limits.cap()?;
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
