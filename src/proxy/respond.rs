//! The answer: Stripe's byte for byte with a few headers of ours, or a refusal in Stripe's envelope.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, StatusCode};
use uuid::Uuid;

use super::body::{self, AnswerBody};
use super::classify::Judged;
use super::settle::Recorded;
use super::upstream::{Answer, UpstreamError};
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::money::AmountMinor;
use crate::domain::outcome::Outcome;
use crate::domain::refusal::Refusal;
use crate::ledger::command::Refused;
use crate::stripe::envelope;
use crate::stripe::headers;

/// What the server sends.
pub(super) type Response = http::Response<AnswerBody>;

static SPENDCAP_RESERVATION: HeaderName = HeaderName::from_static("spendcap-reservation");
static SPENDCAP_REMAINING: HeaderName = HeaderName::from_static("spendcap-remaining");
static SPENDCAP_FLAGS: HeaderName = HeaderName::from_static("spendcap-flags");

/// An answer that is complete but for the connection's own headers.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: AnswerBody,
    /// What a refusal is called in logs and metrics; `None` where it is none.
    pub(super) code: Option<&'static str>,
}

/// Answers a request that was forwarded and whose outcome is recorded.
pub(super) fn forwarded(judged: &Judged, recorded: Recorded) -> Answered {
    let Recorded {
        reservation,
        flags,
        remaining,
        sent,
        outcome,
        state: _,
    } = recorded;
    let mut answered = match sent {
        Ok(answer) if passes(&answer, &outcome) => stripes(answer),
        Ok(_) | Err(UpstreamError::NoAnswer(_) | UpstreamError::TimedOut) => {
            refusal(&Refusal::NoAnswer)
        }
        Err(UpstreamError::NotSent(error)) => {
            tracing::warn!(error = ?error, "Stripe could not be reached; nothing was sent");
            refusal(&Refusal::UpstreamUnreachable)
        }
    };
    if let Some(key) = judged
        .client_key
        .as_deref()
        .and_then(|key| HeaderValue::from_str(key).ok())
    {
        answered.headers.insert(&headers::IDEMPOTENCY_KEY, key);
    }
    annotate(&mut answered.headers, reservation, remaining, &flags);
    answered
}

/// A success that proves nothing (cut off, not JSON, a redirect) must not look like one.
fn passes(answer: &Answer, outcome: &Outcome) -> bool {
    let error = answer.status.is_client_error() || answer.status.is_server_error();
    error || !outcome.proves_nothing()
}

fn stripes(answer: Answer) -> Answered {
    let headers = headers::to_client(&answer.headers);
    Answered {
        status: answer.status,
        headers,
        body: body::whole(answer.body),
        code: None,
    }
}

/// Answers a request that was not forwarded.
pub(super) fn refused(refused: &Refused) -> Answered {
    let mut answered = refusal(&refused.refusal);
    flag_header(&mut answered.headers, &refused.flags);
    answered
}

fn refusal(refusal: &Refusal) -> Answered {
    let answer = envelope::answer(refusal);
    let response = answer.response(Uuid::now_v7());
    let (parts, text) = response.into_parts();
    Answered {
        status: parts.status,
        headers: parts.headers,
        body: body::whole(Bytes::from(text)),
        code: Some(answer.label()),
    }
}

/// An answer of our own.
pub(super) fn json(status: StatusCode, mut headers: HeaderMap, text: String) -> Answered {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    Answered {
        status,
        headers,
        body: body::whole(Bytes::from(text)),
        code: None,
    }
}

/// Names the reservation, what is left under the cap, and what was observed.
pub(super) fn annotate(
    headers: &mut HeaderMap,
    reservation: ReservationId,
    remaining: AmountMinor,
    flags: &[FlagKind],
) {
    if let Ok(id) = HeaderValue::from_str(&reservation.to_string()) {
        headers.insert(&SPENDCAP_RESERVATION, id);
    }
    headers.insert(&SPENDCAP_REMAINING, HeaderValue::from(remaining.get()));
    flag_header(headers, flags);
}

fn flag_header(headers: &mut HeaderMap, flags: &[FlagKind]) {
    if flags.is_empty() {
        return;
    }
    let names: Vec<&str> = flags.iter().map(|kind| kind.as_str()).collect();
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        headers.insert(&SPENDCAP_FLAGS, names);
    }
}

/// The answer as it goes to the client.
pub(super) fn finish(answered: Answered, draining: bool) -> Response {
    let mut response = http::Response::new(answered.body);
    *response.status_mut() = answered.status;
    *response.headers_mut() = answered.headers;
    if draining {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
