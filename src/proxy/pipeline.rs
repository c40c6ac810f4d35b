//! A request's life, top to bottom.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::request;
use http::{Method, Request};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::authenticate::authenticate;
use super::body::{self, AnyBody, BodyError};
use super::classify::{Judged, Work, classify, judge};
use super::money_log::{MoneyLine, Unjudged};
use super::resend::Sends;
use super::reserve::{Reserved, reserve};
use super::respond::{Answered, Response};
use super::{Proxy, forward, own_key, read, respond, settle};
use crate::domain::refusal::{BadParameter, ParameterCode, Refusal};
use crate::ledger::command::Refused;
use crate::telemetry::metrics::{Decision, Operation, Tally};

/// A client has this long to send its body; bodies are small and clients are near.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What a request came to before anything is reserved.
enum Accepted {
    /// It can move money, and goes on in a task that its client cannot cancel.
    Judged(Box<Judged>, OwnedSemaphorePermit),
    /// It is answered.
    Answered(Answered),
}

impl Proxy {
    /// Answers one request. Every failure becomes an answer in Stripe's envelope.
    pub(crate) async fn handle(self: Arc<Self>, request: Request<impl AnyBody>) -> Response {
        let (parts, incoming) = request.into_parts();
        let mut tally = self.metrics.request();
        let mut line = Unjudged::start(&parts);
        let accepted = self.accept(&parts, incoming, &mut tally, &mut line).await;
        let answered = match accepted {
            Ok(Accepted::Judged(judged, permit)) => {
                let received = line.judged();
                let answered = self.detach(*judged, permit, received, tally).await;
                answered.unwrap_or_else(|refused| write_refused(line, &refused))
            }
            Ok(Accepted::Answered(answered)) => counted(tally, answered),
            Err(refused) => counted(tally, write_refused(line, &refused)),
        };
        respond::finish(answered, self.is_draining())
    }

    async fn accept(
        self: &Arc<Self>,
        parts: &request::Parts,
        incoming: impl AnyBody,
        tally: &mut Tally,
        line: &mut Unjudged,
    ) -> Result<Accepted, Refused> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        let permit = permit.map_err(|_| refuse(Refusal::Overloaded))?;
        let authenticated = authenticate(self, &parts.headers, line).await;
        let authenticated = authenticated.map_err(refuse)?;
        if parts.uri.path() == own_key::PATH && parts.method == Method::GET {
            tally.decide(Decision::Pass);
            let answered = own_key::show(self, &authenticated).await;
            return Ok(Accepted::Answered(answered));
        }
        match classify(self, &authenticated, parts).map_err(refuse)? {
            Work::Read(read) => {
                tally.operate(Operation::Read);
                tally.decide(Decision::Pass);
                let answered = tally.away(read::pass_through(self, read)).await;
                answered.map(Accepted::Answered).map_err(refuse)
            }
            Work::Money(call) => {
                tally.operate(call.operation().into());
                let body = self.receive(parts, incoming, tally).await?;
                let judged = judge(self, authenticated, call, &body, tally).await?;
                Ok(Accepted::Judged(Box::new(judged), permit))
            }
        }
    }

    async fn receive(
        &self,
        parts: &request::Parts,
        incoming: impl AnyBody,
        tally: &mut Tally,
    ) -> Result<Bytes, Refused> {
        let bytes_max = self.settings.body_bytes_max;
        let too_large = || refuse(Refusal::RequestTooLarge { bytes_max });
        // Whoever asks first whether to send has nothing on the way: reading would ask for it.
        if parts.headers.contains_key(EXPECT) && body::announces_more(&incoming, bytes_max) {
            return Err(too_large());
        }
        let body = body::receive(incoming, bytes_max, BODY_TIMEOUT);
        tally.away(body).await.map_err(|error| match error {
            BodyError::TooLarge => too_large(),
            BodyError::CutOff => refuse(cut_off()),
        })
    }

    /// Hands the request to a task that the client cannot cancel, and waits for its answer.
    async fn detach(
        self: &Arc<Self>,
        judged: Judged,
        permit: OwnedSemaphorePermit,
        received: Instant,
        tally: Tally,
    ) -> Result<Answered, Refused> {
        let proxy = Arc::clone(self);
        let (answer, answered) = oneshot::channel();
        self.tasks.spawn(async move {
            let outcome = proxy.money(judged, received, tally).await;
            drop(permit);
            // The client may be gone; what had to be recorded is recorded.
            let _gone = answer.send(outcome);
        });
        // The sender is dropped unanswered only by a panic in the task; its reservation is then held at
        // its deadline, so the outcome is as unknown as after a lost answer.
        answered.await.map_err(|_| refuse(Refusal::NoAnswer))
    }

    async fn money(&self, judged: Judged, received: Instant, tally: Tally) -> Answered {
        let mut line = MoneyLine::start(&judged, received, tally);
        let answered = self.reserve_and_send(&judged, &mut line).await;
        let answered = answered.unwrap_or_else(|refused| {
            line.refused(&refused);
            respond::refused(&refused)
        });
        line.write(&answered);
        answered
    }

    /// Once through, as a rule. A send whose answer was lost is asked for again, from the reserve on.
    async fn reserve_and_send(
        &self,
        judged: &Judged,
        line: &mut MoneyLine<'_>,
    ) -> Result<Answered, Refused> {
        let mut reserved = reserve(self, judged, line.tally()).await?;
        let mut sends = Sends::begin(self);
        loop {
            match reserved {
                Reserved::Send(cleared) => {
                    line.reserved();
                    let answer_by = sends.answer_by();
                    let forwarded = forward::forward(self, judged, cleared, answer_by).await;
                    line.forwarded(&forwarded);
                    let recorded = settle::settle(self, judged, forwarded, line.tally()).await;
                    line.recorded(&recorded);
                    match sends.again(self, judged, &recorded, line.tally()).await {
                        Some(again) => reserved = again,
                        None => return Ok(respond::forwarded(judged, sends.conclude(recorded))),
                    }
                }
                Reserved::Existing(existing) => {
                    line.existing(&existing);
                    let answered = read::existing(self, judged, existing).await;
                    line.read(answered.as_ref().ok());
                    return answered;
                }
            }
        }
    }
}

/// A refusal whose line nobody else writes.
fn write_refused(line: Unjudged, refused: &Refused) -> Answered {
    let answered = respond::refused(refused);
    line.refused(&answered);
    answered
}

/// What is answered here and not in a task counts as it is.
fn counted(tally: Tally, answered: Answered) -> Answered {
    tally.answered(answered.code);
    answered
}

/// A refusal without anything observed.
pub(super) fn refuse(refusal: Refusal) -> Refused {
    Refused {
        refusal,
        flags: Vec::new(),
    }
}

fn cut_off() -> Refusal {
    Refusal::BadParameter(BadParameter {
        code: ParameterCode::Missing,
        param: None,
        message: "The request body ended before it was complete. Send the request again."
            .to_owned(),
    })
}
