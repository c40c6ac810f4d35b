//! A charge object, as far as money goes.

use serde::Deserialize;
use thiserror::Error;

use crate::domain::money::{AmountMinor, Currency};
use crate::domain::outcome::Outcome;
use crate::domain::time::UnixMs;

/// Longest id; Stripe's own limit.
const ID_BYTES_MAX: usize = 255;

/// What a charge object says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargeFacts {
    /// `ch_…` or `py_…`.
    pub id: String,
    /// What was authorised, in minor units.
    pub amount: AmountMinor,
    /// Its currency.
    pub currency: Currency,
    /// Whom it bills, expanded or not.
    pub customer: Option<String>,
    /// False while it is only authorised.
    pub captured: bool,
    /// What was captured, in minor units: `amount` where an older object does not say.
    pub amount_captured: AmountMinor,
    /// Given back whole; for an authorisation: voided or expired.
    pub refunded: bool,
    /// What went back of what was captured, in minor units. Stripe also calls the part refunded that a
    /// smaller capture left (contract §1.3); that never moved and is not in here.
    pub amount_given_back: AmountMinor,
    /// When it was made, on Stripe's clock.
    pub created: Option<UnixMs>,
    /// Where it stands.
    pub status: ChargeStatus,
}

/// `status` of a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChargeStatus {
    /// The money moved, or is authorised. Versions before 2015-02-16 say `paid`, and a client chooses
    /// its `Stripe-Version`.
    #[serde(alias = "paid")]
    Succeeded,
    /// A debit that takes days.
    Pending,
    /// Nothing moved.
    Failed,
}

/// The body is not a charge, or one that contradicts itself. It does not repeat the body.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a complete charge object or event page")]
pub struct AnswerError(());

impl AnswerError {
    pub(in crate::stripe) fn unreadable() -> Self {
        Self(())
    }
}

#[derive(Deserialize)]
struct Wire {
    object: String,
    id: String,
    amount: i64,
    currency: String,
    customer: Option<Reference>,
    captured: bool,
    amount_captured: Option<i64>,
    refunded: Option<bool>,
    amount_refunded: Option<i64>,
    created: Option<i64>,
    status: ChargeStatus,
}

/// An id, or the object where the client expanded it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Id(String),
    Object { id: String },
}

/// Reads a charge object inside of something else, such as an event.
pub(in crate::stripe) fn facts_of(value: &serde_json::Value) -> Option<ChargeFacts> {
    from_wire(Wire::deserialize(value).ok()?)
}

/// Reads a charge object: the answer to a create, a capture or a read.
pub fn charge_facts(body: &[u8]) -> Result<ChargeFacts, AnswerError> {
    let wire = serde_json::from_slice(body).map_err(|_| AnswerError(()))?;
    from_wire(wire).ok_or(AnswerError(()))
}

fn from_wire(wire: Wire) -> Option<ChargeFacts> {
    if wire.object != "charge" || !is_id(&wire.id) {
        return None;
    }
    let amount = AmountMinor::new(wire.amount)?;
    let amount_captured = match wire.amount_captured {
        Some(captured) => AmountMinor::new(captured)?,
        None if wire.captured => amount,
        None => AmountMinor::ZERO,
    };
    let never_captured = amount.saturating_sub(amount_captured);
    let amount_refunded = AmountMinor::new(wire.amount_refunded.unwrap_or(0))?;
    // Captured, succeeded, and nothing captured: no amount to believe.
    let moved = wire.captured && wire.status == ChargeStatus::Succeeded;
    if moved && amount_captured.is_zero() && !amount.is_zero() {
        return None;
    }
    Some(ChargeFacts {
        id: wire.id,
        amount,
        currency: Currency::parse(&wire.currency).ok()?,
        customer: wire.customer.map(|customer| match customer {
            Reference::Id(id) | Reference::Object { id } => id,
        }),
        captured: wire.captured,
        amount_captured,
        refunded: wire.refunded.unwrap_or(false),
        amount_given_back: if wire.captured {
            amount_refunded.saturating_sub(never_captured)
        } else {
            AmountMinor::ZERO
        },
        created: wire.created.map(UnixMs::from_unix_seconds),
        status: wire.status,
    })
}

/// An id as Stripe writes them: safe in a path.
pub(in crate::stripe) fn is_id(text: &str) -> bool {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && (1..=ID_BYTES_MAX).contains(&text.len())
}

impl ChargeFacts {
    /// What the object proves about the money, as it stands now. A refund does not undo a capture: the
    /// money moved.
    pub fn outcome(&self) -> Outcome {
        let object_id = self.id.clone();
        match (self.status, self.captured) {
            (ChargeStatus::Failed, _) => Outcome::Dead { object_id },
            (ChargeStatus::Succeeded, true) => Outcome::Settled {
                object_id,
                amount: self.amount_captured,
            },
            (ChargeStatus::Succeeded, false) if self.refunded => Outcome::Dead { object_id },
            (ChargeStatus::Succeeded, false) | (ChargeStatus::Pending, _) => Outcome::Open {
                object_id,
                ceiling: self.amount.max(self.amount_captured),
            },
        }
    }
}
