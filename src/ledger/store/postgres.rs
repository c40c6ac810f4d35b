//! The ledger in PostgreSQL, which any number of processes share.
//!
//! READ COMMITTED with the vault keys locked first: whatever a statement reads after that is as it will
//! be until the commit, or is guarded by a version, a unique index or a compare-and-set.

mod columns;
mod load;
mod server;
mod write;

use std::collections::BTreeSet;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::timeout;

use super::rows::Cells as _;
use super::{
    READ_WAIT_MAX, ROLLBACK_TIMEOUT, STEP_TIMEOUT, Store, StoreError, control, feed, timed_out,
    within_step,
};
use crate::clock::Clock;
use crate::domain::id::ReservationId;
use crate::ledger::book::{Book, Loaded, Wanted};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Readers that may work at once.
const READERS_MAX: u32 = 4;

/// Reservation ids come in blocks of this many.
const ID_BLOCK: i64 = 1024;

const PROBE_WRITE: &str = "/* postgres probe_write */
    INSERT INTO meta (name, value) VALUES ('write_probe', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The writer's connection.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
    clock: Clock,
    /// Ids of blocks taken and not handed out yet, the next at the end.
    ids: Vec<ReservationId>,
    known: server::Known,
}

/// How every connection is made. The limits bound what a stuck peer or a dead process can hold up; a
/// confirmed commit is on disk, whatever the database is tuned to.
pub(crate) fn options(url: &str) -> Result<PgConnectOptions, sqlx::Error> {
    let options = PgConnectOptions::from_str(url)?
        .application_name("spendcap")
        .options([
            ("lock_timeout", "5s"),
            ("statement_timeout", "10s"),
            // Shorter than what waits for it, so that a replica that stands still costs nobody a refusal.
            ("idle_in_transaction_session_timeout", "4s"),
            ("synchronous_commit", "on"),
        ])
        .disable_statement_logging();
    Ok(options)
}

/// Connects, within bounded time.
pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let connected = timeout(CONNECT_TIMEOUT, options.connect()).await;
    connected.unwrap_or_else(|_elapsed| Err(timed_out()))
}

/// Connections that only read.
pub(crate) fn readers(options: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(READERS_MAX)
        .acquire_timeout(READ_WAIT_MAX)
        .connect_lazy_with(options.clone())
}

impl PostgresStore {
    pub(crate) fn new(options: PgConnectOptions, clock: Clock) -> Self {
        let options = options.options([
            // Tables that are small when a plan is made may be large when it is used.
            ("enable_seqscan", "off"),
            // A row's lock is taken in two steps, and `lock_timeout` bounds each of them.
            ("statement_timeout", "5s"),
        ]);
        Self {
            options,
            connection: None,
            clock,
            ids: Vec::new(),
            known: server::Known::default(),
        }
    }

    async fn connected(&mut self) -> Result<&mut PgConnection, StoreError> {
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            let connected = connect(&self.options).await;
            let mut connection = connected.map_err(StoreError::Unavailable)?;
            let verify = self.known.verify(&mut connection, self.clock.offset_ms());
            within_step(verify).await?;
            connection
        };
        Ok(self.connection.insert(connection))
    }

    async fn load(&mut self, wanted: &Wanted) -> Result<Loaded, StoreError> {
        let offset_ms = self.clock.offset_ms();
        let connection = self.connected().await?;
        let mut loaded = within_step(load::load(connection, wanted, offset_ms)).await?;
        loaded.fresh_ids = self.fresh_ids(wanted.fresh_ids).await?;
        Ok(loaded)
    }

    /// Takes ids from the end, so that they rise; the book takes them from the end as well.
    async fn fresh_ids(&mut self, count: usize) -> Result<Vec<ReservationId>, StoreError> {
        while self.ids.len() < count {
            let connection = self.connected().await?;
            let first = within_step(load::next_block(connection)).await?;
            let block = (first..first.saturating_add(ID_BLOCK)).rev();
            let newer: Vec<_> = block.map(ReservationId).collect();
            self.ids.splice(0..0, newer);
        }
        Ok(self.ids.split_off(self.ids.len() - count))
    }

    async fn write(&mut self, book: &Book) -> Result<(), StoreError> {
        let connection = self.connected().await?;
        within_step(async {
            control::keys(connection, book).await?;
            write::charges(connection, book).await?;
            feed::observed(connection, book).await?;
            control::records(connection, book).await
        })
        .await
    }

    /// Leaves no transaction open.
    async fn abandon(&mut self, error: &StoreError) {
        let broken = match error {
            StoreError::Unavailable(error) => error.as_database_error().is_none(),
            _ => false,
        };
        if broken {
            self.connection = None;
        } else {
            self.rollback().await;
        }
    }
}

