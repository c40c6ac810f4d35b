//! The sections of `proxy.toml`, one struct each, with the defaults and their reasons.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tracing::level_filters::LevelFilter;

use super::mistake::Place;
use super::reader::Reader;
use super::secret_file::SecretFile;
use super::url::{BaseUrl, LedgerUrl};
use crate::domain::cap::Headroom;
use crate::domain::operation::Permission;
use crate::domain::vault_key::OnDuplicate;

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
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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

/// The admin API's listener and its tokens.
#[derive(Clone, Debug)]
pub struct AdminConfig {
    /// Where operators and Prometheus connect; loopback by default.
    pub listen: SocketAddr,
    /// A file of `name:role:sha256`, one token a line.
    pub tokens_file: Option<PathBuf>,
}

impl AdminConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            listen: listen(reader, "admin", 12_112),
            tokens_file: reader.path("admin", "tokens_file"),
        }
    }
}

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
}

impl UpstreamConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "upstream";
        let instead = "https://host or http://host:port, without a path";
        let base_url = reader.text(SECTION, "base_url", instead, BaseUrl::parse);
        let ca_file = reader.path(SECTION, "ca_file");
        let connect = reader.duration_ms(SECTION, "connect_timeout_ms", 1..=60_000);
        let timeout = reader.duration_ms(SECTION, "timeout_ms", 1..=600_000);
        let (connect_timeout, timeout) = (ms(connect, 5_000), ms(timeout, 75_000));
        if connect_timeout > timeout {
            reader.refuse(SECTION, "connect_timeout_ms", "at most upstream.timeout_ms");
        }
        Self {
            base_url: base_url.unwrap_or_else(BaseUrl::stripe),
            ca_file,
            connect_timeout,
            timeout,
        }
    }
}

/// Where reservations are kept.
#[derive(Clone, Debug)]
pub struct LedgerConfig {
    /// SQLite for one process, PostgreSQL for many.
    pub url: LedgerUrl,
}

impl LedgerConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "ledger";
        let written = reader.text(SECTION, "url", LedgerUrl::INSTEAD, LedgerUrl::parse);
        if let Some(LedgerUrl::Postgres(url)) = &written
            && url.has_password()
            && reader.is_from_file(SECTION, "url")
        {
            let instead = "the URL without its password, or set SPENDCAP_LEDGER_URL or \
                           SPENDCAP_LEDGER_URL_FILE: a secret does not belong in this file";
            reader.refuse(SECTION, "url", instead);
        }
        let from_file = Self::url_from_file(reader);
        let default = || LedgerUrl::Sqlite(PathBuf::from("spendcap.db"));
        Self {
            url: from_file.or(written).unwrap_or_else(default),
        }
    }

    /// The URL out of a file of its own, for a password that is mounted as a secret.
    fn url_from_file(reader: &mut Reader<'_>) -> Option<LedgerUrl> {
        const VARIABLE: &str = "SPENDCAP_LEDGER_URL_FILE";
        let file = SecretFile::new(reader.variable(VARIABLE)?);
        if reader.variable("SPENDCAP_LEDGER_URL").is_some() {
            let message = "set this or SPENDCAP_LEDGER_URL, not both".to_owned();
            reader.report(Place::Variable(VARIABLE.to_owned()), message);
        }
        let place = Place::File(file.path().to_owned());
        match file.read() {
            Ok(text) => {
                let url = LedgerUrl::parse(text.expose_secret());
                if url.is_none() {
                    reader.report(place, format!("write {}", LedgerUrl::INSTEAD));
                }
                url
            }
            Err(error) => {
                reader.report(place, error.to_string());
                None
            }
        }
    }
}

/// What a vault key gets when its creation does not say.
#[derive(Clone, Debug)]
pub struct DefaultsConfig {
    /// The factor between an expected total and its cap.
    pub headroom: Headroom,
    /// The duplicate policy.
    pub on_duplicate: OnDuplicate,
    /// What the key may do.
    pub permissions: Vec<Permission>,
}

impl DefaultsConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "defaults";
        let headroom = reader.text(
            SECTION,
            "headroom",
            "a decimal from 1 to 10 in quotes, such as \"1.10\"",
            |text| Headroom::parse(text).ok(),
        );
        let policies = OnDuplicate::ALL.map(OnDuplicate::as_str).join(", ");
        let policies = format!("one of {policies}");
        let on_duplicate = reader.text(SECTION, "on_duplicate", &policies, OnDuplicate::parse);
        let permissions = Permission::ALL.map(Permission::as_str).join(", ");
        let permissions = format!("a list of {permissions}");
        let permissions = reader.list(SECTION, "permissions", &permissions, Permission::parse);
        Self {
            headroom: headroom.unwrap_or(Headroom::DEFAULT),
            on_duplicate: on_duplicate.unwrap_or(OnDuplicate::Replay),
            permissions: permissions.unwrap_or_else(|| vec![Permission::ChargesWrite]),
        }
    }
}

/// When money stops going to a Stripe that does not answer (design §4).
#[derive(Clone, Debug)]
pub struct BreakerConfig {
    /// How many unknown outcomes in a row open it. Each leaves a held row to resolve.
    pub unknown_outcomes_max: u32,
    /// How often a read asks whether Stripe is back.
    pub probe_interval: Duration,
}

impl BreakerConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "breaker";
        let unknown_outcomes_max = reader.integer(SECTION, "unknown_outcomes_max", 1..=100_000);
        let probe_interval = reader.duration_ms(SECTION, "probe_interval_ms", 10..=600_000);
        Self {
            unknown_outcomes_max: unknown_outcomes_max.unwrap_or(10),
            probe_interval: ms(probe_interval, 5_000),
        }
    }
}

/// What is logged to standard error.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// One JSON object a line, or text for people.
    pub format: LogFormat,
    /// spendcap's own level; libraries log warnings and errors only, because they would log headers.
    pub level: LevelFilter,
}

/// How a log line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// One object a line.
    Json,
    /// For people.
    Text,
}

impl LogConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "log";
        let format = reader.text(SECTION, "format", "json or text", |text| match text {
            "json" => Some(LogFormat::Json),
            "text" => Some(LogFormat::Text),
            _ => None,
        });
        let levels = "one of error, warn, info, debug, trace";
        let level = reader.text(SECTION, "level", levels, |text| match text {
            "error" => Some(LevelFilter::ERROR),
            "warn" => Some(LevelFilter::WARN),
            "info" => Some(LevelFilter::INFO),
            "debug" => Some(LevelFilter::DEBUG),
            "trace" => Some(LevelFilter::TRACE),
            _ => None,
        });
        Self {
            format: format.unwrap_or(LogFormat::Json),
            level: level.unwrap_or(LevelFilter::INFO),
        }
    }
}

fn listen(reader: &mut Reader<'_>, section: &'static str, port: u16) -> SocketAddr {
    let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let instead = format!("an address and port such as {loopback}");
    let listen = reader.text(section, "listen", &instead, |text| text.parse().ok());
    listen.unwrap_or(loopback)
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

fn ms(set: Option<Duration>, default_ms: u64) -> Duration {
    set.unwrap_or_else(|| Duration::from_millis(default_ms))
}

fn size(set: Option<u32>, default: usize) -> usize {
    set.and_then(|set| usize::try_from(set).ok())
        .unwrap_or(default)
}
