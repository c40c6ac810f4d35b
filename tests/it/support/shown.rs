//! A Stripe of which only reads are asked, and which shows what a test lets it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::StatusCode;
use serde_json::{Value, json};
use spendcap::stripe::read::{ReadAnswer, Reading, StripeRead};

/// Charges by id; everything else is 404.
#[derive(Debug, Default)]
pub(crate) struct Shown(Mutex<HashMap<String, Value>>);

impl Shown {
    /// Shows a captured charge.
    pub(crate) fn paid(&self, id: &str, customer: &str, amount: i64) {
        let charge = json!({"id": id, "object": "charge", "amount": amount, "currency": "usd",
            "customer": customer, "captured": true, "amount_captured": amount,
            "status": "succeeded", "created": 1_785_600_000});
        let path = format!("/v1/charges/{id}");
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(path, charge);
    }
}

impl StripeRead for Shown {
    fn read<'a>(&'a self, path_and_query: &'a str, _: &'a str) -> Reading<'a> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shown.get(path_and_query).cloned();
        let status = match found {
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        let body = found.unwrap_or_default().to_string().into();
        Box::pin(async move { Ok(ReadAnswer { status, body }) })
    }
}
