//! `spendcap`: a proxy in front of Stripe that makes over-charging impossible.
//!
//! # A request's life
//!
//! ```text
//! accept → authenticate → classify → reserve → forward → settle → respond
//! ```
//!
//! One rule holds it together: no request that can move money leaves before its worst case is
//! durably reserved, and no reservation is given back before there is proof that the money did not
//! move.
//!
//! The modules, in reading order:
//!
//! - [`domain`]: the words and the decisions, pure: no IO, no clock, no async.
//! - [`stripe`]: the wire: what a request asks for, what an answer proves.
//! - [`clock`]: the time of day, and the time since boot.
//! - [`ledger`]: what is reserved, settled and known, durably.
//! - [`proxy`]: the data plane: the request's life itself.
//! - [`reconcile`]: what became of reservations whose answers were lost.
//! - [`admin`]: the control plane: what operators see and do.
//! - [`config`]: settings and secrets, as written and then checked.
//! - [`telemetry`]: what the process tells about itself.
//! - [`app`]: puts the parts together.
//! - [`sandbox`]: a stand-in for Stripe, for demos and tests.
//! - [`cli`]: the commands.

pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod ledger;
pub mod proxy;
pub mod reconcile;
pub mod sandbox;
pub mod stripe;
pub mod telemetry;

#[cfg(test)]
#[path = "../tests/simulation/root.rs"]
mod simulation;
