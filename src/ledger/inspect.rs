//! Looks at a ledger without taking it: what `spendcap check` reports. Nothing is migrated or held.

use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::ConnectOptions as _;

use super::file::LedgerFile;
use super::handle::Ledger;
use super::open::OpenError;
use super::schema::{self, SchemaError};
use super::store::statement::Execute;
use super::store::{postgres, sqlite};

const MODE: &str = "/* inspect */ SELECT value FROM meta WHERE name = 'mode'";
const ACCOUNT: &str = "/* inspect */ SELECT value FROM meta WHERE name = 'account'";

/// Each query finds a row where the weakness is there.
const WEAKNESSES: [(Weakness, &str); 3] = [
    (
        Weakness::ReadOnly,
        "/* inspect */ SELECT 'x' WHERE pg_is_in_recovery()",
    ),
    (
        Weakness::NoFsync,
        "/* inspect */ SELECT 'x' WHERE current_setting('fsync') = 'off'",
    ),
    (
        Weakness::NoStandby,
        "/* inspect */ SELECT 'x' WHERE current_setting('synchronous_standby_names') = ''",
    ),
];

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspected {
    /// The schema's version; 0 where nothing was migrated yet.
    pub schema_version: i64,
    /// Whether the schema is as new as this binary wants it.
    pub migrated: bool,
    /// `live` or `test`, once a key was pinned.
    pub mode: Option<String>,
    /// The Stripe account it belongs to, once it is pinned.
    pub account: Option<String>,
    /// What the database's own settings leave open.
    pub weaknesses: Vec<Weakness>,
}

/// A setting of PostgreSQL that a ledger of money should not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weakness {
    /// A standby: nothing can be written.
    ReadOnly,
    /// Writes are not flushed.
    NoFsync,
    /// A commit is on one machine only.
    NoStandby,
}

impl Weakness {
    /// What it means, in a sentence.
    pub const fn message(self) -> &'static str {
        match self {
            Self::ReadOnly => "the database is a standby and takes no writes",
            Self::NoFsync => "fsync is off: a crash of the machine loses reservations",
            Self::NoStandby => {
                "no synchronous standby: losing this server loses its last reservations"
            }
        }
    }

    /// True where no money can be taken at all.
    pub const fn is_fatal(self) -> bool {
        matches!(self, Self::ReadOnly)
    }
}

impl Ledger {
    /// Looks at the ledger in a SQLite file; `None` where there is no file yet.
    ///
    /// # Errors
    /// Where another process has it, where it cannot be read, or where it is too new.
    pub async fn inspect_sqlite(path: &Path) -> Result<Option<Inspected>, OpenError> {
        if !path.exists() {
            return Ok(None);
        }
        // Given back at once: a check must not keep a starting process from its ledger.
        drop(LedgerFile::take(path)?);
        let mut connection = sqlite::options(path).connect().await?;
        let inspected = inspect(&mut connection).await?;
        sqlx::Connection::close(connection).await?;
        Ok(Some(inspected))
    }

    /// Looks at the ledger in a PostgreSQL database.
    ///
    /// # Errors
    /// Where it cannot be reached or read, or where it is too new.
    pub async fn inspect_postgres(url: &SecretString) -> Result<Inspected, OpenError> {
        let connect = postgres::options(url.expose_secret()).map_err(|_| OpenError::Url)?;
        let mut connection = postgres::connect(&connect).await?;
        let mut inspected = inspect(&mut connection).await?;
        for (weakness, sql) in WEAKNESSES {
            if connection.first_text(sql).await?.is_some() {
                inspected.weaknesses.push(weakness);
            }
        }
        sqlx::Connection::close(connection).await?;
        Ok(inspected)
    }
}

async fn inspect(connection: &mut impl Execute) -> Result<Inspected, SchemaError> {
    let schema_version = schema::inspect(connection).await?;
    let (mut mode, mut account) = (None, None);
    if schema_version > 0 {
        let fact = connection.first_text(MODE).await;
        mode = fact.map_err(SchemaError::Unreadable)?;
        let fact = connection.first_text(ACCOUNT).await;
        account = fact.map_err(SchemaError::Unreadable)?;
    }
    Ok(Inspected {
        schema_version,
        migrated: schema_version >= schema::LATEST,
        mode,
        account,
        weaknesses: Vec::new(),
    })
}
