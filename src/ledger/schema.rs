//! The schema: its migrations, and which binaries may run on it.

use std::borrow::Cow;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr as _, SqlStr};
use thiserror::Error;

use super::store::statement::Execute;

/// Number, name, SQLite's text, PostgreSQL's text. Additive only: an older binary goes on running.
const MIGRATIONS: [(i64, &str, &str, &str); 2] = [
    (
        1,
        "ledger",
        include_str!("../../migrations/sqlite/0001_ledger.sql"),
        include_str!("../../migrations/postgres/0001_ledger.sql"),
    ),
    (
        2,
        "reconcile",
        include_str!("../../migrations/sqlite/0002_reconcile.sql"),
        include_str!("../../migrations/postgres/0002_reconcile.sql"),
    ),
];

/// The schema this binary was written for.
pub(super) const LATEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

const MIN_BINARY: &str =
    "/* schema::check_binary */ SELECT value FROM meta WHERE name = 'min_binary'";

pub(super) const APPLIED: &str = "/* schema::applied */
    SELECT CAST(COALESCE(MAX(version), 0) AS TEXT) FROM _sqlx_migrations WHERE success";

/// The schema is not one that this binary can run on.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// A newer binary's schema.
    #[error(
        "the ledger's schema needs spendcap {min_binary} or later; this is {}",
        env!("CARGO_PKG_VERSION")
    )]
    BinaryTooOld {
        /// The oldest version that may run on it.
        min_binary: String,
    },
    /// Migrations are missing and were not asked for.
    #[error("the ledger's schema is at {found} and must be at {LATEST}: run `spendcap migrate`")]
    NotMigrated {
        /// The last migration that was applied; 0 for an empty database.
        found: i64,
    },
    /// A migration failed.
    #[error("the ledger's schema cannot be migrated")]
    Migrate(#[from] MigrateError),
    /// The schema cannot be read.
    #[error("the ledger's schema cannot be read")]
    Unreadable(#[source] sqlx::Error),
}

pub(super) fn sqlite() -> Migrator {
    migrator(|(_, _, sqlite, _)| sqlite)
}

pub(super) fn postgres() -> Migrator {
    migrator(|(_, _, _, postgres)| postgres)
}

fn migrator(
    text: impl Fn((i64, &'static str, &'static str, &'static str)) -> &'static str,
) -> Migrator {
    let migrations = MIGRATIONS.map(|migration| {
        let sql: SqlStr = text(migration).into_sql_str();
        let (version, name, ..) = migration;
        Migration::new(
            version,
            Cow::Borrowed(name),
            MigrationType::Simple,
            sql,
            false,
        )
    });
    let mut migrator = Migrator::with_migrations(migrations.to_vec());
    // A newer binary's migrations are no mistake: `min_binary` says whether this one may go on.
    migrator.set_ignore_missing(true);
    migrator
}

/// Checks that this binary may run on the schema, and brings it up to date or refuses one that is not.
/// Returns its version.
pub(super) async fn prepare<C: Execute + Migrate>(
    connection: &mut C,
    migrator: &Migrator,
    migrate: bool,
) -> Result<i64, SchemaError> {
    check_binary(connection).await?;
    if migrate {
        migrator.run_direct(None, connection, false).await?;
    }
    let found = applied(connection).await.map_err(SchemaError::Unreadable)?;
    if found < LATEST {
        Err(SchemaError::NotMigrated { found })
    } else {
        Ok(found)
    }
}

/// The schema's version, 0 for an empty database, where this binary may run on it.
pub(super) async fn inspect(connection: &mut impl Execute) -> Result<i64, SchemaError> {
    check_binary(connection).await?;
    applied(connection).await.map_err(SchemaError::Unreadable)
}

/// Refuses a schema that says it is for newer binaries.
async fn check_binary(connection: &mut impl Execute) -> Result<(), SchemaError> {
    if connection
        .has_table("meta")
        .await
        .map_err(SchemaError::Unreadable)?
    {
        let min_binary = connection.first_text(MIN_BINARY).await;
        let min_binary = min_binary
            .map_err(SchemaError::Unreadable)?
            .unwrap_or_default();
        if release(&min_binary) > release(env!("CARGO_PKG_VERSION")) {
            return Err(SchemaError::BinaryTooOld { min_binary });
        }
    }
    Ok(())
}

async fn applied(connection: &mut impl Execute) -> Result<i64, sqlx::Error> {
    if !connection.has_table("_sqlx_migrations").await? {
        return Ok(0);
    }
    let version = connection.first_text(APPLIED).await?;
    Ok(version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0))
}

/// `1.2.3` as numbers, so that 0.10 is later than 0.9.
fn release(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain
        .split('.')
        .map(|part| part.parse().unwrap_or(u64::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert!(release("0.10.0") > release("0.9.9"));
        assert!(release("1.0.0-rc.1") == release("1.0.0"));
        assert!(release("not a version") > release("9.9.9"), "fails closed");
    }

    #[test]
    fn both_databases_have_the_same_migrations() {
        let folder = |name: &str| {
            let folder = format!("{}/migrations/{name}", env!("CARGO_MANIFEST_DIR"));
            let mut names: Vec<_> = std::fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        assert_eq!(folder("sqlite"), folder("postgres"));
        assert_eq!(folder("sqlite").len(), MIGRATIONS.len());
        assert_eq!(sqlite().iter().count(), MIGRATIONS.len());
    }
}
