//! A copy of a SQLite ledger, made while it is used.

use std::path::{Path, PathBuf};

use sqlx::ConnectOptions as _;
use thiserror::Error;

use super::handle::Ledger;
use super::store::StoreError;
use super::store::sqlite;
use super::store::statement::Execute as _;

const COPY: &str = "/* backup::copy */ VACUUM INTO $1";

/// `serve` does not take the copy for the ledger itself.
const MARK: &str = "/* backup::mark */
    INSERT INTO meta (name, value)
    VALUES ('backup', strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

pub(super) const MARKED: &str = "/* backup::marked */ SELECT value FROM meta WHERE name = 'backup'";

pub(super) const UNMARK: &str = "/* backup::unmark */ DELETE FROM meta WHERE name = 'backup'";

/// No backup was made.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is something already.
    #[error("{} exists: a backup overwrites nothing", .0.display())]
    Exists(PathBuf),
    /// There is no ledger.
    #[error("there is no ledger at {}", .0.display())]
    NoLedger(PathBuf),
    /// It cannot be read or written.
    #[error("the backup was not made: {0}")]
    Database(#[from] sqlx::Error),
    /// The copy cannot be marked.
    #[error("the backup was not marked as one, and is gone again: {0}")]
    Mark(#[source] StoreErrorText),
}

/// What the database said.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct StoreErrorText(String);

impl Ledger {
    /// Copies the ledger in a SQLite file to `copy`, also while a process uses it.
    ///
    /// # Errors
    /// Where there is no ledger, where `copy` exists, or where it cannot be written.
    pub async fn backup_sqlite(path: &Path, copy: &Path) -> Result<(), BackupError> {
        if copy.symlink_metadata().is_ok() {
            return Err(BackupError::Exists(copy.to_owned()));
        }
        if !path.exists() {
            return Err(BackupError::NoLedger(path.to_owned()));
        }
        let mut connection = sqlite::options(path).connect().await?;
        let name = copy.to_string_lossy().into_owned();
        let copied = sqlx::query(COPY).bind(name).execute(&mut connection).await;
        sqlx::Connection::close(connection).await?;
        copied?;
        if let Err(error) = mark(copy).await {
            // Not marked it would be taken for the ledger.
            let _stays = std::fs::remove_file(copy);
            return Err(BackupError::Mark(StoreErrorText(error.to_string())));
        }
        Ok(())
    }
}

async fn mark(copy: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unavailable = StoreError::Unavailable;
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(copy, owner_only).map_err(|error| unavailable(error.into()))?;
    let options = sqlite::options(copy).journal_mode(sqlx::sqlite::SqliteJournalMode::Delete);
    let mut connection = options.connect().await.map_err(unavailable)?;
    connection.execute(MARK, []).await?;
    sqlx::Connection::close(connection)
        .await
        .map_err(unavailable)
}
