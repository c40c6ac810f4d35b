//! Every refusal of the data plane as an answer in Stripe's envelope (design §4): one table, one
//! function. The messages are for the engineer who reads the exception.
//!
//! `type` is never `card_error` and `decline_code` is never set: dunning code must not tell a customer
//! that a card failed.

mod message;

#[cfg(test)]
mod tests;

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde::Serialize;
use uuid::Uuid;

use crate::domain::refusal::{ParameterCode, Refusal};
use crate::domain::vault_key::RefusalStatus;

static STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");
static REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// What a refused client gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalAnswer {
    /// The status.
    pub status: StatusCode,
    /// `error.type`.
    pub error_type: &'static str,
    /// `error.code`; also in the log line of the request.
    pub code: Option<&'static str>,
    /// `error.param`.
    pub param: Option<String>,
    /// `error.message`.
    pub message: String,
    /// `Stripe-Should-Retry`.
    pub should_retry: ShouldRetry,
}

impl RefusalAnswer {
    /// What logs and metrics call it: the code, or the type where Stripe sends no code.
    pub fn label(&self) -> &'static str {
        self.code.unwrap_or(self.error_type)
    }
}

/// `Stripe-Should-Retry`: always sent, since SDKs would retry some of these by status alone (contract
/// §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShouldRetry {
    /// The same request may succeed later.
    Yes,
    /// It will not.
    No,
}

impl ShouldRetry {
    /// The header's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "true",
            Self::No => "false",
        }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(rename = "type")]
    error_type: &'a str,
}

impl RefusalAnswer {
    /// The body, `application/json`.
    pub fn body(&self) -> String {
        let envelope = Envelope {
            error: Body {
                code: self.code,
                message: &self.message,
                param: self.param.as_deref(),
                error_type: self.error_type,
            },
        };
        // Texts under fixed names always serialise.
        serde_json::to_string_pretty(&envelope).unwrap_or_default()
    }

    /// The whole response. `uuid` makes its `Request-Id`; the length is the server's to add.
    pub fn response(&self, uuid: Uuid) -> Response<String> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let should_retry = HeaderValue::from_static(self.should_retry.as_str());
        headers.insert(&STRIPE_SHOULD_RETRY, should_retry);
        // Hex digits always fit a header.
        if let Ok(id) = HeaderValue::try_from(request_id(uuid)) {
            headers.insert(&REQUEST_ID, id);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"spendcap\"");
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The `Request-Id` of an answer made here: `req_` and the UUID's digits, since SDKs show and log it.
pub fn request_id(uuid: Uuid) -> String {
    format!("req_{}", uuid.simple())
}

/// Every code that a refused client can get; a refusal without one counts under its `type`, as in the log.
pub fn codes() -> impl Iterator<Item = &'static str> {
    let parameters = ParameterCode::ALL.into_iter().map(ParameterCode::as_str);
    CODES.into_iter().chain(parameters)
}

/// Those of the table below, but for a bad parameter's.
const CODES: [&str; 24] = [
    "vault_key_invalid",
    "vault_key_revoked",
    "vault_key_expired",
    "vault_key_not_yet_valid",
    "vault_key_stopped",
    "operation_not_permitted",
    "account_not_permitted",
    "currency_not_allowed",
    "customer_required",
    "spend_cap_reached",
    "charge_limit_exceeded",
    "duplicate_customer_period",
    "idempotency_error",
    "idempotency_key_in_use",
    "outcome_unknown",
    "charge_already_captured",
    "resource_missing",
    "request_too_large",
    "ledger_unavailable",
    "ledger_lost_commits",
    "overloaded",
    "upstream_unhealthy",
    "upstream_unreachable",
    "upstream_failed",
];

/// The answer to a refusal.
pub fn answer(refusal: &Refusal) -> RefusalAnswer {
    let row = row(refusal);
    RefusalAnswer {
        status: row.status,
        error_type: row.error_type,
        code: row.code,
        param: param(refusal),
        message: message::of(refusal),
        should_retry: row.should_retry,
    }
}

/// A row of design §4's table.
struct Row {
    status: StatusCode,
    error_type: &'static str,
    code: Option<&'static str>,
    should_retry: ShouldRetry,
}

impl Row {
    const fn invalid(status: StatusCode, code: &'static str) -> Self {
        Self {
            status,
            error_type: "invalid_request_error",
            code: Some(code),
            should_retry: ShouldRetry::No,
        }
    }

