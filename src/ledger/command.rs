//! What the writer is asked to do, and what it answers.

use tokio::sync::oneshot;

use crate::domain::cap::Headroom;
use crate::domain::decision::Ask;
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::refusal::Refusal;
use crate::domain::reservation::{Reservation, State};
use crate::domain::settlement::Report;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;

use super::feed::FeedReport;
use super::flag::Flag;
use super::lost::LostCommits;

/// One unit of work; a batch of them shares a transaction.
#[derive(Clone, Debug)]
pub enum Work {
    /// Decide a request that can move money.
    Reserve(Box<Ask>),
    /// Record what an answer proved.
    Settle(Box<Report>),
    /// Hold what is past its deadline.
    Sweep,
    /// Record what the event feed showed.
    Observe(Box<FeedReport>),
    /// Give a reservation up, as it was read.
    WriteOff(Box<Reservation>),
    /// An operator's command.
    Control(Box<ControlRequest>),
}

/// What the ledger says to a request that can move money.
#[derive(Debug)]
pub enum Verdict {
    /// Durably reserved: send it.
    Send(Ticket),
    /// Read the object that exists and answer with it.
    Read(Existing),
    /// Wait for that reservation, then ask again.
    Wait(Waiting),
    /// The object's owner became known between the look-up and the decision: look it up again.
    LookAgain,
    /// Answer with this.
    Refuse(Refused),
}

/// **Proof** that the worst case of one send is durably reserved. Only the ledger makes one, after its
/// commit; forwarding takes one by value.
#[derive(Debug)]
pub struct Ticket {
    pub(super) reservation: Box<Reservation>,
    pub(super) flags: Vec<FlagKind>,
    pub(super) remaining: AmountMinor,
}

impl Ticket {
    /// The row as it was committed.
    pub fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// What was observed about the request.
    pub fn flags(&self) -> &[FlagKind] {
        &self.flags
    }

    /// What is left under the cap, in minor units.
    pub fn remaining(&self) -> AmountMinor {
        self.remaining
    }
}

/// An object that already stands for what was asked.
#[derive(Debug)]
pub struct Existing {
    /// The reservation that made it.
    pub reservation: ReservationId,
    /// Where that stands.
    pub state: State,
    /// The object.
    pub object_id: String,
    /// The idempotency key it was first made under.
    pub upstream_key: String,
    /// What was observed about the request.
    pub flags: Vec<FlagKind>,
    /// What is left under the cap of the asking key, in minor units.
    pub remaining: AmountMinor,
}

/// A refusal and what was observed with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// What was observed about the request.
    pub flags: Vec<FlagKind>,
}

/// A reservation whose outcome is on its way.
#[derive(Debug)]
pub struct Waiting {
    /// Which one.
    pub reservation: ReservationId,
    /// What was observed about the request.
    pub flags: Vec<FlagKind>,
    pub(super) woken: Option<oneshot::Receiver<()>>,
}

impl Waiting {
    /// Returns when this process has recorded an outcome for the reservation. Another process's outcome
    /// does not wake it, so callers also poll.
    pub async fn woken(&mut self) {
        match &mut self.woken {
            Some(woken) => {
                // The sender is dropped at the outcome, which ends the wait with an error: that is the news.
                let _news = woken.await;
            }
            None => std::future::pending().await,
        }
    }
}

/// What became of a settle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Where the reservation stands now.
    pub state: State,
    /// What was observed about the outcome.
    pub flags: Vec<FlagKind>,
    /// What is left under the cap, in minor units.
    pub remaining: AmountMinor,
}

/// An operator's command, who gave it, and the key under which it may be repeated.
#[derive(Clone, Debug)]
pub struct ControlRequest {
    /// What to do.
    pub control: Control,
    /// The name of the admin token.
    pub actor: String,
    /// From the `Idempotency-Key` header.
    pub idempotency: Option<ControlKey>,
}

/// An admin request's idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlKey {
    /// Names the key.
    pub digest: Digest16,
    /// What the request asked with.
    pub fingerprint: Digest16,
}

