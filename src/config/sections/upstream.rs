//! `[upstream]`: Stripe, or what stands in for it.

use std::path::PathBuf;
use std::time::Duration;

use super::ms;
use crate::config::reader::Reader;
use crate::config::url::BaseUrl;

/// Stripe, or what stands in for it.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Where it answers.
    pub base_url: BaseUrl,
    /// PEM certificates to trust in place of the public ones.
    pub ca_file: Option<PathBuf>,
    /// How long opening a connection may take. Nothing was sent until then, so giving up is safe.
    pub connect_timeout: Duration,
    /// How long an answer may take. Stripe's SDKs give up at 80 s, so the proxy knows before they do.
    pub timeout: Duration,
    /// How often a request whose answer was lost is sent again: as often as Stripe's SDKs do it.
    pub resends_max: u32,
}

impl UpstreamConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "upstream";
        let instead = "https://host or http://host:port, without a path";
        let base_url = reader.text(SECTION, "base_url", instead, BaseUrl::parse);
        let ca_file = reader.path(SECTION, "ca_file");
        let connect = reader.duration_ms(SECTION, "connect_timeout_ms", 1..=60_000);
        let timeout = reader.duration_ms(SECTION, "timeout_ms", 1..=600_000);
        let resends_max = reader.integer(SECTION, "resends_max", 0..=3);
        let (connect_timeout, timeout) = (ms(connect, 5_000), ms(timeout, 75_000));
        if connect_timeout > timeout {
            reader.refuse(SECTION, "connect_timeout_ms", "at most upstream.timeout_ms");
        }
        Self {
            base_url: base_url.unwrap_or_else(BaseUrl::stripe),
            ca_file,
            connect_timeout,
            timeout,
            resends_max: resends_max.unwrap_or(2),
        }
    }
}
