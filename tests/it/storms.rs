//! Weather: what real processes go through together. Replicas that die, freeze, get stuck and are
//! replaced; Stripe, the database, the disk and the clock failing under load. What is counted each time
//! is the sandbox's books against the ledger's.

mod frozen;
mod outage;
mod replicas;
mod rolling;
mod stuck;
