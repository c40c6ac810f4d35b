//! What the event feed showed meets the book, and rows that are given up.

use super::{Book, BookError};
use crate::domain::reservation::Reservation;
use crate::domain::settlement::write_off;
use crate::ledger::feed::{FeedCursor, FeedReport};

impl Book {
    /// Moves the feed's cursor and records what was observed; false where it does not begin where the
    /// last stretch ended: another process was first, and nothing is recorded.
    pub(super) fn observe(&mut self, report: &FeedReport) -> bool {
        let stored = self.feed_cursors.get(&report.account);
        if stored.map(|cursor| cursor.read_until) != report.from {
            return false;
        }
        let cursor = FeedCursor {
            account: report.account.clone(),
            read_until: report.to,
            read_at: self.now,
        };
        self.feed_cursors.insert(report.account.clone(), cursor);
        self.changes.feed.push(report.clone());
        true
    }

    /// Gives a row up whose outcome will not be known any more; false where it is not as it was read, or
    /// where that may still come.
    pub(super) fn write_off(&mut self, read: &Reservation) -> Result<bool, BookError> {
        if self.lost.is_some() {
            return Ok(false);
        }
        let unchanged = self.reservations.get(&read.id).filter(|row| *row == read);
        let Some(written_off) = unchanged.and_then(|row| write_off(row, self.now)) else {
            return Ok(false);
        };
        self.put(written_off)?;
        Ok(true)
    }
}
