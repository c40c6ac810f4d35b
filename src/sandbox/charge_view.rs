//! The charge object as Stripe writes it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::charges::{Charge, ChargeStatus};

/// A charge's JSON, borrowed from the charge. Written straight to the answer: the sandbox is
/// benchmarked through, so no tree is built.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "Stripe's object has them")]
pub(crate) struct ChargeView<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
    application: Option<()>,
    application_fee: Option<()>,
    application_fee_amount: Option<()>,
    balance_transaction: Option<&'a str>,
    billing_details: BillingDetails,
    calculated_statement_descriptor: &'static str,
    captured: bool,
    created: i64,
    currency: &'a str,
    customer: Option<&'a str>,
    description: Option<&'a str>,
    disputed: bool,
    failure_balance_transaction: Option<()>,
    failure_code: Option<&'static str>,
    failure_message: Option<&'static str>,
    fraud_details: Empty,
    invoice: Option<()>,
    livemode: bool,
    metadata: &'a BTreeMap<String, String>,
    on_behalf_of: Option<()>,
    order: Option<()>,
    outcome: Outcome,
    paid: bool,
    payment_intent: Option<()>,
    payment_method: Option<&'a str>,
    payment_method_details: MethodDetails,
    receipt_email: Option<&'a str>,
    receipt_number: Option<()>,
    receipt_url: Option<()>,
    refunded: bool,
    review: Option<()>,
    shipping: Option<()>,
    source_transfer: Option<()>,
    statement_descriptor: Option<&'a str>,
    statement_descriptor_suffix: Option<&'a str>,
    status: &'static str,
    transfer_data: Option<()>,
    transfer_group: Option<&'a str>,
}

#[derive(Debug, Default, Serialize)]
struct BillingDetails {
    address: Option<()>,
    email: Option<()>,
    name: Option<()>,
    phone: Option<()>,
}

#[derive(Debug, Serialize)]
struct Empty {}

#[derive(Debug, Serialize)]
struct MethodDetails {
    card: Card,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct Card {
    brand: &'static str,
    country: &'static str,
    exp_month: u8,
    exp_year: u16,
    funding: &'static str,
    last4: &'static str,
}

/// Every source is a Visa test card. A typed SDK reads no charge that lacks what a card always has.
const VISA: MethodDetails = MethodDetails {
    card: Card {
        brand: "visa",
        country: "US",
        exp_month: 12,
        exp_year: 2034,
        funding: "credit",
        last4: "4242",
    },
    kind: "card",
};

#[derive(Debug, Serialize)]
struct Outcome {
    network_status: &'static str,
    reason: Option<&'static str>,
    risk_level: &'static str,
    seller_message: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl Charge {
    /// The charge object.
    pub(crate) fn view(&self) -> ChargeView<'_> {
        let (status, failure) = match self.status {
            ChargeStatus::Succeeded => ("succeeded", None),
            ChargeStatus::Pending => ("pending", None),
            ChargeStatus::Failed(decline) => ("failed", Some(decline)),
        };
        ChargeView {
            id: &self.id,
            object: "charge",
            amount: self.amount,
            amount_captured: self.amount_captured,
            amount_refunded: self.amount_refunded,
            application: None,
            application_fee: None,
            application_fee_amount: None,
            balance_transaction: self.balance_transaction.as_deref(),
            billing_details: BillingDetails::default(),
            calculated_statement_descriptor: "SPENDCAP SANDBOX",
            captured: self.captured,
            created: self.created,
            currency: &self.currency,
            customer: self.customer.as_deref(),
            description: self.details.description.as_deref(),
            disputed: false,
            failure_balance_transaction: None,
            failure_code: failure.map(|decline| decline.code),
            failure_message: failure.map(|decline| decline.message),
            fraud_details: Empty {},
            invoice: None,
            livemode: self.livemode,
            metadata: &self.details.metadata,
            on_behalf_of: None,
            order: None,
            outcome: outcome(self.status),
            // True for a mere authorisation too (contract §1.3).
            paid: self.status == ChargeStatus::Succeeded,
            payment_intent: None,
            payment_method: self.source.as_deref(),
            payment_method_details: VISA,
            receipt_email: self.details.receipt_email.as_deref(),
            receipt_number: None,
            receipt_url: None,
            refunded: self.is_refunded(),
            review: None,
            shipping: None,
            source_transfer: None,
            statement_descriptor: self.details.statement_descriptor.as_deref(),
            statement_descriptor_suffix: self.details.statement_descriptor_suffix.as_deref(),
            status,
            transfer_data: None,
            transfer_group: self.details.transfer_group.as_deref(),
        }
    }
}

fn outcome(status: ChargeStatus) -> Outcome {
    let (network_status, reason, seller_message, kind) = match status {
        ChargeStatus::Failed(decline) => (
            "declined_by_network",
            Some(decline.reason.unwrap_or(decline.code)),
            "The bank did not return any further details with this decline.",
            "issuer_declined",
        ),
        ChargeStatus::Succeeded | ChargeStatus::Pending => (
            "approved_by_network",
            None,
            "Payment complete.",
            "authorized",
        ),
    };
    Outcome {
        network_status,
        reason,
        risk_level: "normal",
        seller_message,
        kind,
    }
}
