//! `/metrics`: the numbers are right, on both ledgers, and Prometheus's own tool finds nothing to say.

mod contract;
mod ledger;
mod outage;
mod requests;

use crate::support::LedgerKind;

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];
