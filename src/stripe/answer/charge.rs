//! A charge object, as far as money goes.

use serde::Deserialize;
use thiserror::Error;

use crate::domain::money::{AmountMinor, Currency};
use crate::domain::outcome::Outcome;

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
#[error("not a complete charge object")]
pub struct AnswerError(());

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
    status: ChargeStatus,
}

/// An id, or the object where the client expanded it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Id(String),
    Object { id: String },
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
        status: wire.status,
    })
}

fn is_id(text: &str) -> bool {
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
