//! What the end-to-end tests share: a whole spendcap over real sockets, and clients for it.

pub(crate) mod clients;
pub(crate) mod cluster;
pub(crate) mod daemon;
pub(crate) mod fleet;
pub(crate) mod hold;
pub(crate) mod http;
pub(crate) mod operator;
pub(crate) mod outside;
pub(crate) mod patience;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod raw;
pub(crate) mod relay;
pub(crate) mod repository;
pub(crate) mod scrape;
pub(crate) mod shown;
pub(crate) mod tls;
pub(crate) mod world;

pub(crate) use operator::VaultKey;
pub(crate) use outside::Outside;
pub(crate) use world::{Charge, LedgerKind, World};
