//! What Stripe answers (contract §2, §3).

use bytes::Bytes;
use http::Response;

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    body: String,
    is_replayed: bool,
}

impl Answer {
    /// Answers that come before anything is carried out; none of them is remembered.
    pub(super) const BEFORE_EXECUTION: [fn() -> Self; 6] = [
        Self::unauthorised,
        Self::rate_limited,
        Self::invalid,
        Self::not_found,
        || Self::html(502),
        || Self::error(503, "api_error"),
    ];

    fn new(status: u16, body: String) -> Self {
        Self {
            status,
            body,
            is_replayed: false,
        }
    }

    fn error(status: u16, kind: &str) -> Self {
        let body = format!(r#"{{"error":{{"type":"{kind}","message":"no"}}}}"#);
        Self::new(status, body)
    }

    pub(super) fn ok(body: String) -> Self {
        Self::new(200, body)
    }

    pub(super) fn account() -> Self {
        Self::new(200, r#"{"id":"acct_1","object":"account"}"#.to_owned())
    }

    pub(super) fn html(status: u16) -> Self {
        Self::new(status, "<html>bad gateway</html>".to_owned())
    }

    fn unauthorised() -> Self {
        Self::error(401, "invalid_request_error")
    }

    fn invalid() -> Self {
        Self::error(400, "invalid_request_error")
    }

    pub(super) fn declined() -> Self {
        Self::error(402, "card_error")
    }

    pub(super) fn not_found() -> Self {
        Self::error(404, "invalid_request_error")
    }

    pub(super) fn not_capturable() -> Self {
        Self::error(400, "invalid_request_error")
    }

    pub(super) fn in_use() -> Self {
        Self::error(409, "invalid_request_error")
    }

    pub(super) fn key_reused() -> Self {
        Self::error(400, "idempotency_error")
    }

    pub(super) fn rate_limited() -> Self {
        Self::error(429, "invalid_request_error")
    }

    pub(super) fn server_error() -> Self {
        Self::error(500, "api_error")
    }

    pub(super) fn replayed(mut self) -> Self {
        self.is_replayed = true;
        self
    }

    pub(super) fn response(self) -> Response<Bytes> {
        let mut response = Response::builder().status(self.status);
        if self.is_replayed {
            response = response.header("idempotent-replayed", "true");
        }
        response.body(Bytes::from(self.body)).unwrap()
    }
}
