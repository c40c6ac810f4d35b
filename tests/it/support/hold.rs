//! Holds the ledger's locks, so that what spendcap wants to store has to wait.

use std::path::Path;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _};

use super::patience::until;

/// A transaction of the test's own; dropped, it is rolled back.
pub(crate) enum Hold {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Hold {
    /// Takes SQLite's write lock, or every vault key's row in PostgreSQL.
    pub(crate) async fn take(ledger_url: &str) -> Self {
        if let Some(path) = ledger_url.strip_prefix("sqlite://") {
            let options = SqliteConnectOptions::new().filename(path);
            let options = options.busy_timeout(Duration::from_secs(30));
            let mut connection = options.connect().await.unwrap();
            connection.execute("BEGIN IMMEDIATE").await.unwrap();
            return Self::Sqlite(connection);
        }
        let mut connection = PgConnection::connect(ledger_url).await.unwrap();
        let lock = "BEGIN; SELECT id FROM vault_keys ORDER BY id FOR UPDATE";
        connection.execute(lock).await.unwrap();
        Self::Postgres(connection)
    }

    /// Waits until spendcap waits. SQLite tells nobody who waits for its lock.
    pub(crate) async fn until_waited_for(&mut self) {
        let Self::Postgres(connection) = self else {
            return;
        };
        let waiting = "SELECT count(*) FROM pg_locks
            WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
        until("spendcap waits for the lock", async || {
            let row = connection.fetch_one(waiting).await.unwrap();
            (row.get::<i64, _>(0) > 0).then_some(())
        })
        .await;
    }

    /// Gives the locks back.
    pub(crate) async fn release(self) {
        match self {
            Self::Sqlite(connection) => connection.close().await.unwrap(),
            Self::Postgres(connection) => connection.close().await.unwrap(),
        }
    }
}

/// Opens a SQLite ledger and closes it again: whoever closes it last puts its log into the file.
pub(crate) async fn fold_log(ledger: &Path) {
    let options = SqliteConnectOptions::new().filename(ledger);
    let mut connection = options.connect().await.unwrap();
    connection.execute("SELECT 1 FROM meta").await.unwrap();
    connection.close().await.unwrap();
}

/// Writes the note of lost commits into a SQLite ledger.
pub(crate) async fn note_lost_commits(ledger_url: &str) {
    let path = ledger_url.strip_prefix("sqlite://").unwrap();
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let note = "INSERT INTO meta (name, value) VALUES ('lost_commits', 'by hand')";
    connection.execute(note).await.unwrap();
    connection.close().await.unwrap();
}
