//! Settings: as written in `proxy.toml` and the environment, then checked.
//!
//! Every setting is a key of a section, or the variable `SPENDCAP_SECTION_KEY`, which wins. An empty
//! variable counts as unset. Unknown keys are refused, and all mistakes are reported together, each
//! with the line or variable it stands in. Secrets come from the environment or a file of their own,
//! never from `proxy.toml`, and no `Debug` or message here shows one.

mod environment;
mod mistake;
mod reader;
mod secret_file;
mod secrets;
mod sections;
mod tls;
mod url;
mod written;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use environment::Environment;
pub use mistake::{Mistake, Mistakes, Place};
pub use secret_file::{SecretFile, SecretFileError};
pub use secrets::{AdminRole, AdminToken, AdminTokens, SecretWatch, Secrets, StripeKey};
pub use sections::{
    AdminConfig, BreakerConfig, DefaultsConfig, LedgerConfig, LogConfig, LogFormat, ProxyConfig,
    ReconcileConfig, TlsFiles, UpstreamConfig,
};
pub use tls::{TlsFileError, read_roots, read_server_identity};
pub use url::{BaseUrl, LedgerUrl, PostgresUrl};

use reader::Reader;

/// Every setting that is not a secret, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data plane.
    pub proxy: ProxyConfig,
    /// The admin API.
    pub admin: AdminConfig,
    /// Stripe, or what stands in for it.
    pub upstream: UpstreamConfig,
    /// Where reservations are kept.
    pub ledger: LedgerConfig,
    /// What a vault key gets when its creation does not say.
    pub defaults: DefaultsConfig,
    /// When money stops going to a Stripe that does not answer.
    pub breaker: BreakerConfig,
    /// How it is found out what became of what is held or open.
    pub reconcile: ReconcileConfig,
    /// What is logged, and how.
    pub log: LogConfig,
}

/// All that `serve` needs: settings, secrets, and the watch that re-reads the secrets' files.
#[derive(Debug)]
pub struct Settings {
    /// Every setting that is not a secret.
    pub config: Config,
    /// The real key and the admin tokens, as they are now.
    pub secrets: Secrets,
    /// Tells when they change.
    pub watch: SecretWatch,
}

impl Config {
    /// Reads `file` (the defaults where there is none) under `environment`.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, Mistakes> {
        let mut reader = Reader::open(file, environment);
        let config = Self::read(&mut reader);
        reader.finish().or(config)
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let config = Self {
            proxy: ProxyConfig::read(reader),
            admin: AdminConfig::read(reader),
            upstream: UpstreamConfig::read(reader),
            ledger: LedgerConfig::read(reader),
            defaults: DefaultsConfig::read(reader),
            breaker: BreakerConfig::read(reader),
            reconcile: ReconcileConfig::read(reader),
            log: LogConfig::read(reader),
        };
        if config.proxy.listen == config.admin.listen && config.proxy.listen.port() != 0 {
            reader.refuse("admin", "listen", "another address than proxy.listen");
        }
        config
    }
}

impl Settings {
    /// Reads settings and secrets, and reports the mistakes of both.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, Mistakes> {
        let mut reader = Reader::open(file, environment);
        let config = Config::read(&mut reader);
        let (watch, secrets) = SecretWatch::start(config.admin.tokens_file.clone(), environment);
        let clear_text = !config.upstream.base_url.is_confidential();
        if clear_text && secrets.as_ref().is_ok_and(|s| s.stripe_key.livemode()) {
            let instead = "an https URL: a live key never travels in clear text";
            reader.refuse("upstream", "base_url", instead);
        }
        let mistakes = reader.finish();
        match secrets {
            Ok(secrets) => mistakes.or(Self {
                config,
                secrets,
                watch,
            }),
            Err(more) => Err(mistakes.and(more)),
        }
    }
}
