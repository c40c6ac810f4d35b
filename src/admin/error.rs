//! Why a request is not answered as asked, and the one function that turns that into an answer.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use thiserror::Error;
use utoipa::ToSchema;

use crate::domain::reservation::State;
use crate::ledger::LedgerError;
use crate::ledger::command::ControlError;
use crate::reconcile::gap::GapError;
use crate::stripe::read::ReadError;

use super::param::echo;

/// Seconds until a request that met an unavailable ledger is worth repeating.
const RETRY_AFTER_S: &str = "1";

/// A request that was not carried out; nothing was changed, except where a variant says otherwise.
#[derive(Debug, Error)]
pub(super) enum AdminError {
    /// No token, or not one of ours.
    #[error("no valid admin token: send Authorization: Bearer and a token this server knows")]
    TokenInvalid,
    /// The token may only read.
    #[error("this token has the role viewer, which may only read; use one with the role admin")]
    RoleInsufficient,
    /// Nothing is served there.
    #[error("unrecognised request URL: {method} {path}; /openapi.json lists what there is")]
    UnknownPath { method: Method, path: String },
    /// Something is, under another method.
    #[error("{path} does not take {method}; the header Allow says what it takes")]
    MethodNotAllowed { method: Method, path: String },
    /// A body that is not JSON.
    #[error("the body must be sent as Content-Type: application/json")]
    UnsupportedMediaType,
    /// A body over the limit.
    #[error("the body is larger than {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    /// The body did not arrive in time, or not whole.
    #[error("the body did not arrive whole within {seconds_max} s; send it again")]
    BodyIncomplete { seconds_max: u64 },
    /// A parameter or header is not accepted.
    #[error("{}", .0.message)]
    Parameter(BadParameter),
    /// No such thing.
    #[error("no such {what}: {id}")]
    NotFound { what: &'static str, id: String },
    /// Stripe says otherwise.
    #[error(
        "Stripe says otherwise: {0}. Nothing was changed. Say what the object says, or name another"
    )]
    EvidenceContradicts(String),
    /// Stripe did not show the object.
    #[error(
        "{object_id} was not read: {error}. Nothing was changed. Try again, or have your word taken \
         for it: --unread, or unread=true in the API"
    )]
    EvidenceUnread { object_id: String, error: ReadError },
    /// The ledger refused the command.
    #[error("{0}")]
    Control(ControlError),
    /// The ledger did not take the command or the question.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    /// Stripe's feed was not read to its end; what was found until then is in the ledger.
    #[error("{0}; what was found until then is in the ledger")]
    StripeUnread(GapError),
    /// The system gave no randomness.
    #[error("the system gave no random bytes for a secret; try again")]
    NoEntropy,
    /// A bug: the ledger answered about another kind of thing than was asked.
    #[error("an internal error; the log has the details under this request's id")]
    Internal,
}

/// A parameter or header that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BadParameter {
    /// Stripe's own code for the case, or one of ours.
    pub(super) code: &'static str,
    /// The name as the client wrote it, where one is to blame.
    pub(super) param: Option<String>,
    /// What is wrong and what to send instead.
    pub(super) message: String,
}

impl From<BadParameter> for AdminError {
    fn from(parameter: BadParameter) -> Self {
        Self::Parameter(parameter)
    }
}

/// Stripe's envelope.
#[derive(Serialize, ToSchema)]
pub(super) struct ErrorBody {
    /// What went wrong.
    error: ErrorDetail,
}

/// What went wrong, and what to do.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct ErrorDetail {
    /// `invalid_request_error`, `idempotency_error` or `api_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Stable, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// For people.
    message: String,
    /// The parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const IDEMPOTENCY: &str = "idempotency_error";
const API: &str = "api_error";

