//! Rows from somewhere else than a database: what a simulation reads from.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::ledger::store::StoreError;
use crate::ledger::store::rows::Cells;
use crate::ledger::store::statement::Param;

/// A row, its cells in the order of the statement's columns.
pub(crate) type Row = Vec<Param>;

/// Answers the statements of [`super::Reads`], which their first words name (`/* reads::vault_key */`).
pub(crate) trait Source: Debug + Send + Sync {
    fn fetch<'a>(
        &'a self,
        sql: &str,
        params: Vec<Param>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Row>, StoreError>> + Send + 'a>>;
}

impl Cells for Row {
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        some(self.int_or_null(column)?, column)
    }

    fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.get(column) {
            Some(Param::Int(number)) => Ok(*number),
            other => wrong(other, column),
        }
    }

    fn truth(&self, column: usize) -> Result<bool, StoreError> {
        match self.get(column) {
            Some(Param::Truth(truth)) => Ok(*truth),
            other => wrong(other, column),
        }
    }

    fn text(&self, column: usize) -> Result<String, StoreError> {
        some(self.text_or_null(column)?, column)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError> {
        match self.get(column) {
            Some(Param::Text(text)) => Ok(text.clone()),
            other => wrong(other, column),
        }
    }

    fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        some(self.bytes_or_null(column)?, column)
    }

    fn bytes_or_null(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        match self.get(column) {
            Some(Param::Bytes(bytes)) => Ok(Some(bytes.clone())),
            Some(Param::Text(None)) => Ok(None),
            other => wrong(other, column),
        }
    }
}

fn some<T>(cell: Option<T>, column: usize) -> Result<T, StoreError> {
    cell.ok_or_else(|| StoreError::Unreadable(format!("column {column} is empty")))
}

fn wrong<T>(cell: Option<&Param>, column: usize) -> Result<T, StoreError> {
    Err(StoreError::Unreadable(format!(
        "column {column} is {cell:?}"
    )))
}
