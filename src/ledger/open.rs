//! Opens a ledger: takes the database, checks its schema, starts the writer.

use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::ConnectOptions as _;
use thiserror::Error;
use tokio::task::JoinHandle;

use super::backup;
use super::book::SendTimes;
use super::file::{FileError, LedgerFile};
use super::handle::Ledger;
use super::lost;
use super::marker::Marker;
use super::reads::Reads;
use super::schema::{self, SchemaError};
use super::store::postgres::{self, PostgresStore};
use super::store::sqlite::{self, SqliteStore};
use super::store::statement::Execute;
use super::writer::WriterObserver;
use crate::clock::Clock;
use crate::domain::time::UnixMs;

/// How a ledger is opened.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The process's clock; PostgreSQL's own clock decides there, with this one's offset.
    pub clock: Clock,
    /// How long a send may take.
    pub times: SendTimes,
    /// Bring the schema up to date; otherwise one that is not is refused.
    pub migrate: bool,
    /// The database was restored from a backup: no money is taken until Stripe's feed was read.
    pub restored: bool,
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
    /// A copy that `spendcap backup` made.
    #[error(
        "this file is a backup that was made at {made_at} and does not know the charges that came after it: \
         `serve --restored` takes it for the ledger, and takes no money until `spendcap reconcile` has read \
         Stripe's feed"
    )]
    Backup {
        /// When.
        made_at: String,
    },
    /// The row that was noted cannot be written.
    #[error("the ledger cannot be written: {0}")]
    Write(String),
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
        let marker = Marker::beside(path);
        let restored = options.restored;
        look_for_a_restore(&connect, &marker, restored, options.clock.now()).await?;
        let reads = Reads::sqlite(connect.clone(), options.clock.clone());
        let store = SqliteStore::open(file, connect, options.clock, marker).await?;
        Ok(Self::start(store, reads, options.times, options.observer))
    }

    /// Opens the ledger in a PostgreSQL database, which any number of processes may share.
    pub async fn open_postgres(
        url: &SecretString,
        options: LedgerOptions,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connect = postgres::options(url.expose_secret()).map_err(|_| OpenError::Url)?;
        prepare_postgres(&connect, options.migrate).await?;
        if options.restored {
            let mut connection = postgres::connect(&connect).await?;
            note_restored(&mut connection, options.clock.now()).await?;
            sqlx::Connection::close(connection).await?;
        }
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

/// A backup in the ledger's place is refused unless somebody says so; an older copy of any kind is noted.
async fn look_for_a_restore(
    connect: &sqlx::sqlite::SqliteConnectOptions,
    marker: &Marker,
    restored: bool,
    now: UnixMs,
) -> Result<(), OpenError> {
    let mut connection = connect.connect().await?;
    let backup = connection.first_text(backup::MARKED).await?;
    match backup {
        Some(made_at) if !restored => return Err(OpenError::Backup { made_at }),
        _ if restored => {
            note_restored(&mut connection, now).await?;
            marker.forget();
        }
        _ => {
            let noted = marker.read();
            if let Some(noted) = noted
                && !sqlite::has_confirmed(&mut connection, noted).await?
            {
                let id = noted.id;
                let why = format!(
                    "reservation {id} was confirmed, as a file beside the ledger says, and is not there: the \
                     ledger is an older copy"
                );
                let written = lost::write(&mut connection, now, &why).await;
                written.map_err(|error| OpenError::Write(error.to_string()))?;
                marker.forget();
            }
        }
    }
    sqlx::Connection::close(connection).await?;
    Ok(())
}

async fn note_restored(connection: &mut impl Execute, now: UnixMs) -> Result<(), OpenError> {
    let note = async {
        lost::write(connection, now, "it was restored from a backup").await?;
        connection.execute(backup::UNMARK, []).await
    };
    let noted = note.await;
    noted.map_err(|error| OpenError::Write(error.to_string()))?;
    Ok(())
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
