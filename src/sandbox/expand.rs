//! `expand[]`: objects in place of their ids.

use std::sync::Arc;

use serde_json::Value;

use super::books::Books;
use super::charges::Charge;
use super::errors::ApiError;
use super::params::Params;
use super::reply::Reply;

/// Properties that Stripe expands on a charge and the sandbox leaves as they are: always null here.
const ALWAYS_NULL: [&str; 9] = [
    "application",
    "application_fee",
    "failure_balance_transaction",
    "invoice",
    "on_behalf_of",
    "payment_intent",
    "review",
    "source_transfer",
    "transfer",
];

/// Which properties of a charge to expand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expand {
    customer: bool,
    balance_transaction: bool,
}

impl Expand {
    /// Reads `expand[]`; names begin with `prefix` (`data.` in lists).
    pub(crate) fn read(params: &Params, prefix: &str) -> Result<Self, ApiError> {
        let mut expand = Self::default();
        for name in params.strings("expand")? {
            match name.strip_prefix(prefix) {
                Some("customer") => expand.customer = true,
                Some("balance_transaction") => expand.balance_transaction = true,
                Some(other) if ALWAYS_NULL.contains(&other) => {}
                _ => {
                    let message = format!("This property cannot be expanded ({name}).");
                    return Err(ApiError::invalid(message).param("expand"));
                }
            }
        }
        Ok(expand)
    }

    /// 200 with the charge.
    pub(crate) fn reply(self, books: &Books, charge: Arc<Charge>) -> Reply {
        if self.customer || self.balance_transaction {
            return Reply::ok(&self.render(books, &charge));
        }
        Reply::charge(charge)
    }

    /// The charge as JSON.
    pub(crate) fn render(self, books: &Books, charge: &Charge) -> Value {
        let mut value = serde_json::to_value(charge.view()).unwrap_or_default();
        let customer = charge.customer.as_ref().filter(|_| self.customer);
        if let Some(customer) = customer.and_then(|id| books.customers.get(id)) {
            value["customer"] = customer.render();
        }
        let transaction = charge
            .balance_transaction
            .as_ref()
            .filter(|_| self.balance_transaction);
        if let Some(transaction) = transaction.and_then(|id| books.transactions.get(id)) {
            value["balance_transaction"] = transaction.render();
        }
        value
    }
}
