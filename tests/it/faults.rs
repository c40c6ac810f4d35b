//! What happens when something breaks: Stripe, the way to it, the client, the ledger, the process.

mod in_flight;
mod matrix;
