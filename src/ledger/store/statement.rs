//! A statement that both databases understand, and its parameters.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

use super::{StoreError, postgres, sqlite};

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
    Truth(bool),
}

impl From<i64> for Param {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Param {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Param {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Param {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Param {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Param {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<bool> for Param {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

/// Adds every parameter to a query of either database.
macro_rules! bind_all {
    ($query:expr, $params:expr) => {{
        let mut query = $query;
        for param in $params {
            query = match param {
                $crate::ledger::store::statement::Param::Int(number) => query.bind(number),
                $crate::ledger::store::statement::Param::Text(text) => query.bind(text),
                $crate::ledger::store::statement::Param::Bytes(bytes) => query.bind(bytes),
                $crate::ledger::store::statement::Param::Truth(truth) => query.bind(truth),
            };
        }
        query
    }};
}

pub(crate) use bind_all;

/// A connection of either database.
pub(crate) trait Execute: Send {
    /// Runs one statement; returns how many rows it touched.
    fn execute<const N: usize>(
        &mut self,
        sql: &'static str,
        params: [Param; N],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The first column of the first row, if there is one.
    fn first_text(
        &mut self,
        sql: &'static str,
    ) -> impl Future<Output = Result<Option<String>, sqlx::Error>> + Send;

    /// Whether a table of that name exists.
    fn has_table(&mut self, name: &str) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;
}

macro_rules! execute {
    ($connection:ty, $write_error:path, $has_table:literal) => {
        impl Execute for $connection {
            async fn execute<const N: usize>(
                &mut self,
                sql: &'static str,
                params: [Param; N],
            ) -> Result<u64, StoreError> {
                let done = bind_all!(sqlx::query(sql), params).execute(self).await;
                Ok(done.map_err($write_error)?.rows_affected())
            }

            async fn first_text(
                &mut self,
                sql: &'static str,
            ) -> Result<Option<String>, sqlx::Error> {
                sqlx::query_scalar(sql).fetch_optional(self).await
            }

            async fn has_table(&mut self, name: &str) -> Result<bool, sqlx::Error> {
                sqlx::query_scalar($has_table)
                    .bind(name)
                    .fetch_one(self)
                    .await
            }
        }
    };
}

execute!(
    SqliteConnection,
    sqlite::write_error,
    "/* statement::has_table */
     SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)"
);
execute!(
    PgConnection,
    postgres::write_error,
    "/* statement::has_table */ SELECT to_regclass($1) IS NOT NULL"
);
