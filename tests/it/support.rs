//! What the end-to-end tests share: a whole spendcap over real sockets, and clients for it.

pub(crate) mod fleet;
pub(crate) mod http;
pub(crate) mod operator;
pub(crate) mod postgres;
pub(crate) mod world;

pub(crate) use operator::VaultKey;
pub(crate) use world::{Charge, LedgerKind, World};
