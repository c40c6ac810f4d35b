//! What the answer proved goes to the ledger; the response waits for that, within a bound.

use http::header::HeaderMap;

use super::Proxy;
use super::classify::Judged;
use super::forward::Forwarded;
use super::upstream::{Answer, UpstreamError};
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::money::AmountMinor;
use crate::domain::outcome::Outcome;
use crate::domain::reservation::State;
use crate::domain::settlement::Report;
use crate::stripe::answer::charge_facts;
use crate::stripe::catalog::MoneyCall;
use crate::telemetry::metrics::Tally;

/// **Proof** that a send's outcome is with the ledger: stored, or retried there until it is.
pub(super) struct Recorded {
    pub(super) reservation: ReservationId,
    pub(super) flags: Vec<FlagKind>,
    pub(super) remaining: AmountMinor,
    pub(super) sent: Result<Answer, UpstreamError>,
    pub(super) outcome: Outcome,
    /// Where the reservation stands; `None` while the settle is not stored.
    pub(super) state: Option<State>,
}

pub(super) async fn settle(
    proxy: &Proxy,
    judged: &Judged,
    forwarded: Forwarded,
    tally: &mut Tally,
) -> Recorded {
    let Forwarded {
        reservation,
        mut flags,
        mut remaining,
        sent,
        outcome,
    } = forwarded;
    let id = reservation.id;
    let outcome = tally.away(ask_the_object(proxy, judged, outcome)).await;
    let report = Report {
        reservation,
        outcome: outcome.clone(),
    };
    let pending = proxy.ledger.settle(report).await;
    let mut state = None;
    match tokio::time::timeout(proxy.settings.settle_wait, pending.stored()).await {
        Ok(Ok(settled)) => {
            flags.extend(settled.flags);
            remaining = settled.remaining;
            state = Some(settled.state);
        }
        Ok(Err(error)) => tracing::error!(reservation.id = %id, %error, "A settle was not stored"),
        Err(_elapsed) => tracing::warn!(reservation.id = %id, "A settle is not stored yet"),
    }
    Recorded {
        reservation: id,
        flags,
        remaining,
        sent,
        outcome,
        state,
    }
}

/// A refused operation on an object says nothing about earlier ones: the object itself does. Where it
/// cannot be read, the refusal stands for what it proves, which is this send alone.
async fn ask_the_object(proxy: &Proxy, judged: &Judged, outcome: Outcome) -> Outcome {
    let MoneyCall::ChargesCapture { charge } = &judged.call else {
        return outcome;
    };
    if outcome != Outcome::RefusedThisSend {
        return outcome;
    }
    let path = format!("/v1/charges/{charge}");
    let headers: HeaderMap = judged.upstream_headers.clone();
    let read = proxy.upstream.read_whole(&path, headers).await;
    let facts = read.ok().filter(|answer| answer.status.is_success());
    match facts
        .and_then(|answer| charge_facts(&answer.body).ok())
        .map(|facts| facts.outcome())
    {
        Some(Outcome::Open { .. }) | None => outcome,
        Some(decided) => decided,
    }
}
