//! The ledger in one SQLite file, which this process alone writes.

mod checkpoint;
mod json;
mod load;
mod write;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::rows::Cells as _;
use super::{
    READ_WAIT_MAX, ROLLBACK_TIMEOUT, STEP_TIMEOUT, Store, StoreError, control, feed, timed_out,
    within_step,
};
use crate::clock::Clock;
use crate::domain::id::ReservationId;
use crate::ledger::book::{Book, Loaded, Wanted};
use crate::ledger::file::LedgerFile;
use crate::ledger::marker::{Confirmed, Marker};

/// How long a statement waits for a checkpoint that holds the write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Readers that may work at once; each has a thread of its own.
const READERS_MAX: u32 = 4;

/// Rows that may wait between the database's thread and the writer: more than most batches load.
const ROWS_BUFFERED: usize = 2048;

const PROBE_WRITE: &str = "/* sqlite probe_write */
    INSERT INTO meta (name, value) VALUES ('write_probe', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

const HOLD_IN_FLIGHT: &str = "/* sqlite SqliteStore::open */
    UPDATE reservations SET state = 'held', version = version + 1 WHERE state = 'in_flight'";

/// The writer's connection. After any error it is dropped, which rolls back: a connection whose statement
/// failed may crash its thread at the next use, and what is asked of it then hangs.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    options: SqliteConnectOptions,
    connection: Option<SqliteConnection>,
    clock: Clock,
    next_id: i64,
    checkpoints: JoinHandle<()>,
    /// Held for as long as this process writes.
    file: LedgerFile,
    marker: Marker,
}

/// How every connection to `path` is made. Commits are durable when they are confirmed; checkpoints are
/// kept out of their way.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("wal_autocheckpoint", "0")
        .row_buffer_size(ROWS_BUFFERED)
        .disable_statement_logging()
}

/// Connections that only read.
pub(crate) fn readers(options: &SqliteConnectOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(READERS_MAX)
        .acquire_timeout(READ_WAIT_MAX)
        .test_before_acquire(false)
        .connect_lazy_with(options.clone().pragma("query_only", "on"))
}

impl SqliteStore {
    /// Takes the file over. Its lock proves that whoever sent what is in flight is gone, so all of it
    /// is held.
    pub(crate) async fn open(
        file: LedgerFile,
        options: SqliteConnectOptions,
        clock: Clock,
        marker: Marker,
    ) -> Result<Self, sqlx::Error> {
        let mut connection = options.connect().await?;
        let held = sqlx::query(HOLD_IN_FLIGHT).execute(&mut connection).await?;
        if held.rows_affected() > 0 {
            let held = held.rows_affected();
            tracing::warn!(
                held,
                "Reservations were in flight when the last process ended: held"
            );
        }
        let next_id = sqlx::query_scalar::<_, i64>(
            "/* sqlite SqliteStore::open */ SELECT COALESCE(MAX(id), 0) + 1 FROM reservations",
        );
        let next_id = next_id.fetch_one(&mut connection).await?;
        let checkpoints = tokio::spawn(checkpoint::run(options.clone()));
        Ok(Self {
            options,
            connection: Some(connection),
            clock,
            next_id,
            checkpoints,
            file,
            marker,
        })
    }

    async fn connected(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self
                .options
                .connect()
                .await
                .map_err(StoreError::Unavailable)?,
        };
        Ok(self.connection.insert(connection))
    }

    async fn write(&mut self, book: &Book) -> Result<(), StoreError> {
        let connection = self.connected().await?;
        control::keys(connection, book).await?;
        write::charges(connection, book).await?;
        feed::observed(connection, book).await?;
        control::records(connection, book).await
    }

    fn fresh_ids(&mut self, count: usize) -> Vec<ReservationId> {
        let first = self.next_id;
        self.next_id = first.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        // The book takes them from the end.
        (first..self.next_id).rev().map(ReservationId).collect()
    }
}

impl Store for SqliteStore {
    async fn begin(&mut self, wanted: &Wanted) -> Result<Loaded, StoreError> {
        let now = self.clock.now();
        let in_place = self.file.check_in_place();
        in_place.map_err(|error| StoreError::Unavailable(error.into()))?;
        let loaded = within_step(async {
            let connection = self.connected().await?;
            load::load(connection, wanted, now).await
        })
        .await;
        match loaded {
            Ok(mut loaded) => {
                loaded.fresh_ids = self.fresh_ids(wanted.fresh_ids);
                Ok(loaded)
            }
            Err(error) => {
                self.connection = None;
                Err(error)
            }
        }
    }

