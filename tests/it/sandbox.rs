//! The Stripe stand-in, through real sockets.

mod client;
mod faults;
mod idempotency;
