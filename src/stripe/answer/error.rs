//! Stripe's error envelope, as far as it proves anything (contract §3.1).

use serde::Deserialize;

/// The types of Stripe's errors in v1, the older ones included. Another `type` is not Stripe's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub(super) enum ErrorType {
    #[serde(rename = "api_error")]
    Api,
    #[serde(rename = "card_error")]
    Card,
    #[serde(rename = "idempotency_error")]
    Idempotency,
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "rate_limit_error")]
    RateLimit,
}

#[derive(Deserialize)]
struct Envelope {
    error: Body,
}

#[derive(Deserialize)]
struct Body {
    #[serde(rename = "type")]
    kind: ErrorType,
}

/// The type of the error; `None` where the body is not an envelope of Stripe.
pub(super) fn read(body: &[u8]) -> Option<ErrorType> {
    let envelope: Envelope = serde_json::from_slice(body).ok()?;
    Some(envelope.error.kind)
}
