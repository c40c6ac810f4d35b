//! What counts as evidence of what became of a reservation whose answer was lost (design §3.4): where to
//! look for it, and which object it is. Pure.
//!
//! **Invariant:** absence is never evidence. A key in the feed is a pointer; the object it names decides,
//! and only where it is what the reservation asked for.

use super::money::{AmountMinor, Currency};
use super::reservation::{Reservation, State};
use super::time::UnixMs;

#[cfg(test)]
pub(crate) mod tests;

/// How far Stripe's clock may be behind the store's.
const BEFORE_MS: i64 = 60_000;

/// How long after the last send's deadline Stripe may still make its object: a slow request, and its
/// clock ahead of the store's.
const AFTER_MS: i64 = 5 * 60_000;

/// How long after its last send an object may appear that Stripe made when it cleaned up after itself
/// (contract §2.4). It forgets keys from then on.
const ROLLED_FORWARD_MS: i64 = 24 * 3_600_000;

/// A stretch of time, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Window {
    /// Its first moment.
    pub from: UnixMs,
    /// Its last moment.
    pub to: UnixMs,
}

impl Window {
    /// True where `moment` lies in it.
    pub fn holds(self, moment: UnixMs) -> bool {
        self.from <= moment && moment <= self.to
    }
}

/// Where the events of the sends of `row` are, if there are any.
pub fn window_of(row: &Reservation) -> Window {
    let first = row.send.first_unproven_at.unwrap_or(row.created_at);
    Window {
        from: first.plus_ms(-BEFORE_MS),
        to: row.send.deadline.plus_ms(AFTER_MS),
    }
}

/// The windows as few that do not touch, newest first.
pub fn merged(windows: impl IntoIterator<Item = Window>) -> Vec<Window> {
    let mut sorted: Vec<Window> = windows.into_iter().collect();
    sorted.sort();
    let mut merged: Vec<Window> = Vec::new();
    for window in sorted {
        match merged.last_mut() {
            Some(last) if window.from <= last.to => last.to = last.to.max(window.to),
            _ => merged.push(window),
        }
    }
    merged.reverse();
    merged
}

/// What an object says of itself that tells whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate<'a> {
    /// What was authorised, in minor units.
    pub amount: AmountMinor,
    /// Its currency.
    pub currency: Currency,
    /// Whom it bills.
    pub customer: Option<&'a str>,
    /// When it was made, on Stripe's clock.
    pub created: Option<UnixMs>,
}

/// Why an object under the key of a reservation is not the reservation's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Of another amount.
    #[error("its amount is another")]
    Amount,
    /// In another currency.
    #[error("its currency is another")]
    Currency,
    /// Of another customer.
    #[error("its customer is another")]
    Customer,
    /// Made when no send of the reservation was under way.
    #[error("it was made at another time")]
    Time,
}

/// Checks that an object made under the key of a reservation is what the reservation asked for. A key
/// alone does not tell: Stripe forgets it after a day, and clients choose their own.
///
/// # Errors
/// What differs.
pub fn check_made_by(row: &Reservation, made: &Candidate<'_>) -> Result<(), Mismatch> {
    if made.currency != row.currency {
        return Err(Mismatch::Currency);
    }
    if made.amount != row.amount {
        return Err(Mismatch::Amount);
    }
    if made.customer != row.customer.as_deref() {
        return Err(Mismatch::Customer);
    }
    let window = window_of(row);
    let window = Window {
        to: window.to.plus_ms(ROLLED_FORWARD_MS),
        ..window
    };
    match made.created {
        Some(created) if window.holds(created) => Ok(()),
        Some(_) | None => Err(Mismatch::Time),
    }
}

/// True where the row's object is unknown and may be found by its key: a create whose answer was lost.
pub fn is_sought(row: &Reservation) -> bool {
    row.state == State::Held && row.object_id.is_none() && row.operation.creates()
}
