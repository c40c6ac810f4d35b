//! The integration tests: one binary, one module per behaviour.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod admin;
mod cap;
mod captures;
mod charges;
mod cli;
mod container;
mod faults;
mod forms;
mod grafana;
mod java;
mod ledger;
mod logs;
mod lost;
mod metrics;
mod policies;
mod race;
mod readme;
mod reconcile;
mod sandbox;
mod sdks;
mod storms;
mod support;
mod wire_clients;
