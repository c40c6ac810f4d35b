//! What happens when something breaks: Stripe, the way to it, the client, the ledger, the process.

mod breaker;
mod crash;
mod hang_ups;
mod in_flight;
mod leaks;
mod matrix;
pub(crate) mod outage;
mod resends;
mod shutdown;
mod unreachable;
