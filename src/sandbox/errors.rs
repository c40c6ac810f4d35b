//! Stripe's error envelope (contract §3.1).

use http::StatusCode;
use serde::Serialize;

use super::cards::Decline;
use super::reply::Reply;

/// An answer in Stripe's error envelope. Boxed, because results carry it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    status: StatusCode,
    should_retry: Option<bool>,
    error: Envelope,
}

#[derive(Debug, Clone, Serialize)]
struct Envelope {
    #[serde(skip_serializing_if = "Option::is_none")]
    charge: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decline_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc_url: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let error = Envelope {
            charge: None,
            code: None,
            decline_code: None,
            doc_url: None,
            message: message.into(),
            param: None,
            kind,
        };
        Self(Box::new(Details {
            status,
            should_retry: None,
            error,
        }))
    }

    /// 400 `invalid_request_error`.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// 401, for a key that is absent or not the configured one.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message)
    }

    /// 403, for something this key may not touch.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "invalid_request_error", message)
    }

    /// 404 `resource_missing`.
    pub(crate) fn missing(what: &str, id: &str, param: &str) -> Self {
        let message = format!("No such {what}: '{id}'");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            .code("resource_missing")
            .param(param)
    }

    /// 400 `resource_missing`, where a parameter names something that is not there.
    pub(crate) fn missing_param(what: &str, id: &str, param: &str) -> Self {
        Self::invalid(format!("No such {what}: '{id}'"))
            .code("resource_missing")
            .param(param)
    }

    /// 404, for a path that is not served.
    pub(crate) fn unknown_url(method: &http::Method, path: &str) -> Self {
        let message = format!("Unrecognized request URL ({method}: {path}).");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// 400 `idempotency_error`: the key was first used with other parameters (contract §2.2).
    pub(crate) fn idempotency_mismatch(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same parameters they were \
             first used with. Try using a key other than '{key}' if you meant to execute a \
             different request."
        );
        Self::new(StatusCode::BAD_REQUEST, "idempotency_error", message).should_retry(false)
    }

    /// 409 `idempotency_key_in_use` (contract §2.3).
    pub(crate) fn idempotency_in_use(key: &str) -> Self {
        let message = format!(
            "There is currently another in-progress request using this Idempotent \
             Key: {key}. Try again once it has finished."
        );
        Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
            .code("idempotency_key_in_use")
            .should_retry(true)
    }

    /// 429 `rate_limit`.
    pub(crate) fn rate_limited() -> Self {
        let message = "Request rate limit exceeded. Learn more about rate limits here \
                       https://stripe.com/docs/rate-limits.";
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "invalid_request_error",
            message,
        )
        .code("rate_limit")
    }

    /// A fault of Stripe's own: 500, 503.
    pub(crate) fn api(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, "api_error", message)
    }

    /// 413, for a body over the sandbox's bound.
    pub(crate) fn too_large() -> Self {
        let message = "The request body is too large.";
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            message,
        )
    }

    /// 402 `card_error` for a payment that was declined.
    pub(crate) fn declined(decline: Decline, charge_id: Option<&str>) -> Self {
        let mut error = Self::new(StatusCode::PAYMENT_REQUIRED, "card_error", decline.message)
            .code(decline.code)
            .should_retry(false);
        error.0.error.decline_code = decline.reason;
        error.0.error.charge = charge_id.map(str::to_owned);
        error
    }

    /// Adds Stripe's `code` and the page that explains it.
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        let page = code.replace('_', "-");
        self.0.error.code = Some(code);
        self.0.error.doc_url = Some(format!("https://stripe.com/docs/error-codes/{page}"));
        self
    }

    /// Names the parameter at fault.
    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.0.error.param = Some(param.into());
        self
    }

    /// Sets `Stripe-Should-Retry`.
    pub(crate) fn should_retry(mut self, retry: bool) -> Self {
        self.0.should_retry = Some(retry);
        self
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        let Details {
            status,
            should_retry,
            error,
        } = *error.0;
        let mut reply = Self::json(status, &serde_json::json!({ "error": error }));
        reply.should_retry = should_retry;
        reply
    }
}
