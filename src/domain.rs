//! The words and the decisions of spendcap. Pure: no async, no IO, no clock.
//!
//! **Invariant:** nothing here imports another module of this crate. Time arrives as [`time::UnixMs`].
#![warn(clippy::as_conversions)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod cap;
pub mod decision;
pub mod digest;
pub mod echo;
pub mod evidence;
pub mod flag;
pub mod id;
pub mod idempotency;
#[cfg(test)]
pub(crate) mod mistake;
pub mod money;
pub mod operation;
pub mod outcome;
pub mod refusal;
pub mod reservation;
pub mod secret;
pub mod settlement;
pub mod time;
pub mod vault_key;