impl AdminError {
    /// Status, type and code: the whole table.
    fn class(&self) -> (StatusCode, &'static str, Option<&'static str>) {
        use StatusCode as S;
        let (status, kind, code) = match self {
            Self::TokenInvalid => (S::UNAUTHORIZED, INVALID_REQUEST, "admin_token_invalid"),
            Self::RoleInsufficient => (S::FORBIDDEN, INVALID_REQUEST, "role_insufficient"),
            Self::UnknownPath { .. } => (S::NOT_FOUND, INVALID_REQUEST, "url_unknown"),
            Self::MethodNotAllowed { .. } => {
                (S::METHOD_NOT_ALLOWED, INVALID_REQUEST, "method_not_allowed")
            }
            Self::UnsupportedMediaType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                INVALID_REQUEST,
                "content_type_unsupported",
            ),
            Self::BodyTooLarge { .. } => {
                (S::PAYLOAD_TOO_LARGE, INVALID_REQUEST, "request_too_large")
            }
            Self::BodyIncomplete { .. } => {
                (S::REQUEST_TIMEOUT, INVALID_REQUEST, "request_incomplete")
            }
            Self::Parameter(parameter) => (S::BAD_REQUEST, INVALID_REQUEST, parameter.code),
            Self::NotFound { .. } | Self::Control(ControlError::NotFound(_)) => {
                (S::NOT_FOUND, INVALID_REQUEST, "resource_missing")
            }
            // Stripe sends no code with it (contract §2.2).
            Self::Control(ControlError::KeyReused) => {
                return (S::BAD_REQUEST, IDEMPOTENCY, None);
            }
            Self::Control(ControlError::Revoked) => {
                (S::CONFLICT, INVALID_REQUEST, "vault_key_revoked")
            }
            Self::Control(ControlError::CapOverflow) => {
                (S::BAD_REQUEST, INVALID_REQUEST, "parameter_invalid_integer")
            }
            Self::Control(
                ControlError::NotResolvable(_)
                | ControlError::SentAgain(_)
                | ControlError::OtherObject(_)
                | ControlError::ObjectTaken(_),
            ) => (S::CONFLICT, INVALID_REQUEST, "reservation_not_resolvable"),
            Self::EvidenceContradicts(_) => (S::CONFLICT, INVALID_REQUEST, "evidence_contradicts"),
            Self::EvidenceUnread { .. } => (S::CONFLICT, INVALID_REQUEST, "evidence_unread"),
            // Only the reading of a gap asks for these, and it tells them in its own words.
            Self::Control(
                ControlError::Known(_) | ControlError::OtherLoss | ControlError::TooEarly(_),
            ) => (S::CONFLICT, INVALID_REQUEST, "ledger_lost_commits"),
            Self::Ledger(LedgerError::Unavailable) => {
                (S::SERVICE_UNAVAILABLE, API, "ledger_unavailable")
            }
            Self::Ledger(LedgerError::Overloaded) => (S::SERVICE_UNAVAILABLE, API, "overloaded"),
            Self::Ledger(LedgerError::Inconsistent) => {
                (S::INTERNAL_SERVER_ERROR, API, "ledger_inconsistent")
            }
            Self::StripeUnread(_) => (S::BAD_GATEWAY, API, "stripe_unread"),
            Self::NoEntropy => (S::SERVICE_UNAVAILABLE, API, "entropy_unavailable"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, API, "internal"),
        };
        (status, kind, Some(code))
    }

    fn param(&self) -> Option<String> {
        match self {
            Self::Parameter(parameter) => parameter.param.clone(),
            Self::NotFound { .. } | Self::Control(ControlError::NotFound(_)) => {
                Some("id".to_owned())
            }
            Self::Control(ControlError::CapOverflow) => Some("expected_total".to_owned()),
            Self::EvidenceUnread { .. }
            | Self::Control(ControlError::OtherObject(_) | ControlError::ObjectTaken(_)) => {
                Some("object_id".to_owned())
            }
            Self::Control(ControlError::SentAgain(_)) => Some("sends".to_owned()),
            _ => None,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Control(error @ ControlError::NotResolvable(state)) => {
                format!("{error}: {}", instead_of_resolving(*state))
            }
            Self::Ledger(error) => format!("{error}; {}", after_no_ledger(*error)),
            other => other.to_string(),
        }
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let (status, kind, code) = self.class();
        let (message, param) = (self.message(), self.param());
        let error = ErrorDetail {
            kind,
            code,
            message,
            param,
        };
        let mut response = (status, Json(ErrorBody { error })).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        if status.is_server_error() {
            tracing::error!(error.code = code, "Admin request failed: {self}");
        }
        response
    }
}

/// Answers a path that nothing serves.
pub(super) async fn unknown_path(method: Method, uri: Uri) -> AdminError {
    let path = echo(uri.path());
    AdminError::UnknownPath { method, path }
}

/// Answers a method that a path does not take; the router adds `Allow`.
pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> AdminError {
    let path = echo(uri.path());
    AdminError::MethodNotAllowed { method, path }
}

/// Books that contradict themselves do so again.
fn after_no_ledger(error: LedgerError) -> &'static str {
    match error {
        LedgerError::Unavailable | LedgerError::Overloaded => "try again",
        LedgerError::Inconsistent => {
            "nothing was changed, and trying again does not help: the log has the details"
        }
    }
}

fn instead_of_resolving(state: State) -> &'static str {
    match state {
        State::InFlight => {
            "its answer is still on its way; once its deadline passes it is held and can be resolved"
        }
        State::Settled => {
            "its money moved, and is counted; make a refund in Stripe if it should not have"
        }
        State::Released => {
            "its money did not move, and is not counted; if it did, resolve it as settled with the \
             object that shows it"
        }
        State::Open | State::Held | State::WrittenOff => "ask again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledgers_errors_say_what_to_do() {
        use ControlError as C;
        use LedgerError as L;
        for (error, status, code, says) in [
            (
                L::Unavailable.into(),
                503,
                Some("ledger_unavailable"),
                "try again",
            ),
            (L::Overloaded.into(), 503, Some("overloaded"), "try again"),
            (
                L::Inconsistent.into(),
                500,
                Some("ledger_inconsistent"),
                "trying again does not help",
            ),
            (
                AdminError::Control(C::KeyReused),
                400,
                None,
                "use a new one",
            ),
            (
                AdminError::Control(C::Revoked),
                409,
                Some("vault_key_revoked"),
                "issue a new one",
            ),
            (
                AdminError::Control(C::NotResolvable(State::InFlight)),
                409,
                Some("reservation_not_resolvable"),
                "once its deadline passes",
            ),
            (
                AdminError::Control(C::SentAgain(2)),
                409,
                Some("reservation_not_resolvable"),
                "look at it again",
            ),
            (
                AdminError::NoEntropy,
                503,
                Some("entropy_unavailable"),
                "try again",
            ),
        ] {
            assert!(error.message().contains(says), "{}", error.message());
            assert_eq!(error.class().2, code);
            let response = error.into_response();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), status == 503);
        }
    }
}
