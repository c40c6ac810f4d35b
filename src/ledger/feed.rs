//! How far an account's event feed was read, and what was observed in it.

use crate::domain::id::ReservationId;
use crate::domain::money::AmountMinor;
use crate::domain::time::UnixMs;

/// How far an account's event feed was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedCursor {
    /// Whose feed; empty for the platform's own.
    pub account: String,
    /// Everything before this was read, on Stripe's clock.
    pub read_until: UnixMs,
    /// When that was stored, on the store's clock.
    pub read_at: UnixMs,
}

/// A stretch of the feed that was read, and what was observed in it. Stored whole, or not at all where
/// another process was first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedReport {
    /// Whose feed; empty for the platform's own.
    pub account: String,
    /// Where the stretch begins; `None` where the feed was never read before.
    pub from: Option<UnixMs>,
    /// Where it ends.
    pub to: UnixMs,
    /// What went back.
    pub refunds: Vec<Refund>,
    /// Charges that no reservation knows.
    pub bypasses: Vec<Bypass>,
}

/// Money that went back of a reservation's charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refund {
    /// Which reservation.
    pub reservation: ReservationId,
    /// How much in all, in minor units.
    pub amount_refunded: AmountMinor,
}

/// A charge that no reservation knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bypass {
    /// The charge.
    pub object_id: String,
    /// Whom it bills.
    pub customer: Option<String>,
}
