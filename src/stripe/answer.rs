//! What an answer of Stripe proves (design §3.2): status, headers and the complete body to an
//! [`Outcome`]. What cannot be read proves nothing.

mod charge;
mod error;

#[cfg(test)]
mod tests;

use http::{HeaderMap, StatusCode};

use self::error::ErrorType;
#[cfg(test)]
use crate::domain::mistake::{Mistake, is_planted};
use crate::domain::money::Currency;
use crate::domain::outcome::Outcome;

pub use charge::{AnswerError, ChargeFacts, ChargeStatus, charge_facts};
pub(in crate::stripe) use charge::{facts_of, is_id};

/// Stripe's mark on an answer it has stored before (contract §2.1).
const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";

/// A complete answer. One that was cut short never becomes an `Answer`: its outcome is
/// [`Outcome::Unknown`].
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The whole body, not compressed.
    pub body: &'a [u8],
}

impl Answer<'_> {
    fn is_replayed(&self) -> bool {
        let value = self.headers.get(IDEMPOTENT_REPLAYED);
        value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
    }
}

/// What the answer to a charges.create in `currency` proves.
pub fn create_outcome(answer: &Answer<'_>, currency: Currency) -> Outcome {
    match Proof::of(answer) {
        Proof::Success => charge_outcome(answer, currency),
        #[cfg(test)]
        Proof::Refused(_)
            if answer.status == StatusCode::UNAUTHORIZED
                && is_planted(Mistake::ReleaseOn401AfterAnUnprovenSend) =>
        {
            Outcome::StoredRefusal
        }
        // Stripe stored the refusal: whatever was sent under this key came to nothing.
        Proof::Refused(_) if answer.is_replayed() => Outcome::StoredRefusal,
        Proof::Refused(ErrorType::Card) => Outcome::StoredRefusal,
        Proof::Refused(_) => Outcome::RefusedThisSend,
        Proof::ServerError => Outcome::ServerError,
        Proof::Nothing => Outcome::Unknown,
    }
}

/// What the answer to a charges.capture of a charge in `currency` proves. A refusal says nothing about
/// earlier calls on the charge (contract §1.8): the charge itself must be read.
pub fn capture_outcome(answer: &Answer<'_>, currency: Currency) -> Outcome {
    match Proof::of(answer) {
        Proof::Success => charge_outcome(answer, currency),
        Proof::Refused(_) => Outcome::RefusedThisSend,
        Proof::ServerError => Outcome::ServerError,
        Proof::Nothing => Outcome::Unknown,
    }
}

/// The kinds of answers there are.
enum Proof {
    /// 2xx: the body decides.
    Success,
    /// 4xx in Stripe's envelope.
    Refused(ErrorType),
    /// 5xx, and 424, where something behind Stripe failed: either may have done so after it moved the
    /// money, and may still be rolled forward (contract §2.4).
    ServerError,
    /// 1xx, 3xx, and a 4xx that Stripe did not write: a page of some box on the way.
    Nothing,
}

impl Proof {
    fn of(answer: &Answer<'_>) -> Self {
        let status = answer.status;
        if status.is_success() {
            return Self::Success;
        }
        if status.is_server_error() || status == StatusCode::FAILED_DEPENDENCY {
            return Self::ServerError;
        }
        if !status.is_client_error() {
            return Self::Nothing;
        }
        error::read(answer.body).map_or(Self::Nothing, Self::Refused)
    }
}

fn charge_outcome(answer: &Answer<'_>, currency: Currency) -> Outcome {
    match charge_facts(answer.body) {
        Ok(facts) if facts.currency == currency => facts.outcome(),
        Ok(_) | Err(_) => Outcome::Unknown,
    }
}
