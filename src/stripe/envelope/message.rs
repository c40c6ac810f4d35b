//! What a refusal says: what happened, and what to do next.

use jiff::Timestamp;

use crate::domain::money::{AmountMinor, Currency};
use crate::domain::operation::Permission;
use crate::domain::refusal::{CapReached, Refusal};
use crate::domain::time::UnixMs;

pub(super) fn of(refusal: &Refusal) -> String {
    match refusal {
        Refusal::VaultKeyExpired { expired_at } => expired(*expired_at),
        Refusal::VaultKeyNotYetValid { starts_at } => not_yet_valid(*starts_at),
        Refusal::OperationNotPermitted { missing } => not_permitted(*missing),
        Refusal::BadParameter(bad) => bad.message.clone(),
        Refusal::CurrencyNotAllowed { currency } => currency_not_allowed(*currency),
        Refusal::SpendCapReached(reached) => cap_reached(reached),
        Refusal::ChargeLimitExceeded {
            max_charge,
            asked,
            currency,
            ..
        } => charge_limit(*max_charge, *asked, *currency),
        Refusal::DuplicateCustomerPeriod { existing } => duplicate(existing),
        Refusal::IdempotencyKeyReused { key } => key_reused(key),
        Refusal::ChargeAlreadyCaptured { charge } => {
            format!("Charge {charge} has already been captured.")
        }
        Refusal::NoSuchCharge { charge } => format!("No such charge: '{charge}'"),
        Refusal::RequestTooLarge { bytes_max } => {
            format!("The request body is larger than the limit of {bytes_max} bytes.")
        }
        Refusal::VaultKeyInvalid
        | Refusal::VaultKeyRevoked
        | Refusal::VaultKeyStopped
        | Refusal::AccountNotPermitted
        | Refusal::CustomerRequired
        | Refusal::IdempotencyKeyInUse
        | Refusal::OutcomeUnknown { .. }
        | Refusal::LedgerUnavailable
        | Refusal::LedgerLostCommits
        | Refusal::Overloaded
        | Refusal::UpstreamUnhealthy
        | Refusal::UpstreamUnreachable
        | Refusal::UpstreamFailed
        | Refusal::NoAnswer => fixed(refusal).to_owned(),
    }
}

/// The texts without a variable part.
const fn fixed(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::VaultKeyInvalid => {
            "No valid vault key was sent. Use the vault key of this billing period (sk_vault_…) in \
             place of the Stripe key, as a Bearer token or as the user name of Basic authentication."
        }
        Refusal::VaultKeyRevoked => {
            "This vault key has been revoked. Ask the operator for a new one; nothing was charged."
        }
        Refusal::VaultKeyStopped => {
            "This vault key is stopped because more money moved under it than was reserved. Reads \
             still work; an operator must look at its flags before it can charge again."
        }
        Refusal::AccountNotPermitted => {
            "This vault key may not act on the account named in Stripe-Account or Stripe-Context. \
             Leave the header out, or have the account added to the key."
        }
        Refusal::CustomerRequired => {
            "This vault key only accepts charges that name a customer: add the customer parameter. \
             Nothing was charged."
        }
        Refusal::IdempotencyKeyInUse => {
            "There is currently another in-progress request for this charge. Nothing was charged \
             twice: send the same request again in a few seconds to get its result."
        }
        Refusal::OutcomeUnknown { retryable: true } => {
            "An earlier attempt at this charge has no known outcome yet, so it was not sent again. \
             Send the same request again later: it is answered once the outcome is known."
        }
        Refusal::OutcomeUnknown { retryable: false } => {
            "An earlier attempt at this charge has no known outcome, and a repeat cannot settle it. \
             Look the charge up at Stripe and have an operator resolve the reservation."
        }
        Refusal::LedgerUnavailable => {
            "The ledger cannot be reached, so nothing was sent to Stripe. Send the same request \
             again later."
        }
        Refusal::LedgerLostCommits => {
            "The ledger was restored or failed over and may not know every charge that was made, so \
             nothing was sent to Stripe. An operator must run `spendcap reconcile`. Send the same \
             request again later; do not charge in another way."
        }
        Refusal::Overloaded => {
            "Too many requests are waiting, so nothing was sent to Stripe. Send the same request \
             again later, and slower."
        }
        Refusal::UpstreamUnhealthy => {
            "Stripe's recent answers left too many outcomes unknown, or do not tell whose the real key \
             is, so no money is moved for now and nothing was sent. Send the same request again later."
        }
        Refusal::UpstreamUnreachable => {
            "No connection to Stripe could be opened, so nothing was sent. Send the same request \
             again later."
        }
        Refusal::UpstreamFailed => {
            "Stripe did not answer this read, or answered what cannot be passed on. No money was \
             moved by it: send the same request again."
        }
        Refusal::NoAnswer => {
            "The request was sent to Stripe and no usable answer came back: the charge may or may \
             not exist, and its amount stays reserved. Send the same request again to learn its \
             outcome; do not charge in another way."
        }
        _ => "",
    }
}

fn expired(at: UnixMs) -> String {
    format!(
        "This vault key expired at {}. Ask the operator for the key of the current billing period; \
         nothing was charged.",
        shown(at)
    )
}

fn not_yet_valid(at: UnixMs) -> String {
    format!(
        "This vault key is valid from {} on. Nothing was charged.",
        shown(at)
    )
}

fn not_permitted(missing: Option<Permission>) -> String {
    match missing {
        Some(permission) => format!(
            "This vault key does not hold the permission {permission}, which this request takes. \
             Nothing was sent to Stripe. A key keeps the permissions that it was issued with: ask the \
             operator for one that holds it."
        ),
        None => "This method and path are not among those that a vault key may use. Nothing was \
                 sent to Stripe."
            .to_owned(),
    }
}

fn currency_not_allowed(currency: Currency) -> String {
    format!(
        "This vault key has no cap in {currency}, so it cannot charge in that currency. Charge in \
         one of its own currencies, or have a cap added."
    )
}

fn cap_reached(reached: &CapReached) -> String {
    let CapReached {
        max_amount,
        used,
        asked,
        currency,
        ..
    } = reached;
    let left = max_amount.saturating_sub(*used);
    format!(
        "The spend cap of this vault key is reached: cap {max_amount} {currency}, used {used} \
         {currency}, asked {asked} {currency}, left {left} {currency} (minor units). Nothing was \
         charged, and no card was declined. If the charge is right, have the cap raised and send \
         the same request again."
    )
}

fn charge_limit(max_charge: AmountMinor, asked: AmountMinor, currency: Currency) -> String {
    format!(
        "A single charge under this vault key may be at most {max_charge} {currency}, and {asked} \
         {currency} was asked (minor units). Nothing was charged, and no card was declined. If the \
         amount is right, have max_charge raised."
    )
}

fn duplicate(existing: &str) -> String {
    format!(
        "This customer is already billed in this billing period: {existing}. Nothing was charged. \
         If this is a second, lawful charge, tell the two apart with a Spendcap-Reference header, \
         such as the invoice number."
    )
}

/// Stripe's own text (contract §2.2).
fn key_reused(key: &str) -> String {
    format!(
        "Keys for idempotent requests can only be used with the same parameters they were first \
         used with. Try using a key other than '{key}' if you meant to execute a different request."
    )
}

fn shown(at: UnixMs) -> String {
    Timestamp::from_second(at.unix_seconds())
        .map_or_else(|_| at.to_string(), |time| time.to_string())
}
