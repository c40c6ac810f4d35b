//! The control plane through a real socket, over a SQLite ledger of its own.

mod access;
mod command_line;
mod idempotency;
mod observations;
mod server;
mod vault_keys;
