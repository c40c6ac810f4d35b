//! What happens when something breaks: Stripe, the way to it, the client, the ledger, the process.

mod crash;
mod in_flight;
mod matrix;
mod outage;
mod unreachable;
