//! Clients that the README's official SDKs do not stand for: async-stripe, plain curl, and Go, PHP and Ruby as
//! their SDKs send on the wire (contract §3, §4), where the SDKs themselves are not to be had.

mod async_stripe;
mod curl;
mod lost;
mod pages;
mod sender;
mod stripe_wire;
