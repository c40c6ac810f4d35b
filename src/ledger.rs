//! The ledger: what is reserved, settled and known, durably.
//!
//! A [`Ledger`] is a handle. Commands go through a bounded queue to one writer, which takes whatever
//! has queued, loads the working set ([`book`]), decides each in order, writes the difference, commits
//! once and answers all (design §3.5). SQLite and PostgreSQL differ only in loading and writing.

mod backup;
pub mod book;
pub mod command;
pub mod feed;
mod file;
pub mod flag;
mod handle;
mod inspect;
mod lost;
mod marker;
mod open;
mod pin;
mod reads;
mod schema;
#[cfg(test)]
pub(crate) mod simulated;
mod store;
mod writer;

pub use backup::BackupError;
pub use file::FileError;
pub use handle::{Ledger, LedgerError, PendingSettle, Ready};
pub use inspect::{Inspected, Weakness};
pub use lost::LostCommits;
pub use open::{LedgerOptions, OpenError};
pub use pin::PinError;
pub use reads::{
    AuditEntry, CapStanding, CapSums, FlagFilter, Listed, Page, PeriodCap, PeriodRollUp, Reads,
    ReservationFilter, ShownKey, Standing, StateSums, VaultKeyFilter,
};
pub use schema::SchemaError;
pub use writer::WriterObserver;
