//! The allow-list: which (method, path) is which operation (contract §1). What is not listed is
//! refused, so that a path Stripe adds tomorrow is not free.

use http::Method;

use super::form::FormTree;
use super::parameter::{ParameterCode, bad_request};
use crate::domain::operation::{MoneyOperation, Permission};
use crate::domain::refusal::{BadParameter, Refusal};

/// Longest id in a path; Stripe's own limit for ids.
const ID_BYTES_MAX: usize = 255;

/// What a request does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Classified {
    /// It can move money.
    Money(MoneyCall),
    /// It reads.
    Read {
        /// What the vault key must hold.
        permission: Permission,
    },
}

/// A call that can move money.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoneyCall {
    /// `POST /v1/charges`.
    ChargesCreate,
    /// `POST /v1/charges/{id}/capture`.
    ChargesCapture {
        /// The charge.
        charge: String,
    },
}

impl MoneyCall {
    /// The operation it is.
    pub fn operation(&self) -> MoneyOperation {
        match self {
            Self::ChargesCreate => MoneyOperation::ChargesCreate,
            Self::ChargesCapture { .. } => MoneyOperation::ChargesCapture,
        }
    }

    /// The permission it takes.
    pub fn permission(&self) -> Permission {
        match self {
            Self::ChargesCreate | Self::ChargesCapture { .. } => Permission::ChargesWrite,
        }
    }

    /// The path to send it to, written anew.
    pub fn path(&self) -> String {
        match self {
            Self::ChargesCreate => "/v1/charges".to_owned(),
            Self::ChargesCapture { charge } => format!("/v1/charges/{charge}/capture"),
        }
    }
}

/// Finds a request in the list. `path` and `query` are the raw ones of the request target. A read's
/// query is checked and passes as it is; a POST may have none, since Stripe counts it among the
/// parameters (contract §5.1).
pub fn classify(method: &Method, path: &str, query: Option<&str>) -> Result<Classified, Refusal> {
    let classified = find(method, path).ok_or(Refusal::OperationNotPermitted { missing: None })?;
    match (&classified, query) {
        (_, None) => {}
        (Classified::Read { .. }, Some(query)) => {
            FormTree::parse(query.as_bytes()).map_err(BadParameter::from)?;
        }
        (Classified::Money(_), Some(_)) => {
            let message = "A POST takes no query string: send every parameter in the body.";
            return Err(bad_request(ParameterCode::Exclusive, message.to_owned()).into());
        }
    }
    Ok(classified)
}

fn find(method: &Method, path: &str) -> Option<Classified> {
    let segments: Vec<&str> = path.strip_prefix("/v1/")?.split('/').collect();
    if !segments.iter().all(|segment| is_id(segment)) {
        return None;
    }
    match *method {
        Method::GET => Some(Classified::Read {
            permission: read_permission(&segments)?,
        }),
        Method::POST => money_call(&segments).map(Classified::Money),
        _ => None,
    }
}

fn money_call(segments: &[&str]) -> Option<MoneyCall> {
    match segments {
        ["charges"] => Some(MoneyCall::ChargesCreate),
        ["charges", charge, "capture"] => Some(MoneyCall::ChargesCapture {
            charge: (*charge).to_owned(),
        }),
        _ => None,
    }
}

fn read_permission(segments: &[&str]) -> Option<Permission> {
    match segments {
        ["charges"] | ["charges", _] => Some(Permission::ChargesRead),
        ["customers"] | ["customers", _] => Some(Permission::CustomersRead),
        ["customers", _, "payment_methods"]
        | ["customers", _, "payment_methods", _]
        | ["payment_methods"]
        | ["payment_methods", _] => Some(Permission::PaymentMethodsRead),
        ["balance_transactions"] | ["balance_transactions", _] => {
            Some(Permission::BalanceTransactionsRead)
        }
        ["events"] | ["events", _] => Some(Permission::EventsRead),
        _ => None,
    }
}

/// Letters, digits and `_` only: no escape, dot, slash or backslash can hide in it.
fn is_id(text: &str) -> bool {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && (1..=ID_BYTES_MAX).contains(&text.len())
}

#[cfg(test)]
mod tests;
