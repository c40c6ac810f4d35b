//! Runs a read on whichever database it is, and waits only so long.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, ConnectOptions as _, SqlSafeStr};
use tokio::time::timeout;

use crate::clock::Clock;
use crate::domain::time::UnixMs;
use crate::ledger::handle::LedgerError;
use crate::ledger::store::rows::Cells;
use crate::ledger::store::statement::{Execute as _, Param, bind_all};
use crate::ledger::store::{StoreError, postgres, sqlite, timed_out};

/// A caller is better refused than kept waiting: nothing here takes this long on a sound database.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a query on a connection of the pool; one that failed or is late does not go back to it.
macro_rules! fetch_all {
    ($pool:expr, $sql:expr, $params:expr, $decode:expr) => {
        match $pool.acquire().await {
            Err(error) => Err(StoreError::Unavailable(error)),
            Ok(mut connection) => {
                let query = bind_all!(sqlx::query($sql), $params);
                match timeout(READ_TIMEOUT, query.fetch_all(&mut *connection)).await {
                    Ok(Ok(found)) => found.iter().map(|row| $decode(row)).collect(),
                    Ok(Err(error)) => {
                        drop(connection.detach());
                        Err(StoreError::Unavailable(error))
                    }
                    Err(_elapsed) => {
                        drop(connection.detach());
                        Err(StoreError::Unavailable(timed_out()))
                    }
                }
            }
        }
    };
}

/// Reads from whichever database the ledger is in.
#[derive(Clone, Debug)]
pub struct Reads {
    pools: Pools,
    pub(super) clock: Clock,
}

#[derive(Clone, Debug)]
enum Pools {
    Sqlite(SqlitePool, Box<SqliteConnectOptions>),
    Postgres(PgPool),
    #[cfg(test)]
    Source(std::sync::Arc<dyn super::source::Source>),
}

/// A statement whose conditions depend on what is asked.
pub(super) struct Select {
    sql: String,
    params: Vec<Param>,
}

impl Select {
    pub(super) fn new(sql: &'static str) -> Self {
        Self {
            sql: sql.to_owned(),
            params: Vec::new(),
        }
    }

    /// Adds a piece of SQL in which `?` stands for the parameter.
    pub(super) fn with(&mut self, sql: &'static str, param: impl Into<Param>) -> &mut Self {
        self.params.push(param.into());
        let number = format!("${}", self.params.len());
        self.sql.push_str(&sql.replace('?', &number));
        self
    }
}

impl Reads {
    pub(in crate::ledger) fn sqlite(options: SqliteConnectOptions, clock: Clock) -> Self {
        let pools = Pools::Sqlite(sqlite::readers(&options), Box::new(options));
        Self { pools, clock }
    }

    pub(in crate::ledger) fn postgres(options: &PgConnectOptions, clock: Clock) -> Self {
        let pools = Pools::Postgres(postgres::readers(options));
        Self { pools, clock }
    }

    /// Reads from a source of rows that a test has in place of a database.
    #[cfg(test)]
    pub(crate) fn source(source: std::sync::Arc<dyn super::source::Source>, clock: Clock) -> Self {
        let pools = Pools::Source(source);
        Self { pools, clock }
    }

    pub(super) async fn select<T>(
        &self,
        select: Select,
        decode: impl FnMut(&dyn Cells) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, LedgerError> {
        // Put together from this crate's own pieces; what a caller says is in the parameters.
        self.fetch(AssertSqlSafe(select.sql), select.params, decode)
            .await
    }

    pub(super) async fn fetch<T>(
        &self,
        sql: impl SqlSafeStr,
        params: Vec<Param>,
        mut decode: impl FnMut(&dyn Cells) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, LedgerError> {
        let decoded = match &self.pools {
            Pools::Sqlite(pool, _) => fetch_all!(pool, sql, params, decode),
            Pools::Postgres(pool) => fetch_all!(pool, sql, params, decode),
            #[cfg(test)]
            Pools::Source(source) => source
                .fetch(sql.into_sql_str().as_str(), params)
                .await
                .and_then(|found| found.iter().map(|row| decode(row)).collect()),
        };
        decoded.map_err(|error| failed(&error))
    }

    /// The time on the store's clock.
    pub(super) async fn now(&self) -> Result<UnixMs, LedgerError> {
        const NOW: &str = "/* Reads::now */
            SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        if let Pools::Sqlite(..) = &self.pools {
            return Ok(self.clock.now());
        }
        let told = self.fetch(NOW, Vec::new(), |row| row.int(0)).await?.pop();
        let told = told.ok_or(LedgerError::Inconsistent)?;
        Ok(UnixMs(told).plus_ms(self.clock.offset_ms()))
    }

    /// Stores a fact about the ledger unless it is known; returns what is known.
    pub(in crate::ledger) async fn pin_fact(
        &self,
        name: &'static str,
        value: &str,
    ) -> Result<String, LedgerError> {
        const INSERT: &str = "/* Reads::pin_fact */
            INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        let params: [Param; 2] = [name.into(), value.into()];
        let insert = async {
            match &self.pools {
                Pools::Sqlite(_, options) => {
                    let connection = options.connect().await.map_err(StoreError::Unavailable);
                    connection?.execute(INSERT, params).await
                }
                Pools::Postgres(pool) => {
                    let connection = pool.acquire().await.map_err(StoreError::Unavailable);
                    connection?.execute(INSERT, params).await
                }
                #[cfg(test)]
                Pools::Source(source) => source.fetch(INSERT, params.to_vec()).await.map(|_| 0),
            }
        };
        let inserted = timeout(READ_TIMEOUT, insert).await;
        let inserted = inserted.map_err(|_elapsed| LedgerError::Unavailable)?;
        inserted.map_err(|error| failed(&error))?;
        self.fact(name).await?.ok_or(LedgerError::Inconsistent)
    }

    /// What is stored about the ledger itself under this name.
    pub(in crate::ledger) async fn fact(
        &self,
        name: &'static str,
    ) -> Result<Option<String>, LedgerError> {
        const KNOWN: &str = "/* Reads::fact */ SELECT value FROM meta WHERE name = $1";
        let mut known = self
            .fetch(KNOWN, vec![name.into()], |row| row.text(0))
            .await?;
        Ok(known.pop())
    }
}

fn failed(error: &StoreError) -> LedgerError {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(error = %error, source, "The ledger was not read");
    match error {
        StoreError::Unreadable(_) => LedgerError::Inconsistent,
        _ => LedgerError::Unavailable,
    }
}
