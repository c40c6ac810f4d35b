//! Stripe's connection broke before its answer was whole: the row is held, and the same request is sent
//! again under the row's first key, a few times and not for long (ADR 4). Stripe answers with what it
//! stored, or says that the first one still runs.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::Proxy;
use super::classify::Judged;
use super::reserve::{Reserved, reserve_again};
use super::settle::Recorded;
use super::upstream::UpstreamError;
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::outcome::Outcome;
use crate::domain::reservation::State;
use crate::telemetry::metrics::Tally;

/// A charge takes Stripe a second or so; one that was cut off may still run.
const PAUSE_FIRST: Duration = Duration::from_millis(250);

/// Each pause is so many times the one before.
const PAUSE_GROWTH: u32 = 4;

/// A request is sent again only so soon after it was first sent: repeats wait for it, half a minute by
/// default.
const RESEND_WITHIN: Duration = Duration::from_secs(15);

/// The sends of one client's request. All of them share the time that one answer may take.
pub(super) struct Sends {
    begun: Instant,
    answer_by: Instant,
    resends: u32,
    pause: Duration,
    /// What was sent first.
    reservation: Option<ReservationId>,
    /// What was observed before the last send.
    observed: Vec<FlagKind>,
}

impl Sends {
    pub(super) fn begin(proxy: &Proxy) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            answer_by: begun + proxy.upstream.timeout(),
            resends: 0,
            pause: PAUSE_FIRST,
            reservation: None,
            observed: Vec::new(),
        }
    }

    /// Past this no answer is waited for.
    pub(super) fn answer_by(&self) -> Instant {
        self.answer_by
    }

    /// Asks the ledger once more for a request that Stripe did not answer, where that may help: the row
    /// is held, so the answer is the next send of it, or the object where another request was faster.
    pub(super) async fn again(
        &mut self,
        proxy: &Proxy,
        judged: &Judged,
        recorded: &Recorded,
        tally: &mut Tally,
    ) -> Option<Reserved> {
        if !self.may_help(proxy, recorded) {
            return None;
        }
        self.resends += 1;
        self.reservation.get_or_insert(recorded.reservation);
        add(&mut self.observed, &recorded.flags);
        sleep(self.pause).await;
        tally.was_away(self.pause);
        self.pause *= PAUSE_GROWTH;
        let left = self.answer_by.saturating_duration_since(Instant::now());
        // Refused, by the breaker, say: what is news to the client is the outcome of what was sent.
        let mut again = reserve_again(proxy, judged, left, tally).await.ok()?;
        if let Reserved::Existing(existing) = &mut again {
            add(&mut existing.flags, &self.observed);
        }
        Some(again)
    }

    /// What the client is told, where nothing more is sent. A refusal of a later send does not speak of
    /// the first one, so it is no answer to the client's request.
    pub(super) fn conclude(&self, mut recorded: Recorded) -> Recorded {
        add(&mut recorded.flags, &self.observed);
        let sent_before = self.resends > 0 && self.reservation == Some(recorded.reservation);
        let answers_all = match &recorded.sent {
            Ok(answer) if answer.status.is_client_error() => {
                matches!(
                    recorded.outcome,
                    Outcome::StoredRefusal | Outcome::Dead { .. }
                )
            }
            Ok(_) => true,
            Err(_) => false,
        };
        if sent_before && !answers_all {
            recorded.sent = Err(UpstreamError::NoAnswer(None));
        }
        recorded
    }

    fn may_help(&self, proxy: &Proxy, recorded: &Recorded) -> bool {
        let lost = match &recorded.sent {
            Err(UpstreamError::NoAnswer(_)) => true,
            // The one before still runs.
            Ok(answer) => self.resends > 0 && answer.status == StatusCode::CONFLICT,
            Err(UpstreamError::NotSent(_) | UpstreamError::TimedOut) => false,
        };
        let next = Instant::now() + self.pause;
        let in_time = next < self.answer_by && next < self.begun + RESEND_WITHIN;
        let held = recorded.state == Some(State::Held);
        let left = self.resends < proxy.settings.resends_max;
        lost && held && in_time && left && proxy.breaker.admit().is_ok()
    }
}

fn add(flags: &mut Vec<FlagKind>, more: &[FlagKind]) {
    for kind in more {
        if !flags.contains(kind) {
            flags.push(*kind);
        }
    }
}
