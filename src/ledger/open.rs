//! Opens a ledger: takes the database, checks its schema, starts the writer.

use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::ConnectOptions as _;
use thiserror::Error;
use tokio::task::JoinHandle;

use super::book::SendTimes;
use super::file::{FileError, LedgerFile};
use super::handle::Ledger;
use super::reads::Reads;
use super::schema::{self, SchemaError};
use super::store::postgres::{self, PostgresStore};
use super::store::sqlite::{self, SqliteStore};
use super::writer::WriterObserver;
use crate::clock::Clock;

/// How a ledger is opened.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The process's clock; PostgreSQL's own clock decides there, with this one's offset.
    pub clock: Clock,
    /// How long a send may take.
    pub times: SendTimes,
    /// Bring the schema up to date; otherwise one that is not is refused.
    pub migrate: bool,
    /// Who measures the writer; `()` for nobody.
    pub observer: Arc<dyn WriterObserver>,
}

/// The ledger cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be the ledger's.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database's address cannot be read. What it says is a secret and is not shown.
    #[error(
        "the ledger's URL is not one of PostgreSQL: postgres://user:password@host:port/database"
    )]
    Url,
    /// The schema is not one for this binary.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The database cannot be reached or is not a ledger.
    #[error("the ledger's database cannot be opened: {0}")]
    Database(#[from] sqlx::Error),
}

impl Ledger {
    /// Opens the ledger in a SQLite file, which is created where it is missing. One process may have it.
    /// Whatever was in flight is held.
    pub async fn open_sqlite(
        path: &Path,
        options: LedgerOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let file = LedgerFile::take(path)?;
        let connect = sqlite::options(path);
        prepare_sqlite(&connect, options.migrate).await?;
        let reads = Reads::sqlite(connect.clone(), options.clock.clone());
        let store = SqliteStore::open(file, connect, options.clock).await?;
        Ok(Self::start(store, reads, options.times, options.observer))
    }

    /// Opens the ledger in a PostgreSQL database, which any number of processes may share.
    pub async fn open_postgres(
        url: &SecretString,
        options: LedgerOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connect = postgres::options(url.expose_secret()).map_err(|_| OpenError::Url)?;
        prepare_postgres(&connect, options.migrate).await?;
        let reads = Reads::postgres(&connect, options.clock.clone());
        let store = PostgresStore::new(connect, options.clock);
        Ok(Self::start(store, reads, options.times, options.observer))
    }

    /// Brings a SQLite ledger's schema up to date; returns its version. No process may have it open.
    pub async fn migrate_sqlite(path: &Path) -> Result<i64, OpenError> {
        let _file = LedgerFile::take(path)?;
        prepare_sqlite(&sqlite::options(path), true).await
    }

    /// Brings a PostgreSQL ledger's schema up to date; returns its version.
    pub async fn migrate_postgres(url: &SecretString) -> Result<i64, OpenError> {
        let connect = postgres::options(url.expose_secret()).map_err(|_| OpenError::Url)?;
        prepare_postgres(&connect, true).await
    }
}

async fn prepare_sqlite(
    connect: &sqlx::sqlite::SqliteConnectOptions,
    migrate: bool,
) -> Result<i64, OpenError> {
    let mut connection = connect.connect().await?;
    let version = schema::prepare(&mut connection, &schema::sqlite(), migrate).await?;
    sqlx::Connection::close(connection).await?;
    Ok(version)
}

async fn prepare_postgres(
    connect: &sqlx::postgres::PgConnectOptions,
    migrate: bool,
) -> Result<i64, OpenError> {
    let mut connection = postgres::connect(connect).await?;
    let version = schema::prepare(&mut connection, &schema::postgres(), migrate).await?;
    sqlx::Connection::close(connection).await?;
    Ok(version)
}