impl Store for PostgresStore {
    async fn begin(&mut self, wanted: &Wanted) -> Result<Loaded, StoreError> {
        let reused = self.connection.is_some();
        let mut loaded = self.load(wanted).await;
        if let Err(error) = &loaded {
            self.abandon(error).await;
            if reused && self.connection.is_none() {
                // The server closed the connection while nothing happened on it; nothing was written.
                loaded = self.load(wanted).await;
                if let Err(error) = &loaded {
                    self.abandon(error).await;
                }
            }
        }
        loaded
    }

    async fn commit(&mut self, book: &Book) -> Result<(), StoreError> {
        if let Err(error) = self.write(book).await {
            self.abandon(&error).await;
            return Err(error);
        }
        let connection = self.connected().await?;
        let commit = sqlx::query("/* postgres commit */ COMMIT").execute(connection);
        let committed = timeout(STEP_TIMEOUT, commit).await;
        let error = match committed {
            Ok(Ok(_)) => {
                self.known.confirm(book);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_elapsed) => timed_out(),
        };
        self.connection = None;
        match write_error(error) {
            StoreError::Unavailable(error) => Err(StoreError::Ambiguous(error)),
            refused => Err(refused),
        }
    }

    async fn rollback(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let rollback = sqlx::query("/* postgres rollback */ ROLLBACK").execute(connection);
        if !matches!(timeout(ROLLBACK_TIMEOUT, rollback).await, Ok(Ok(_))) {
            self.connection = None;
        }
    }

    async fn probe_write(&mut self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let probed = match self.connected().await {
            Ok(connection) => {
                within_step(async {
                    let probe = sqlx::query(PROBE_WRITE).bind(now.0.to_string());
                    probe
                        .execute(connection)
                        .await
                        .map_err(StoreError::Unavailable)
                })
                .await
            }
            Err(error) => Err(error),
        };
        if probed.is_err() {
            self.connection = None;
        }
        probed.map(|_| ())
    }

    async fn all_stored(&mut self, ids: &BTreeSet<ReservationId>) -> Result<bool, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let connection = self.connected().await?;
        let found = within_step(async {
            sqlx::query(
                "/* postgres all_stored */ SELECT count(*) FROM reservations WHERE id = ANY($1)",
            )
            .bind(&ids)
            .fetch_one(connection)
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
        if let Some(connection) = self.connection.take() {
            // Closing is a courtesy: what was confirmed is stored.
            let _closed = timeout(ROLLBACK_TIMEOUT, connection.close()).await;
        }
    }
}

/// Before the commit everything is certainly not stored.
pub(crate) fn write_error(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code.as_deref() {
        // A unique index, a serialisation failure, a deadlock: somebody else was first.
        Some("23505" | "40001" | "40P01") => StoreError::Conflict,
        // Data exceptions and the other constraints.
        Some(code) if code.starts_with("22") || code.starts_with("23") => {
            StoreError::Rejected(error)
        }
        _ => StoreError::Unavailable(error),
    }
}
