//! Moves what was committed from the log into the database file, beside the writer and not in its way.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Row as _};

/// How often the log is looked at. At full load it grows by some megabytes in that time.
const EVERY: Duration = Duration::from_millis(100);

/// A log of this many pages (16 MiB) is started over, which makes the writer wait for the few pages that
/// came meanwhile: a log of 64 MiB makes some commits wait for 50 ms.
const RESTART_PAGES: i64 = 4096;

/// A log of this many pages (64 MiB) is also cut, so that a burst does not keep its disk space.
const TRUNCATE_PAGES: i64 = 16_384;

const PASSIVE: &str = "/* sqlite checkpoint::run */ PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "/* sqlite checkpoint::run */ PRAGMA wal_checkpoint(RESTART)";
const TRUNCATE: &str = "/* sqlite checkpoint::run */ PRAGMA wal_checkpoint(TRUNCATE)";

/// Runs until it is aborted. What it cannot do now it does later: nothing is lost meanwhile.
pub(super) async fn run(options: SqliteConnectOptions) {
    let mut connection = None;
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = checkpoint(&options, &mut connection).await {
            tracing::warn!(error = %error, "The ledger's log was not moved into its file");
            connection = None;
        }
    }
}

async fn checkpoint(
    options: &SqliteConnectOptions,
    connection: &mut Option<SqliteConnection>,
) -> Result<(), sqlx::Error> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(options.connect().await?),
    };
    let pages = log_pages(connection, PASSIVE).await?;
    if pages > TRUNCATE_PAGES {
        log_pages(connection, TRUNCATE).await?;
    } else if pages > RESTART_PAGES {
        log_pages(connection, RESTART).await?;
    }
    Ok(())
}

/// Pages in the log; a reader in the way is no error.
async fn log_pages(
    connection: &mut SqliteConnection,
    pragma: &'static str,
) -> Result<i64, sqlx::Error> {
    sqlx::query(pragma).fetch_one(connection).await?.try_get(1)
}
