//! Judging the parameters of charges.create and charges.capture: how much, of what, from whom.
//!
//! # What is forwarded and what is not
//!
//! What the payer pays is `amount`, whatever else a charge says. `application_fee*`, `on_behalf_of`,
//! `destination`, `transfer_data` and `transfer_group` only divide that amount afterwards; `source`,
//! `card`, `description`, `metadata`, `shipping` and the rest do not touch it. Those are listed here, as
//! the paths are, and everything else is refused as Stripe refuses a name it does not know: a parameter
//! that Stripe adds tomorrow may raise what is charged above what was reserved, as tips, overcapture,
//! tax and the payer's own currency do in other parts of its API (contract §1.2, §1.3).

use http::HeaderMap;

use super::amount::{parse_amount, parse_currency};
use super::form::FormTree;
use super::headers;
use super::parameter::{ParameterCode, bad, echo};
use crate::domain::money::{AmountMinor, Money};
use crate::domain::refusal::BadParameter;

#[cfg(test)]
mod tests;

/// Everything `POST /v1/charges` takes: the charges API is closed to new features.
const CREATE: [&str; 20] = [
    "amount",
    "application_fee",
    "application_fee_amount",
    "capture",
    "card",
    "currency",
    "customer",
    "description",
    "destination",
    "expand",
    "metadata",
    "on_behalf_of",
    "radar_options",
    "receipt_email",
    "shipping",
    "source",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
    "transfer_group",
];

/// Everything `POST /v1/charges/{id}/capture` takes.
const CAPTURE: [&str; 9] = [
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

/// Longest customer id; Stripe's own limit for ids.
const CUSTOMER_BYTES_MAX: usize = 255;

/// charges.create, judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JudgedCharge {
    /// What it takes at most.
    pub money: Money,
    /// The customer it bills.
    pub customer: Option<String>,
    /// What to send, and what the fingerprint is made of.
    pub canonical_body: String,
    /// The client's `expand` as a query string, for reading the charge instead; empty without one.
    pub expand_query: String,
}

/// charges.capture, judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JudgedCapture {
    /// How much to capture; `None` for all that is authorised.
    pub amount: Option<AmountMinor>,
    /// The client's `expand` as a query string, for reading the charge instead; empty without one.
    pub expand_query: String,
    form: FormTree,
}

/// Judges the body of `POST /v1/charges`; `headers` are the request's, for the content type.
pub fn judge_create(body: &[u8], headers: &HeaderMap) -> Result<JudgedCharge, BadParameter> {
    let mut form = form(body, headers, &CREATE)?;
    let amount = parse_amount("amount", required(&form, "amount")?)?;
    let currency = parse_currency("currency", required(&form, "currency")?)?;
    form.normalise("currency", currency.as_str());
    let customer = form.scalar("customer")?.map(parse_customer).transpose()?;
    if let Some(capture) = form.scalar("capture")?.map(parse_capture).transpose()? {
        form.normalise("capture", capture);
    }
    Ok(JudgedCharge {
        money: Money { amount, currency },
        customer,
        canonical_body: form.serialise(),
        expand_query: form.expand_query(),
    })
}

/// Judges the body of `POST /v1/charges/{id}/capture`; `headers` are the request's, for the content
/// type.
pub fn judge_capture(body: &[u8], headers: &HeaderMap) -> Result<JudgedCapture, BadParameter> {
    let form = form(body, headers, &CAPTURE)?;
    let amount = form.scalar("amount")?;
    Ok(JudgedCapture {
        amount: amount
            .map(|text| parse_amount("amount", text))
            .transpose()?,
        expand_query: form.expand_query(),
        form,
    })
}

impl JudgedCapture {
    /// What to send for a capture of `amount`, and what the fingerprint is made of. It names the amount
    /// even where the client did not: no more is captured than is reserved, and a body that is empty
    /// would leave without a last look at its time (ADR 2).
    pub fn canonical_body(&self, amount: AmountMinor) -> String {
        let mut form = self.form.clone();
        form.normalise("amount", &amount.to_string());
        form.serialise()
    }
}

fn form(body: &[u8], headers: &HeaderMap, taken: &[&str]) -> Result<FormTree, BadParameter> {
    headers::require_form(headers)?;
    let form = FormTree::parse(body)?;
    let unknown = form.names().find(|name| !taken.contains(name));
    if let Some(name) = unknown {
        let message = format!(
            "Received unknown parameter: {}. It was not sent to Stripe, since what it does to the \
             amount is not known here. Leave it out.",
            echo(name)
        );
        return Err(bad(ParameterCode::Unknown, name, message));
    }
    Ok(form)
}

fn required<'a>(form: &'a FormTree, name: &str) -> Result<&'a str, BadParameter> {
    form.scalar(name)?.ok_or_else(|| {
        let message = format!("Missing required param: {name}.");
        bad(ParameterCode::Missing, name, message)
    })
}

/// As Stripe is given it: an authorisation is reserved like a charge, so either will do. stripe-python 6 writes
/// `True` and `False` (seen on the wire); anything else Stripe might read in its own way.
fn parse_capture(text: &str) -> Result<&'static str, BadParameter> {
    match text {
        "true" | "True" => Ok("true"),
        "false" | "False" => Ok("false"),
        other => {
            let message = format!("Invalid boolean: {}. Send true or false.", echo(other));
            Err(bad(ParameterCode::ChargeInvalid, "capture", message))
        }
    }
}

/// A customer names the slot, so a text that Stripe might trim or that could be taken for another
/// slot's is refused: visible ASCII without `:`.
fn parse_customer(text: &str) -> Result<String, BadParameter> {
    if text.is_empty() {
        let message = "customer is empty: name a customer or leave the parameter out.";
        return Err(bad(
            ParameterCode::InvalidEmpty,
            "customer",
            message.to_owned(),
        ));
    }
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b':');
    if plain && text.len() <= CUSTOMER_BYTES_MAX {
        Ok(text.to_owned())
    } else {
        let message = format!(
            "Invalid customer: {}. Send an id such as cus_123.",
            echo(text)
        );
        Err(bad(ParameterCode::InvalidCharacters, "customer", message))
    }
}
