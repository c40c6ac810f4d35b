//! `[proxy]`: the data plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{listen, ms};
use crate::config::reader::Reader;

/// The data plane. Each duration's key ends in `_ms`.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where billing services connect.
    pub listen: SocketAddr,
    /// TLS for that listener; plain without.
    pub tls: Option<TlsFiles>,
    /// How long a repeat waits for the first request. Longer ties up connections, shorter sends
    /// callers away with 409 that could have had their answer.
    pub repeat_wait: Duration,
    /// How long an answer waits for its settlement to be durable (design §2.5).
    pub settle_wait: Duration,
    /// How long the listener keeps serving after SIGTERM, so that load balancers notice.
    pub drain: Duration,
    /// The largest request body. Stripe's forms are a few kilobytes.
    pub body_bytes_max: usize,
    /// How many requests may be under way at once; above it, 503 `overloaded`.
    pub in_flight_max: usize,
}

/// PEM files of a certificate chain and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The chain, the server's own certificate first.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

impl ProxyConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "proxy";
        Self {
            listen: listen(reader, SECTION, 12_110),
            tls: tls_files(reader),
            repeat_wait: ms(
                reader.duration_ms(SECTION, "repeat_wait_ms", 0..=600_000),
                30_000,
            ),
            settle_wait: ms(
                reader.duration_ms(SECTION, "settle_wait_ms", 1..=60_000),
                2_000,
            ),
            drain: ms(reader.duration_ms(SECTION, "drain_ms", 0..=60_000), 5_000),
            body_bytes_max: size(
                reader.integer(SECTION, "body_bytes_max", 1024..=16_777_216),
                1 << 20,
            ),
            in_flight_max: size(
                reader.integer(SECTION, "in_flight_max", 1..=1_000_000),
                4096,
            ),
        }
    }
}

fn tls_files(reader: &mut Reader<'_>) -> Option<TlsFiles> {
    let cert_file = reader.path("proxy", "tls_cert_file");
    let key_file = reader.path("proxy", "tls_key_file");
    match (cert_file, key_file) {
        (Some(cert_file), Some(key_file)) => Some(TlsFiles {
            cert_file,
            key_file,
        }),
        (Some(_), None) => {
            reader.refuse(
                "proxy",
                "tls_cert_file",
                "proxy.tls_key_file too, or neither",
            );
            None
        }
        (None, Some(_)) => {
            reader.refuse(
                "proxy",
                "tls_key_file",
                "proxy.tls_cert_file too, or neither",
            );
            None
        }
        (None, None) => None,
    }
}

fn size(set: Option<u32>, default: usize) -> usize {
    set.and_then(|set| usize::try_from(set).ok())
        .unwrap_or(default)
}
