//! The ledger in PostgreSQL.

use std::collections::BTreeSet;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};

use super::{READ_WAIT_MAX, Store, StoreError};
use crate::clock::Clock;
use crate::domain::id::ReservationId;
use crate::ledger::book::{Book, Loaded, Wanted};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Readers that may work at once.
const READERS_MAX: u32 = 4;

#[derive(Debug)]
pub(crate) struct PostgresStore {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
    clock: Clock,
}

pub(crate) fn options(url: &str) -> Result<PgConnectOptions, sqlx::Error> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name("spendcap")
        .options([
            ("lock_timeout", "5s"),
            ("statement_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "5s"),
        ])
        .disable_statement_logging())
}

pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    tokio::time::timeout(CONNECT_TIMEOUT, options.connect())
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
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
        Self {
            options,
            connection: None,
            clock,
        }
    }
}

impl Store for PostgresStore {
    async fn begin(&mut self, _wanted: &Wanted) -> Result<Loaded, StoreError> {
        let _ = (&self.options, &self.connection, &self.clock);
        Err(StoreError::Unavailable(sqlx::Error::PoolClosed))
    }
    async fn commit(&mut self, _book: &Book) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(sqlx::Error::PoolClosed))
    }
    async fn rollback(&mut self) {}
    async fn all_stored(&mut self, _ids: &BTreeSet<ReservationId>) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn close(self) {}
}

/// Before the commit everything is certainly not stored.
pub(crate) fn write_error(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(error)
}
