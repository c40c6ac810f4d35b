//! Weather: what real processes go through together. Replicas that die, freeze, get stuck and are
//! replaced; Stripe, the database, the disk and the clock failing under load. What is counted each time
//! is the sandbox's books against the ledger's.

mod clocks;
mod database;
mod disk;
mod frozen;
mod mixed;
mod outage;
mod page;
mod replicas;
mod rolling;
mod stuck;
