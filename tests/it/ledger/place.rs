//! Where a test's ledger lives: a file, or a PostgreSQL database of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use secrecy::SecretString;
use spendcap::clock::Clock;
use spendcap::ledger::book::SendTimes;
use spendcap::ledger::{Ledger, LedgerOptions, OpenError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqliteConnection};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The upstream timeout, the forward window and a grace, as the app would set them.
pub(crate) const DEADLINE_MS: i64 = 120_000;

pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) clock: Clock,
}

pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres { url: String },
}

/// An open ledger and its writer's task.
pub(crate) struct Opened {
    pub(crate) ledger: Ledger,
    writer: JoinHandle<()>,
}

impl Opened {
    /// Drops the ledger and waits until its writer has ended.
    pub(crate) async fn close(self) {
        drop(self.ledger);
        self.writer.await.unwrap();
    }
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self {
            database: Database::Sqlite(TempDir::new().unwrap()),
            clock: Clock::system(),
        }
    }

    /// A new database on the test server.
    pub(crate) async fn postgres() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = postgres_url();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("spendcap_test_{}_{number}", std::process::id());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        for statement in [
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("CREATE DATABASE {name}"),
        ] {
            let statement = sqlx::AssertSqlSafe(statement);
            sqlx::raw_sql(statement)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let (server, _) = server.rsplit_once('/').unwrap();
        Self {
            database: Database::Postgres {
                url: format!("{server}/{name}"),
            },
            clock: Clock::system(),
        }
    }

    pub(crate) async fn open(&self) -> Opened {
        self.try_open(true).await.unwrap()
    }

    pub(crate) async fn try_open(&self, migrate: bool) -> Result<Opened, OpenError> {
        let options = LedgerOptions {
            restored: false,
            clock: self.clock.clone(),
            times: SendTimes {
                deadline_ms: DEADLINE_MS,
            },
            migrate,
            observer: std::sync::Arc::new(()),
        };
        let (ledger, writer) = match &self.database {
            Database::Sqlite(_) => Ledger::open_sqlite(&self.file(), options).await?,
            Database::Postgres { url } => {
                Ledger::open_postgres(&SecretString::from(url.clone()), options).await?
            }
        };
        Ok(Opened { ledger, writer })
    }

    /// Does to the database what no ledger would.
    pub(crate) async fn sql(&self, statements: &[&'static str]) {
        for statement in statements {
            match &self.database {
                Database::Sqlite(_) => {
                    let mut connection = self.sqlite_connection().await;
                    let done = sqlx::query(*statement).execute(&mut connection).await;
                    done.unwrap();
                    connection.close().await.unwrap();
                }
                Database::Postgres { url } => {
                    let mut connection = PgConnection::connect(url).await.unwrap();
                    let done = sqlx::query(*statement).execute(&mut connection).await;
                    done.unwrap();
                    connection.close().await.unwrap();
                }
            }
        }
    }

    /// A connection beside the ledger's own.
    pub(crate) async fn sqlite_connection(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.file());
        options.connect().await.unwrap()
    }

    /// The SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.database {
            Database::Sqlite(folder) => folder.path().join("ledger.db"),
            Database::Postgres { .. } => panic!("PostgreSQL has no file of ours"),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "the one place that reads where the test server is"
)]
fn postgres_url() -> String {
    std::env::var("SPENDCAP_TEST_POSTGRES_URL")
        .expect("SPENDCAP_TEST_POSTGRES_URL is not set: run ./test, which starts a PostgreSQL")
}
