//! The wire between HTTP and the pure domain: bytes in, values out.
//!
//! **Invariant:** what is sent to Stripe is re-serialised from what was judged here, so no other
//! reading of a request can move more money than was reserved (contract §5.1).

pub mod amount;
pub mod answer;
pub mod catalog;
pub mod charge;
pub mod credential;
pub mod envelope;
pub mod event;
pub mod form;
pub mod headers;
mod parameter;
pub mod read;