    async fn commit(&mut self, book: &Book) -> Result<(), StoreError> {
        if let Err(error) = within_step(self.write(book)).await {
            self.connection = None;
            return Err(error);
        }
        let connection = self.connected().await?;
        let commit = sqlx::query("/* sqlite commit */ COMMIT").execute(connection);
        let error = match timeout(STEP_TIMEOUT, commit).await {
            Ok(Ok(_)) => {
                self.marker.confirm(book, &self.clock);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_elapsed) => timed_out(),
        };
        self.connection = None;
        if refused(&error) {
            Err(StoreError::Unavailable(error))
        } else {
            // Its pages may be in the log: the next connection finds out.
            Err(StoreError::Ambiguous(error))
        }
    }

    async fn rollback(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let rollback = sqlx::query("/* sqlite rollback */ ROLLBACK").execute(connection);
        if !matches!(timeout(ROLLBACK_TIMEOUT, rollback).await, Ok(Ok(_))) {
            self.connection = None;
        }
    }

    async fn probe_write(&mut self) -> Result<(), StoreError> {
        let in_place = self.file.check_in_place();
        in_place.map_err(|error| StoreError::Unavailable(error.into()))?;
        let now = self.clock.now();
        let probed = within_step(async {
            let connection = self.connected().await?;
            let probe = sqlx::query(PROBE_WRITE).bind(now.0.to_string());
            probe
                .execute(connection)
                .await
                .map_err(StoreError::Unavailable)
        })
        .await;
        if probed.is_err() {
            self.connection = None;
        }
        probed.map(|_| ())
    }

    async fn all_stored(&mut self, ids: &BTreeSet<ReservationId>) -> Result<bool, StoreError> {
        let ids_text = json::numbers(ids.iter().map(|id| id.0));
        let found = within_step(async {
            sqlx::query(
                "/* sqlite all_stored */
                 SELECT count(*) FROM reservations WHERE id IN (SELECT value FROM json_each($1))",
            )
            .bind(ids_text)
            .fetch_one(self.connected().await?)
            .await
            .map_err(StoreError::Unavailable)
        })
        .await;
        match found {
            Ok(row) => Ok(usize::try_from(row.int(0)?) == Ok(ids.len())),
            Err(error) => {
                self.connection = None;
                Err(error)
            }
        }
    }

    async fn close(mut self) {
        self.checkpoints.abort();
        self.marker.write(self.clock.boot());
        if let Some(connection) = self.connection.take() {
            // Closing is a courtesy: what was confirmed is in the file already.
            let _closed = timeout(ROLLBACK_TIMEOUT, connection.close()).await;
        }
    }
}

/// Whether a row is there as it was confirmed, or later.
pub(crate) async fn has_confirmed(
    connection: &mut SqliteConnection,
    confirmed: Confirmed,
) -> Result<bool, sqlx::Error> {
    let found = sqlx::query_scalar::<_, i64>(
        "/* sqlite has_confirmed */ SELECT count(*) FROM reservations
         WHERE id = $1 AND version >= $2 AND created_at_ms = $3",
    );
    let found = found
        .bind(confirmed.id.0)
        .bind(confirmed.version)
        .bind(confirmed.created_at_ms);
    Ok(found.fetch_one(connection).await? > 0)
}

/// The commit was certainly not made: the database is busy (5), read-only (8) or full (13).
fn refused(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 8 | 13))
}

/// Before the commit everything is certainly not stored.
pub(crate) fn write_error(error: sqlx::Error) -> StoreError {
    let unique = error
        .as_database_error()
        .is_some_and(DatabaseError::is_unique_violation);
    match primary_code(&error) {
        _ if unique => StoreError::Conflict,
        // Too big, against a constraint, or of another type than the column's.
        Some(18..=20) => StoreError::Rejected(error),
        _ => StoreError::Unavailable(error),
    }
}

/// SQLite's result code without its details.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error().and_then(DatabaseError::code)?;
    code.parse().ok().map(|code: u32| code & 255)
}
