//! Which server a connection leads to: whether all that was confirmed is still there.
//!
//! A standby that lagged and was promoted lacks the last commits, and nothing in its rows says so. Its
//! timeline does, and so does a row that this process was told is stored.

use sqlx::{Connection as _, PgConnection};

use crate::domain::id::ReservationId;
use crate::domain::time::UnixMs;
use crate::ledger::book::Book;
use crate::ledger::lost;
use crate::ledger::store::StoreError;
use crate::ledger::store::rows::Cells as _;
use crate::ledger::store::statement::Execute as _;

const IN_RECOVERY: &str = "/* postgres server::in_recovery */ SELECT pg_is_in_recovery()";

/// The cluster, its timeline, and the database in it, which a restored dump does not share.
const IDENTITY: &str = "/* postgres server::identity */
    SELECT system_identifier::TEXT, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
        (SELECT oid::TEXT FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()";

const VERSION: &str =
    "/* postgres server::version */ SELECT version FROM reservations WHERE id = $1";

/// One process at a time compares and writes.
const LOCK: &str = "/* postgres server::recorded */ SELECT pg_advisory_xact_lock(7305792811)";

const RECORDED: &str =
    "/* postgres server::recorded */ SELECT value FROM meta WHERE name = 'server'";

const RECORD: &str = "/* postgres server::record */
    INSERT INTO meta (name, value) VALUES ('server', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

const NOW: &str = "/* postgres server::now */
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

/// What this process knows of the server that it was connected to.
#[derive(Debug, Default)]
pub(super) struct Known {
    server: Option<Identity>,
    /// A row that was confirmed, the last of the last batch, and its version then.
    confirmed: Option<(ReservationId, i64)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    system: String,
    timeline: String,
    database: String,
}

impl Identity {
    fn text(&self) -> String {
        format!("{}/{}/{}", self.system, self.timeline, self.database)
    }
}

impl Known {
    /// The batch of this book was confirmed.
    pub(super) fn confirm(&mut self, book: &Book) {
        if let Some(row) = book.last_written() {
            self.confirmed = Some((row.id, row.version));
        }
    }

    /// Looks at the server behind a new connection, and notes in the ledger where commits may be lost:
    /// the connection is not used before that.
    pub(super) async fn verify(
        &mut self,
        connection: &mut PgConnection,
        offset_ms: i64,
    ) -> Result<(), StoreError> {
        let standby = query(connection, IN_RECOVERY).await?.truth(0)?;
        if standby {
            let why = "the server is a standby, which takes no writes".to_owned();
            return Err(StoreError::Unavailable(sqlx::Error::Protocol(why)));
        }
        let server = identity(connection).await?;
        let gone = self.confirmed_is_gone(connection).await?;
        let mut transaction = connection.begin().await.map_err(StoreError::Unavailable)?;
        query(&mut transaction, LOCK).await?;
        let recorded = transaction.first_text(RECORDED).await;
        let recorded = recorded.map_err(StoreError::Unavailable)?;
        let why = gone.or_else(|| self.changed(server.as_ref(), recorded.as_deref()));
        if let Some(why) = &why {
            let now = UnixMs(query(&mut transaction, NOW).await?.int(0)?).plus_ms(offset_ms);
            lost::write(&mut *transaction, now, why).await?;
        }
        if let Some(now) = server.as_ref().map(Identity::text)
            && recorded.as_ref() != Some(&now)
        {
            transaction.execute(RECORD, [now.into()]).await?;
        }
        transaction
            .commit()
            .await
            .map_err(StoreError::Unavailable)?;
        if why.is_some() {
            self.confirmed = None;
        }
        self.server = server;
        Ok(())
    }

    async fn confirmed_is_gone(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<String>, StoreError> {
        let Some((id, version)) = self.confirmed else {
            return Ok(None);
        };
        let found = sqlx::query(VERSION).bind(id.0).fetch_optional(connection);
        let found = found.await.map_err(StoreError::Unavailable)?;
        let stored = found.map(|row| row.int(0)).transpose()?;
        // Versions only rise.
        let gone = stored.is_none_or(|stored| stored < version);
        Ok(gone.then(|| format!("reservation {id} was confirmed and is not there as it was")))
    }

    /// What of the server is not as the ledger has it, or as this process knew it.
    fn changed(&self, server: Option<&Identity>, recorded: Option<&str>) -> Option<String> {
        let server = server?;
        let now = server.text();
        // Where the record itself is gone, it is what this process knew.
        let before = recorded.map(ToOwned::to_owned);
        let before = before.or_else(|| self.server.as_ref().map(Identity::text));
        if let Some(before) = before.filter(|before| *before != now) {
            return Some(format!(
                "the ledger was written on the server {before} and is now on {now} (system, timeline, \
                 database)"
            ));
        }
        // A change that the ledger has recorded was noted there by whoever recorded it.
        let known = self.server.as_ref()?;
        let back = known.system == server.system && known.timeline > server.timeline;
        back.then(|| format!("the server went back from {} to {now}", known.text()))
    }
}

/// `None` where the database does not tell, as some hosted ones: then only a missing row shows.
async fn identity(connection: &mut PgConnection) -> Result<Option<Identity>, StoreError> {
    match sqlx::query(IDENTITY).fetch_one(connection).await {
        Ok(row) => Ok(Some(Identity {
            system: row.text(0)?,
            timeline: row.text(1)?,
            database: row.text(2)?,
        })),
        Err(error) if is_kept_back(&error) => {
            tracing::warn!(
                error = %error,
                "PostgreSQL does not tell its timeline: a failover at which no process of spendcap was \
                 running goes unnoticed"
            );
            Ok(None)
        }
        Err(error) => Err(StoreError::Unavailable(error)),
    }
}

/// The database does not tell, now and later. A time-out, say, is asked again: it must not pass unseen.
fn is_kept_back(error: &sqlx::Error) -> bool {
    let passing = ["08", "40", "53", "55", "57"];
    error.as_database_error().is_some_and(|error| {
        let code = error.code().unwrap_or_default();
        !passing.iter().any(|class| code.starts_with(class))
    })
}

async fn query(
    connection: &mut PgConnection,
    sql: &'static str,
) -> Result<sqlx::postgres::PgRow, StoreError> {
    let row = sqlx::query(sql).fetch_one(connection).await;
    row.map_err(StoreError::Unavailable)
}
