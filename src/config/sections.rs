//! The sections of `proxy.toml`, a file each, with the defaults and their reasons.

mod admin;
mod breaker;
mod defaults;
mod ledger;
mod log;
mod proxy;
mod reconcile;
mod upstream;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use admin::AdminConfig;
pub use breaker::BreakerConfig;
pub use defaults::DefaultsConfig;
pub use ledger::LedgerConfig;
pub use log::{LogConfig, LogFormat};
pub use proxy::{ProxyConfig, TlsFiles};
pub use reconcile::ReconcileConfig;
pub use upstream::UpstreamConfig;

use super::reader::Reader;

fn listen(reader: &mut Reader<'_>, section: &'static str, port: u16) -> SocketAddr {
    let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let instead = format!("an address and port such as {loopback}");
    let listen = reader.text(section, "listen", &instead, |text| text.parse().ok());
    listen.unwrap_or(loopback)
}

fn ms(set: Option<Duration>, default_ms: u64) -> Duration {
    set.unwrap_or_else(|| Duration::from_millis(default_ms))
}