/// What an operator can do.
#[derive(Clone, Debug)]
pub enum Control {
    /// Issue a vault key; its `created_at` is set by the store's clock.
    CreateKey {
        /// All of it but the secret.
        key: Box<VaultKey>,
        /// SHA-256 of the secret.
        secret_hash: [u8; 32],
    },
    /// Raise or lower expected totals, or resume a stopped key.
    UpdateKey {
        /// Which key.
        id: VaultKeyId,
        /// New expected totals; a currency without a cap gets one.
        expected_totals: Vec<(Currency, AmountMinor)>,
        /// A new factor, applied to every cap of the key.
        headroom: Option<Headroom>,
        /// Lift a stop.
        resume: bool,
        /// Why.
        reason: String,
    },
    /// End a key for good.
    Revoke {
        /// Which key.
        id: VaultKeyId,
        /// Why.
        reason: String,
    },
    /// Give a key a new secret.
    Rotate {
        /// Which key.
        id: VaultKeyId,
        /// SHA-256 of the new secret.
        secret_hash: [u8; 32],
        /// The end of the new secret.
        secret_hint: String,
        /// How long the old secret still works, in milliseconds.
        grace_ms: i64,
    },
    /// Say what became of a reservation that is held or open.
    Resolve {
        /// Which reservation, as it was read: its vault key and the holders of its claims are loaded
        /// with it, and what was found out about it speaks of the sends that it had then.
        reservation: Box<Reservation>,
        /// What became of it.
        resolution: Resolution,
        /// Why, and on what evidence.
        reason: String,
    },
    /// Mark a flag as seen.
    Acknowledge {
        /// Which flag.
        flag: FlagId,
    },
    /// Make a reservation for a charge of Stripe's that none knows: it was lost.
    Rebuild(Box<Rebuild>),
    /// Take money again after lost commits.
    EndLost(Box<EndLost>),
}

/// A charge that no reservation knows, and the reservation that it gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuild {
    /// As the charge says it was; its id, and what it claims, are the ledger's to give.
    pub reservation: Reservation,
    /// The name of its idempotency key.
    pub request: Digest16,
    /// Where the gap began, for the audit log.
    pub since: UnixMs,
}

/// The gap was read and what it held is in the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndLost {
    /// What was lost, as it was known when the gap was read: later losses are not ended with it.
    pub lost: LostCommits,
    /// When the reading began: of what Stripe made later it says nothing.
    pub read_at: UnixMs,
    /// Why, where charges were left without a reservation.
    pub reason: String,
    /// What was found, in words.
    pub detail: String,
}

/// What an operator found out about a reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// The money moved.
    Settled {
        /// How much, in minor units.
        amount: AmountMinor,
        /// The Stripe object that shows it.
        object_id: String,
    },
    /// It did not, and will not.
    Released,
}

/// The thing a command worked on, as it stands after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A vault key.
    VaultKey(Box<VaultKey>),
    /// A reservation.
    Reservation(Box<Reservation>),
    /// A flag.
    Flag(Box<Flag>),
    /// The ledger as a whole.
    Ledger,
}

/// The answer to an operator's command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlDone {
    /// What it worked on.
    pub subject: Subject,
    /// The same command was carried out before under the same key; nothing was done now.
    pub replayed: bool,
}

/// Why an operator's command was not carried out; nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ControlError {
    /// No such vault key, reservation or flag.
    #[error("there is no {0} of that id")]
    NotFound(&'static str),
    /// The idempotency key was used for another command.
    #[error("this idempotency key was used with other parameters; use a new one")]
    KeyReused,
    /// A revoked key takes no changes.
    #[error("the vault key is revoked; issue a new one")]
    Revoked,
    /// `expected_total × headroom` is not an amount.
    #[error("expected_total times headroom is larger than an amount can be; lower one of them")]
    CapOverflow,
    /// Only held, open and written-off reservations can be resolved.
    #[error("a reservation that is {} cannot be resolved", .0.as_str())]
    NotResolvable(State),
    /// A send after the evidence was gathered: that nothing moved says nothing of it.
    #[error("the reservation was sent again meanwhile (it has {0} sends now): look at it again")]
    SentAgain(u32),
    /// The evidence names another object than the reservation's own.
    #[error("the reservation's object is {0}: evidence of another one does not resolve it")]
    OtherObject(String),
    /// The evidence names the object of another reservation.
    #[error(
        "that object is counted by the reservation {0}: name the one that this reservation made, or resolve it \
         as released if it made none"
    )]
    ObjectTaken(ReservationId),
    /// A reservation has that charge.
    #[error("the charge is known already: {0}")]
    Known(ReservationId),
    /// Commits were lost since, or somebody ended it.
    #[error("what the ledger lost is not what was read for: read the gap again")]
    OtherLoss,
    /// Requests of before may still become charges.
    #[error("requests that left before may still become charges until {0}")]
    TooEarly(UnixMs),
}

/// What the writer answers, one for each [`Work`].
#[derive(Debug)]
pub enum Answer {
    /// To a reserve.
    Verdict(Verdict),
    /// To a settle.
    Settled(Settled),
    /// To a sweep: how many rows were held.
    Swept(usize),
    /// To a stretch of the feed: whether it was the next one.
    Observed(bool),
    /// To a row to be given up: whether it is.
    WrittenOff(bool),
    /// To an operator's command.
    Control(Result<ControlDone, ControlError>),
}
