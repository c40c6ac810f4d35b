//! What a simulation puts in the place of the network and of a process.

pub(crate) use super::tasks::owned::Owner;
pub(crate) use super::upstream::carrier::{Body, Carried, Carrier, Lost};
