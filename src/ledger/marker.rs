//! A note beside a SQLite ledger of what was confirmed last, so that an older copy in its place shows.
//!
//! It is written about once a second and not flushed: it may be behind the ledger, never ahead of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::book::Book;
use crate::clock::{BootMs, Clock};
use crate::domain::id::ReservationId;

/// How old the note may be; what was confirmed since may go unnoticed.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// What was confirmed last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Confirmed {
    pub(super) id: ReservationId,
    pub(super) version: i64,
    /// Tells the row from another ledger's of the same number.
    pub(super) created_at_ms: i64,
}

/// The note and when it was written.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    last: Option<Confirmed>,
    written: Option<(Confirmed, BootMs)>,
}

impl Marker {
    /// Beside the ledger at `path`.
    pub(super) fn beside(path: &Path) -> Self {
        // Every name of the ledger leads to one note.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut name = path.into_os_string();
        name.push(".confirmed");
        Self {
            path: PathBuf::from(name),
            last: None,
            written: None,
        }
    }

    /// What an earlier process noted; `None` where there is no note that can be read.
    pub(super) fn read(&self) -> Option<Confirmed> {
        let text = fs::read_to_string(&self.path).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<i64>);
        let mut next = || numbers.next()?.ok();
        Some(Confirmed {
            id: ReservationId(next()?),
            version: next()?,
            created_at_ms: next()?,
        })
    }

    /// What an earlier process noted is not true of this ledger, and was noted elsewhere.
    pub(super) fn forget(&self) {
        // Where it stays, the next start notices the same once more.
        let _stays = fs::remove_file(&self.path);
    }

    /// The batch of this book was confirmed.
    pub(super) fn confirm(&mut self, book: &Book, clock: &Clock) {
        let Some(row) = book.last_written() else {
            return;
        };
        self.last = Some(Confirmed {
            id: row.id,
            version: row.version,
            created_at_ms: row.created_at.0,
        });
        let now = clock.boot();
        let due = self
            .written
            .is_none_or(|(_, at)| now.since(at) >= WRITE_EVERY);
        if due {
            self.write(now);
        }
    }

    /// Writes what is not written yet.
    pub(super) fn write(&mut self, now: BootMs) {
        let Some(last) = self.last.filter(|last| {
            let written = self.written.map(|(written, _)| written);
            written != Some(*last)
        }) else {
            return;
        };
        let text = format!("{} {} {}\n", last.id.0, last.version, last.created_at_ms);
        let mut fresh = self.path.clone().into_os_string();
        fresh.push("-new");
        let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &self.path));
        if let Err(error) = written {
            tracing::debug!(%error, "The note of what was confirmed last was not written");
        }
        self.written = Some((last, now));
    }
}
