//! What happens to a charge after it was made: capture, refund, and a pending one's end.

use std::sync::Arc;

use serde_json::json;

use super::api::Scene;
use super::balance;
use super::cards;
use super::charges::{Charge, ChargeStatus};
use super::errors::ApiError;
use super::events;
use super::expand::Expand;
use super::params::{self, Params};
use super::reply::Reply;

const CAPTURE_PARAMS: [&str; 9] = [
    "amount",
    "application_fee",
    "application_fee_amount",
    "expand",
    "receipt_email",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
];

const REFUND_PARAMS: [&str; 6] = [
    "amount",
    "charge",
    "expand",
    "metadata",
    "reason",
    "refund_application_fee",
];

/// `POST /v1/charges/{id}/capture`, well formed.
#[derive(Debug)]
pub(crate) struct Capture {
    charge_id: String,
    amount: Option<i64>,
    expand: Expand,
}

impl Capture {
    pub(crate) fn read(charge_id: &str, params: &Params) -> Result<Self, ApiError> {
        params.only(&CAPTURE_PARAMS)?;
        let amount = positive(params)?;
        let expand = Expand::read(params, "")?;
        Ok(Self {
            charge_id: charge_id.to_owned(),
            amount,
            expand,
        })
    }

    /// Takes the money. What is not captured goes back (contract §1.3).
    pub(crate) fn execute(self, scene: &Scene<'_>) -> Result<Reply, ApiError> {
        let mut books = scene.account.books();
        let charge = books.charges.get(&self.charge_id);
        let charge =
            charge.ok_or_else(|| ApiError::missing("charge", &self.charge_id, "charge"))?;
        let mut charge = Charge::clone(charge);
        capturable(&charge)?;
        let amount = self.amount.unwrap_or(charge.amount);
        if amount > charge.amount {
            let message = "You cannot capture a charge for an amount greater than it already has.";
            return Err(ApiError::invalid(message)
                .code("amount_too_large")
                .param("amount"));
        }
        charge.captured = true;
        charge.amount_captured = amount;
        charge.amount_refunded = charge.amount - amount;
        balance::collect(scene, &mut books, &mut charge);
        let charge = Arc::new(charge);
        if let Some(slot) = books.charges.get_mut(&self.charge_id) {
            *slot = Arc::clone(&charge);
        }
        events::record(scene, &mut books, "charge.captured", Arc::clone(&charge));
        Ok(self.expand.reply(&books, charge))
    }
}

fn capturable(charge: &Charge) -> Result<(), ApiError> {
    let id = &charge.id;
    if charge.is_refunded() {
        let message = format!("Charge {id} has already been refunded.");
        return Err(ApiError::invalid(message).code("charge_already_refunded"));
    }
    if charge.captured {
        let message = format!("Charge {id} has already been captured.");
        return Err(ApiError::invalid(message).code("charge_already_captured"));
    }
    if charge.status != ChargeStatus::Succeeded {
        let message = format!("Charge {id} could not be captured because it did not succeed.");
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

/// `POST /v1/refunds`, well formed.
#[derive(Debug)]
pub(crate) struct NewRefund {
    charge_id: String,
    amount: Option<i64>,
    reason: Option<String>,
}

impl NewRefund {
    pub(crate) fn read(params: &Params) -> Result<Self, ApiError> {
        params.only(&REFUND_PARAMS)?;
        let charge_id = params
            .text("charge")?
            .ok_or_else(|| params::missing("charge"))?;
        let reason = params.free_text("reason")?;
        Ok(Self {
            charge_id: charge_id.to_owned(),
            amount: positive(params)?,
            reason,
        })
    }

    /// Gives money back; an uncaptured charge is voided, and only whole.
    pub(crate) fn execute(self, scene: &Scene<'_>) -> Result<Reply, ApiError> {
        let mut books = scene.account.books();
        let charge = books.charges.get(&self.charge_id);
        let charge =
            charge.ok_or_else(|| ApiError::missing_param("charge", &self.charge_id, "charge"))?;
        let mut charge = Charge::clone(charge);
        let left = charge.amount - charge.amount_refunded;
        let amount = self.amount.unwrap_or(left);
        refundable(&charge, amount, left)?;
        charge.amount_refunded += amount;
        let refund_id = scene.world.ids.next("re_");
        let transaction = charge
            .captured
            .then(|| balance::give_back(scene, &mut books, &charge.currency, amount, &refund_id));
        let refund = json!({
            "id": refund_id,
            "object": "refund",
            "amount": amount,
            "balance_transaction": transaction,
            "charge": charge.id,
            "created": scene.now,
            "currency": charge.currency,
            "metadata": {},
            "payment_intent": null,
            "reason": self.reason,
            "status": "succeeded",
        });
        let charge = Arc::new(charge);
        if let Some(slot) = books.charges.get_mut(&self.charge_id) {
            *slot = Arc::clone(&charge);
        }
        events::record(scene, &mut books, "charge.refunded", charge);
        Ok(Reply::ok(&refund))
    }
}

fn refundable(charge: &Charge, amount: i64, left: i64) -> Result<(), ApiError> {
    let id = &charge.id;
    if charge.status != ChargeStatus::Succeeded {
        let message = format!("Charge {id} cannot be refunded because it did not succeed.");
        return Err(ApiError::invalid(message).param("charge"));
    }
    if left == 0 {
        let message = format!("Charge {id} has already been refunded.");
        return Err(ApiError::invalid(message).code("charge_already_refunded"));
    }
    if amount > left {
        let message = format!(
            "Refund amount ({amount}) is greater than unrefunded amount on charge ({left})"
        );
        return Err(ApiError::invalid(message).param("amount"));
    }
    if !charge.captured && amount < left {
        let message = "You cannot partially refund an uncaptured charge. Instead, capture the \
                       charge for an amount less than the original amount.";
        return Err(ApiError::invalid(message).param("amount"));
    }
    Ok(())
}

/// Ends a pending charge, as a bank does days later; the event has no request behind it. Returns
/// false where no such charge is pending.
pub(crate) fn end_pending(scene: &Scene<'_>, charge_id: &str, paid: bool) -> bool {
    let mut books = scene.account.books();
    let pending = books
        .charges
        .get(charge_id)
        .filter(|c| c.status == ChargeStatus::Pending);
    let Some(mut charge) = pending.map(|charge| Charge::clone(charge)) else {
        return false;
    };
    let kind = if paid {
        charge.status = ChargeStatus::Succeeded;
        charge.captured = true;
        charge.amount_captured = charge.amount;
        balance::collect(scene, &mut books, &mut charge);
        "charge.succeeded"
    } else {
        charge.status = ChargeStatus::Failed(cards::GENERIC_DECLINE);
        charge.captured = false;
        "charge.failed"
    };
    let charge = Arc::new(charge);
    if let Some(slot) = books.charges.get_mut(charge_id) {
        *slot = Arc::clone(&charge);
    }
    events::record(scene, &mut books, kind, charge);
    true
}

fn positive(params: &Params) -> Result<Option<i64>, ApiError> {
    match params.integer("amount")? {
        Some(amount) if amount < 1 => {
            let message = "This value must be greater than or equal to 1.";
            Err(ApiError::invalid(message)
                .code("parameter_invalid_integer")
                .param("amount"))
        }
        amount => Ok(amount),
    }
}
