//! The Stripe stand-in, through real sockets.

mod charges;
mod client;
mod control;
mod faults;
mod idempotency;
mod money_back;
mod reads;
mod transport;
