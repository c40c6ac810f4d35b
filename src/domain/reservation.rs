//! A reservation: one money-moving intent, its amount, its state, its Stripe object.

use super::digest::Digest16;
use super::id::{ReservationId, VaultKeyId};
use super::idempotency::Fingerprint;
#[cfg(test)]
use super::mistake::{Mistake, is_planted};
use super::money::{AmountMinor, Currency};
use super::operation::MoneyOperation;
use super::time::UnixMs;

/// Where a reservation stands (design §3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// Sent, or about to be.
    InFlight,
    /// Stripe has the object; its money may still move.
    Open,
    /// The outcome is unknown.
    Held,
    /// The money moved.
    Settled,
    /// It did not.
    Released,
    /// Given up: frees headroom, keeps the slot.
    WrittenOff,
}

impl State {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::InFlight,
        Self::Open,
        Self::Held,
        Self::Settled,
        Self::Released,
        Self::WrittenOff,
    ];

    /// The name in the ledger and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Open => "open",
            Self::Held => "held",
            Self::Settled => "settled",
            Self::Released => "released",
            Self::WrittenOff => "written_off",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// True where the amount still counts as reserved.
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::InFlight | Self::Open | Self::Held)
    }
}

/// The place a create bills: customer and period, told apart by account, namespace and reference.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// The Stripe account whose money moves; empty for the platform's own.
    pub account: String,
    /// Which billing job.
    pub namespace: String,
    /// The operator's name for the run.
    pub billing_period: String,
    /// The customer.
    pub customer: String,
    /// `Spendcap-Reference`; empty by default.
    pub reference: String,
}

impl Slot {
    /// Names the slot: at most one unreleased reservation holds it.
    pub fn digest(&self) -> Digest16 {
        Digest16::of("slot/1", &self.parts())
    }

    /// Names the intent within the slot: same operation, amount and currency. A second amount in
    /// one slot is a lawful charge of its own, and its repeats must find it (ADR 1).
    pub fn intent_digest(
        &self,
        operation: MoneyOperation,
        amount: AmountMinor,
        currency: Currency,
    ) -> Digest16 {
        let amount = amount.to_string();
        let mut parts = self.parts().to_vec();
        parts.extend([operation.as_str(), amount.as_str(), currency.as_str()]);
        Digest16::of("intent/1", &parts)
    }

    fn parts(&self) -> [&str; 5] {
        [
            &self.account,
            &self.namespace,
            &self.billing_period,
            &self.customer,
            &self.reference,
        ]
    }
}

/// The send a reservation stands for now: the create's, later perhaps a capture's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendState {
    /// What is sent.
    pub operation: MoneyOperation,
    /// The `Idempotency-Key` Stripe sees; every re-send carries the same.
    pub upstream_key: String,
    /// What it was sent with.
    pub fingerprint: Fingerprint,
    /// How often the row was sent, over all its operations; part of every compare-and-set.
    pub sends: u32,
    /// Sends since the last proof of what all of them did; an open object is no proof of what the
    /// operations on it do.
    pub unproven: u32,
    /// When the first of those was reserved; never moved by a re-send.
    pub first_unproven_at: Option<UnixMs>,
    /// Past this nothing may be sent.
    pub forward_by: UnixMs,
    /// Past this an in-flight row is held.
    pub deadline: UnixMs,
}

/// One money-moving intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Counts its writes; the compare-and-set of the stores.
    pub version: i64,
    /// The vault key whose cap it uses.
    pub vault_key: VaultKeyId,
    /// The account whose money moves; empty for the platform's own.
    pub account: String,
    /// The vault key's namespace.
    pub namespace: String,
    /// The vault key's billing period.
    pub billing_period: String,
    /// The customer, where one is named.
    pub customer: Option<String>,
    /// `Spendcap-Reference`.
    pub reference: String,
    /// The slot it holds while it is not released.
    pub slot_claim: Option<Digest16>,
    /// The intent it holds while it is not released.
    pub intent_claim: Option<Digest16>,
    /// The operation that made the row.
    pub operation: MoneyOperation,
    /// Its currency.
    pub currency: Currency,
    /// What was asked for.
    pub amount: AmountMinor,
    /// What counts against the cap until the outcome is known.
    pub amount_reserved: AmountMinor,
    /// What Stripe took.
    pub amount_settled: AmountMinor,
    /// Where it stands.
    pub state: State,
    /// The Stripe object, once known.
    pub object_id: Option<String>,
    /// The send it stands for.
    pub send: SendState,
    /// Stored declines behind this row under a derived key: part of the next derived key.
    pub attempt: u32,
    /// True where Stripe stored the outcome under `send.upstream_key`, so that the key is bound.
    pub outcome_stored: bool,
    /// A send that is not proven was answered with a server error, which Stripe may still roll forward.
    pub server_error: bool,
    /// What went back of what was settled, in minor units, as the feed last told. It raises no cap.
    pub amount_refunded: AmountMinor,
    /// When it was reserved.
    pub created_at: UnixMs,
    /// When it last became settled, released or written off.
    pub resolved_at: Option<UnixMs>,
}

impl Reservation {
    /// True where its claims are its own: while it is not released.
    pub fn holds_claims(&self) -> bool {
        #[cfg(test)]
        if self.state == State::WrittenOff && is_planted(Mistake::SlotFreedByAWriteOff) {
            return false;
        }
        self.state != State::Released
    }

    /// What a caller is told exists: the object, or the reservation where there is none yet.
    pub fn existing_name(&self) -> String {
        self.object_id
            .clone()
            .unwrap_or_else(|| self.id.to_string())
    }
}

/// One idempotency key as a client sent it (or as derived), pointing at a reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Names the key within account, mode and period.
    pub digest: Digest16,
    /// The key's text.
    pub key: String,
    /// What it points at.
    pub reservation: ReservationId,
    /// What the request asked to do.
    pub operation: MoneyOperation,
    /// What it asked with.
    pub fingerprint: Fingerprint,
    /// When it was first seen.
    pub created_at: UnixMs,
}

/// The intent claim of an operation on an object that no reservation owned: at most one at a time.
pub fn object_claim(account: &str, object_id: &str) -> Digest16 {
    Digest16::of("object/1", &[account, object_id])
}