    const fn idempotency(code: Option<&'static str>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error_type: "idempotency_error",
            code,
            should_retry: ShouldRetry::No,
        }
    }

    const fn api(status: StatusCode, code: &'static str) -> Self {
        Self {
            status,
            error_type: "api_error",
            code: Some(code),
            should_retry: ShouldRetry::Yes,
        }
    }

    const fn retried(mut self) -> Self {
        self.should_retry = ShouldRetry::Yes;
        self
    }
}

/// Design §4.
const fn row(refusal: &Refusal) -> Row {
    use StatusCode as S;
    match refusal {
        Refusal::VaultKeyInvalid => Row::invalid(S::UNAUTHORIZED, "vault_key_invalid"),
        Refusal::VaultKeyRevoked => Row::invalid(S::UNAUTHORIZED, "vault_key_revoked"),
        Refusal::VaultKeyExpired { .. } => Row::invalid(S::UNAUTHORIZED, "vault_key_expired"),
        Refusal::VaultKeyNotYetValid { .. } => {
            Row::invalid(S::UNAUTHORIZED, "vault_key_not_yet_valid")
        }
        Refusal::VaultKeyStopped => Row::invalid(S::FORBIDDEN, "vault_key_stopped"),
        Refusal::OperationNotPermitted { .. } => {
            Row::invalid(S::FORBIDDEN, "operation_not_permitted")
        }
        Refusal::AccountNotPermitted => Row::invalid(S::FORBIDDEN, "account_not_permitted"),
        Refusal::BadParameter(bad) => Row::invalid(S::BAD_REQUEST, bad.code.as_str()),
        Refusal::CurrencyNotAllowed { .. } => Row::invalid(S::BAD_REQUEST, "currency_not_allowed"),
        Refusal::CustomerRequired => Row::invalid(S::BAD_REQUEST, "customer_required"),
        Refusal::SpendCapReached(cap) => Row::invalid(status(cap.status), "spend_cap_reached"),
        Refusal::ChargeLimitExceeded { status: chosen, .. } => {
            Row::invalid(status(*chosen), "charge_limit_exceeded")
        }
        Refusal::DuplicateCustomerPeriod { .. } => {
            Row::idempotency(Some("duplicate_customer_period"))
        }
        Refusal::IdempotencyKeyReused { .. } => Row::idempotency(None),
        Refusal::IdempotencyKeyInUse => {
            Row::invalid(S::CONFLICT, "idempotency_key_in_use").retried()
        }
        Refusal::OutcomeUnknown { retryable: true } => {
            Row::invalid(S::CONFLICT, "outcome_unknown").retried()
        }
        Refusal::OutcomeUnknown { retryable: false } => {
            Row::invalid(S::CONFLICT, "outcome_unknown")
        }
        Refusal::ChargeAlreadyCaptured { .. } => {
            Row::invalid(S::BAD_REQUEST, "charge_already_captured")
        }
        Refusal::NoSuchCharge { .. } => Row::invalid(S::NOT_FOUND, "resource_missing"),
        Refusal::RequestTooLarge { .. } => Row::invalid(S::PAYLOAD_TOO_LARGE, "request_too_large"),
        Refusal::LedgerUnavailable => Row::api(S::SERVICE_UNAVAILABLE, "ledger_unavailable"),
        Refusal::LedgerLostCommits => Row::api(S::SERVICE_UNAVAILABLE, "ledger_lost_commits"),
        Refusal::Overloaded => Row::api(S::SERVICE_UNAVAILABLE, "overloaded"),
        Refusal::UpstreamUnhealthy => Row::api(S::SERVICE_UNAVAILABLE, "upstream_unhealthy"),
        Refusal::UpstreamUnreachable => Row::api(S::BAD_GATEWAY, "upstream_unreachable"),
        Refusal::UpstreamFailed => Row::api(S::BAD_GATEWAY, "upstream_failed"),
        Refusal::NoAnswer => Row::api(S::GATEWAY_TIMEOUT, "outcome_unknown"),
    }
}

const fn status(chosen: RefusalStatus) -> StatusCode {
    match chosen {
        RefusalStatus::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        RefusalStatus::Forbidden => StatusCode::FORBIDDEN,
    }
}

fn param(refusal: &Refusal) -> Option<String> {
    match refusal {
        Refusal::BadParameter(bad) => bad.param.clone(),
        Refusal::CurrencyNotAllowed { .. } => Some("currency".to_owned()),
        Refusal::CustomerRequired => Some("customer".to_owned()),
        Refusal::ChargeLimitExceeded { .. } => Some("amount".to_owned()),
        _ => None,
    }
}
