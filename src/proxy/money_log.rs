//! One log line for each request that could move money: who asked for what, what the ledger decided, what
//! came of it, how long it took. Never a body, never a secret.

mod attempt_id;
mod unjudged;

use tokio::time::{Duration, Instant};

use http::HeaderMap;

use super::classify::Judged;
use super::forward::Forwarded;
use super::respond::Answered;
use super::settle::Recorded;
use crate::domain::echo::masked;
use crate::domain::flag::FlagKind;
use crate::domain::id::ReservationId;
use crate::domain::outcome::Outcome;
use crate::domain::refusal::Refusal;
use crate::domain::reservation::State;
use crate::ledger::command::{Existing, Refused};
use crate::telemetry::metrics::{Decision, DuplicateAction, Tally};

pub(super) use unjudged::Unjudged;

/// Which of its fields are known depends on how far a request came; the message is the same.
const MESSAGE: &str = "Money request";

/// A judged request's line, filled in as the request goes along.
pub(super) struct MoneyLine<'a> {
    judged: &'a Judged,
    stages: Stages,
    tally: Tally,
    reservation: Option<ReservationId>,
    /// How often it was sent.
    sends: u32,
    /// What the answer proved.
    outcome: Option<&'static str>,
    /// Where the reservation stands; `None` while its settle is not stored.
    state: Option<&'static str>,
    stripe_request_id: Option<String>,
}

/// How long each stage took, over all sends.
struct Stages {
    received: Instant,
    last: Instant,
    judge: Duration,
    reserve: Duration,
    stripe: Option<Duration>,
    settle: Option<Duration>,
}

impl Stages {
    /// It has been judged since it was `received`.
    fn start(received: Instant) -> Self {
        let now = Instant::now();
        Self {
            received,
            last: now,
            judge: now.duration_since(received),
            reserve: Duration::ZERO,
            stripe: None,
            settle: None,
        }
    }

    /// The time since the last stage ended.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut self.last, now))
    }
}

impl<'a> MoneyLine<'a> {
    pub(super) fn start(judged: &'a Judged, received: Instant, tally: Tally) -> Self {
        Self {
            judged,
            stages: Stages::start(received),
            tally,
            reservation: None,
            sends: 0,
            outcome: None,
            state: None,
            stripe_request_id: None,
        }
    }

    /// The ledger has reserved it.
    pub(super) fn reserved(&mut self) {
        self.decided();
        self.tally.decide(Decision::Send);
    }

    /// Stripe answered, or did not.
    pub(super) fn forwarded(&mut self, forwarded: &Forwarded) {
        self.at_stripe();
        let second = forwarded.flags.contains(&FlagKind::DuplicateCustomerPeriod);
        if second && forwarded.reservation.send.sends == 1 {
            self.tally.duplicate(DuplicateAction::Passed);
        }
        self.sends = self.sends.saturating_add(1);
        self.reservation = Some(forwarded.reservation.id);
        let headers = forwarded.sent.as_ref().ok().map(|answer| &answer.headers);
        self.stripe_request_id = headers.and_then(request_id);
    }

    /// The outcome is with the ledger.
    pub(super) fn recorded(&mut self, recorded: &Recorded) {
        let took = self.stages.lap();
        self.stages.settle = Some(self.stages.settle.unwrap_or_default() + took);
        self.outcome = Some(name(&recorded.outcome));
        self.state = recorded.state.map(State::as_str);
        if recorded.outcome.proves_nothing() {
            tracing::warn!(reservation = %recorded.reservation, "A reservation is held: its outcome is unknown");
        }
    }

    /// The ledger knows the object that answers it.
    pub(super) fn existing(&mut self, existing: &Existing) {
        self.decided();
        if self.sends == 0 {
            self.tally.decide(Decision::AnswerWithExisting);
        }
        self.reservation = Some(existing.reservation);
        self.state = Some(existing.state.as_str());
    }

    /// That object was asked for, and came or did not.
    pub(super) fn read(&mut self, answered: Option<&Answered>) {
        self.at_stripe();
        self.stripe_request_id = answered.and_then(|answered| request_id(&answered.headers));
    }

    fn decided(&mut self) {
        let took = self.stages.lap();
        self.stages.reserve += took;
    }

    fn at_stripe(&mut self) {
        let took = self.stages.lap();
        self.stages.stripe = Some(self.stages.stripe.unwrap_or_default() + took);
        self.tally.was_away(took);
    }

    /// It is refused, by the ledger or because the object cannot be read.
    pub(super) fn refused(&mut self, refused: &Refused) {
        if self.reservation.is_none() {
            self.decided();
        }
        match refused.refusal {
            Refusal::DuplicateCustomerPeriod { .. } => {
                self.tally.duplicate(DuplicateAction::Rejected);
            }
            Refusal::IdempotencyKeyInUse | Refusal::OutcomeUnknown { .. } => {
                self.tally.duplicate(DuplicateAction::Waited);
            }
            _ => {}
        }
    }

    /// What the request's own waits for Stripe are told to.
    pub(super) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Writes the line and counts the request. `answered` is what the client gets.
    pub(super) fn write(self, answered: &Answered) {
        let existing = self.tally.decision() == Decision::AnswerWithExisting;
        if existing && answered.code.is_none() {
            self.tally.duplicate(DuplicateAction::Replayed);
        }
        let ask = &self.judged.ask;
        tracing::info!(
            vault_key = ask.vault_key.as_str(),
            billing_period = ask.billing_period,
            operation = ask.operation.as_str(),
            customer = ask.customer.as_deref().map(masked),
            attempt_id = attempt_id::of(&self.judged.upstream_headers),
            amount_minor = ask.money.amount.get(),
            currency = ask.money.currency.as_str(),
            decision = self.tally.decision().as_str(),
            code = answered.code,
            reservation = self.reservation.map(|id| id.to_string()),
            sends = (self.sends > 0).then_some(self.sends),
            outcome = self.outcome,
            state = self.state,
            flags = text(&answered.headers, "spendcap-flags"),
            status = answered.status.as_u16(),
            request_id = request_id(&answered.headers),
            stripe_request_id = self.stripe_request_id,
            judge_ms = ms(self.stages.judge),
            reserve_ms = ms(self.stages.reserve),
            stripe_ms = self.stages.stripe.map(ms),
            settle_ms = self.stages.settle.map(ms),
            total_ms = ms(self.stages.received.elapsed()),
            "{MESSAGE}"
        );
        self.tally.answered(answered.code);
    }
}

const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Settled { .. } => "settled",
        Outcome::Open { .. } => "open",
        Outcome::Dead { .. } => "dead",
        Outcome::StoredRefusal => "stored_refusal",
        Outcome::RefusedThisSend => "refused_this_send",
        Outcome::NotSent => "not_sent",
        Outcome::ServerError | Outcome::Unknown => "unknown",
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    text(headers, "request-id")
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
