//! Where a test's ledger lives: a file of its own.

use std::path::PathBuf;

use spendcap::clock::Clock;
use spendcap::ledger::book::SendTimes;
use spendcap::ledger::{Ledger, LedgerOptions, OpenError};
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

    pub(crate) async fn open(&self) -> Opened {
        self.try_open(true).await.unwrap()
    }

    pub(crate) async fn try_open(&self, migrate: bool) -> Result<Opened, OpenError> {
        let options = LedgerOptions {
            clock: self.clock.clone(),
            times: SendTimes {
                deadline_ms: DEADLINE_MS,
            },
            migrate,
        };
        let (ledger, writer) = match &self.database {
            Database::Sqlite(_) => Ledger::open_sqlite(&self.file(), options).await?,
        };
        Ok(Opened { ledger, writer })
    }

    /// The SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.database {
            Database::Sqlite(folder) => folder.path().join("ledger.db"),
        }
    }
}
