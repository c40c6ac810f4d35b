//! What the sandbox answers, before it becomes an HTTP response.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use super::charges::Charge;

/// A status and a body. Cheap to clone: stored under idempotency keys.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: ReplyBody,
    /// `Stripe-Should-Retry`, where Stripe says so.
    pub(crate) should_retry: Option<bool>,
    pub(crate) content_type: &'static str,
}

/// The body. A charge is kept as it was and written out when sent, so that a stored answer costs a
/// pointer and not two kilobytes.
#[derive(Debug, Clone)]
pub(crate) enum ReplyBody {
    Bytes(Bytes),
    Charge(Arc<Charge>),
}

impl Reply {
    /// An answer in JSON.
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        Self::bytes(status, "application/json", bytes)
    }

    /// 200 with an object.
    pub(crate) fn ok(value: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, value)
    }

    /// 200 with a charge as it is now.
    pub(crate) fn charge(charge: Arc<Charge>) -> Self {
        Self {
            status: StatusCode::OK,
            body: ReplyBody::Charge(charge),
            should_retry: None,
            content_type: "application/json",
        }
    }

    /// An answer that is not Stripe's JSON, as a broken middlebox sends.
    pub(crate) fn html(status: StatusCode) -> Self {
        let page = format!("<html><body><h1>{status}</h1></body></html>\n");
        Self::bytes(status, "text/html", page.into_bytes())
    }

    /// The body as it goes on the wire.
    pub(crate) fn to_bytes(&self) -> Bytes {
        match &self.body {
            ReplyBody::Bytes(bytes) => bytes.clone(),
            ReplyBody::Charge(charge) => {
                Bytes::from(serde_json::to_vec(&charge.view()).unwrap_or_default())
            }
        }
    }

    fn bytes(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Self {
        let body = ReplyBody::Bytes(Bytes::from(body));
        Self {
            status,
            body,
            should_retry: None,
            content_type,
        }
    }
}
