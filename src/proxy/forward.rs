//! The one place from which a request that can move money leaves. It takes the proof of a reservation
//! by value, so that one proof is spent once.

use http::HeaderValue;
use tokio::time::Instant;

use super::Proxy;
use super::classify::Judged;
use super::reserve::Cleared;
use super::upstream::{Answer, MoneySend, UpstreamError};
use crate::domain::flag::FlagKind;
use crate::domain::money::AmountMinor;
use crate::domain::outcome::Outcome;
use crate::domain::reservation::Reservation;
use crate::stripe::answer::{capture_outcome, create_outcome};
use crate::stripe::catalog::MoneyCall;
use crate::stripe::headers::IDEMPOTENCY_KEY;

/// How often a send is begun that certainly did not leave: a pooled connection that Stripe had closed.
const BEGINNINGS_MAX: u32 = 3;

/// What came of one send.
pub(super) struct Forwarded {
    pub(super) reservation: Reservation,
    pub(super) flags: Vec<FlagKind>,
    pub(super) remaining: AmountMinor,
    pub(super) sent: Result<Answer, UpstreamError>,
    pub(super) outcome: Outcome,
}

/// Sends it and waits for Stripe's answer until `answer_by`.
pub(super) async fn forward(
    proxy: &Proxy,
    judged: &Judged,
    cleared: Cleared,
    answer_by: Instant,
) -> Forwarded {
    let Cleared { ticket, send_by } = cleared;
    let reservation = ticket.reservation().clone();
    let mut headers = judged.upstream_headers.clone();
    let sent = match HeaderValue::from_str(&reservation.send.upstream_key) {
        Ok(key) => {
            headers.insert(&IDEMPOTENCY_KEY, key);
            let outgoing = MoneySend {
                operation: judged.call.operation(),
                path: judged.call.path(),
                headers,
                body: judged.body.clone(),
                send_by,
                answer_by,
            };
            send_once(proxy, &outgoing).await
        }
        // Given keys are judged and derived ones are hex; without its key nothing may ever leave.
        Err(_) => Err(UpstreamError::NotSent(None)),
    };
    let outcome = outcome(&reservation, judged, &sent);
    if outcome.proves_nothing() {
        proxy.breaker.unknown();
    } else if !matches!(outcome, Outcome::NotSent) {
        proxy.breaker.known();
    }
    let (flags, remaining) = (ticket.flags().to_vec(), ticket.remaining());
    Forwarded {
        reservation,
        flags,
        remaining,
        sent,
        outcome,
    }
}

/// Sends at most once; begins again only what certainly did not leave.
async fn send_once(proxy: &Proxy, outgoing: &MoneySend) -> Result<Answer, UpstreamError> {
    let mut sent = proxy.upstream.send(outgoing).await;
    for _ in 1..BEGINNINGS_MAX {
        match &sent {
            Err(UpstreamError::NotSent(Some(error))) if !error.is_connect() => {}
            _ => break,
        }
        sent = proxy.upstream.send(outgoing).await;
    }
    sent
}

fn outcome(
    reservation: &Reservation,
    judged: &Judged,
    sent: &Result<Answer, UpstreamError>,
) -> Outcome {
    match sent {
        Err(UpstreamError::NotSent(_)) => Outcome::NotSent,
        Err(UpstreamError::NoAnswer(_) | UpstreamError::TimedOut) => Outcome::Unknown,
        Ok(answer) => match &judged.call {
            MoneyCall::ChargesCreate => create_outcome(&answer.wire(), reservation.currency),
            MoneyCall::ChargesCapture { .. } => {
                capture_outcome(&answer.wire(), reservation.currency)
            }
        },
    }
}
