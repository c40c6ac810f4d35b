//! What a database does for the writer: load the working set, write the difference, commit.

mod control;
pub(crate) mod encode;
mod feed;
pub(crate) mod postgres;
pub(crate) mod rows;
pub(crate) mod sqlite;
pub(crate) mod statement;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use thiserror::Error;

use super::book::{Book, Loaded, Wanted};
use crate::domain::id::ReservationId;

/// Rows past their deadline that one batch holds; the next sweep takes the rest.
const OVERDUE_MAX: i64 = 500;

/// How long a reader waits for a connection.
const READ_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long loading, writing or committing a batch may take: longer than the databases' own limits, so
/// that it ends only what would hang for ever.
const STEP_TIMEOUT: Duration = Duration::from_secs(12);

/// How long a rollback may take before the connection is given up, which rolls back as well.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(2);

/// One connection to one database, owned by the writer. At most one transaction is open on it.
pub(crate) trait Store: Send + 'static {
    /// Opens a transaction, locks the wanted vault keys in order, then loads the rest. Reconnects where
    /// the connection is gone. After an error no transaction is open.
    fn begin(&mut self, wanted: &Wanted)
    -> impl Future<Output = Result<Loaded, StoreError>> + Send;

    /// Writes what changed and commits; with no change, only ends the transaction. After an error no
    /// transaction is open.
    fn commit(&mut self, book: &Book) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Ends the transaction without writing.
    fn rollback(&mut self) -> impl Future<Output = ()> + Send;

    /// Writes a little on its own, to learn whether writing works again.
    fn probe_write(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// True where all of these reservations are stored: reads back an ambiguous commit on a connection
    /// of its own.
    fn all_stored(
        &mut self,
        ids: &BTreeSet<ReservationId>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Ends the connection and gives back what the store holds.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Why a batch was not stored.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// Another process wrote first (a unique index, a version, 40001, 40P01): load and decide again.
    #[error("another process changed the same rows first")]
    Conflict,
    /// The database did not do it, and certainly so.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The database refuses a value of the batch; trying again would not help.
    #[error("the database refuses a value")]
    Rejected(#[source] sqlx::Error),
    /// The commit was sent and no answer came: it may be stored.
    #[error("the database did not confirm a commit")]
    Ambiguous(#[source] sqlx::Error),
    /// A row cannot be read as what it is.
    #[error("the ledger holds a row that cannot be read: {0}")]
    Unreadable(String),
}

/// A change names what the book does not have: only a mistake in the book can do that.
fn missing(what: impl Display) -> StoreError {
    StoreError::Unreadable(format!("{what} was changed and is not in the book"))
}

/// After its time the step is dropped in the middle of whatever it did, so the caller drops the
/// connection.
async fn within_step<T>(
    step: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let done = tokio::time::timeout(STEP_TIMEOUT, step).await;
    done.unwrap_or_else(|_elapsed| Err(StoreError::Unavailable(timed_out())))
}

/// What a step that did not end in time is reported as.
pub(crate) fn timed_out() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())
}
