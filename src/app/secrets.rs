//! The real key belongs to one account and mode, at start and at every reload.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::tls;
use crate::clock::Clock;
use crate::config::{AdminTokens, SecretWatch, StripeKey, UpstreamConfig};
use crate::ledger::Ledger;
use crate::proxy::{KeyOwner, Platform, Proxy, Upstream};
use crate::telemetry::metrics::Metrics;

/// How often the secrets' files are looked at.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// Checks the real key against the account and mode the ledger belongs to; the first key decides.
/// `None` while Stripe does not tell whose key it is: until then it is nobody's.
pub(super) async fn pin(
    ledger: &Ledger,
    upstream: &Upstream,
    key: &StripeKey,
) -> anyhow::Result<Option<Platform>> {
    let account = match upstream.key_owner().await {
        Ok(KeyOwner::Account(account)) => Some(account),
        Ok(KeyOwner::Nobody) => bail!("Stripe does not accept the real key (401)"),
        Ok(KeyOwner::Hidden) => {
            tracing::warn!(
                "The real key may not read its account: only live or test mode is checked"
            );
            None
        }
        Err(error) => {
            let source = error.source().map(ToString::to_string);
            tracing::warn!(
                error = %error,
                source,
                "Stripe did not tell whose key the real key is: it is not used until then"
            );
            ledger.pin(None, key.livemode()).await?;
            return Ok(None);
        }
    };
    let livemode = key.livemode();
    let pinned = ledger.pin(account.as_deref(), livemode).await;
    let account = pinned.context("the real key does not belong to this ledger")?;
    Ok(Some(Platform { account, livemode }))
}

/// Re-reads the secrets' files while the process runs.
pub(super) struct Reload {
    pub(super) watch: SecretWatch,
    /// A real key of which Stripe has not told whose it is: asked again at every look.
    pub(super) untold: Option<StripeKey>,
    pub(super) tokens: watch::Sender<AdminTokens>,
    pub(super) proxy: Arc<Proxy>,
    pub(super) ledger: Ledger,
    pub(super) upstream: UpstreamConfig,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
}

impl Reload {
    /// Runs until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(POLL_EVERY);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = stop.cancelled() => return,
            }
            match self.watch.poll() {
                Ok(None) => {}
                Ok(Some(secrets)) => {
                    self.tokens.send_replace(secrets.admin_tokens);
                    self.untold = Some(secrets.stripe_key);
                }
                Err(mistakes) => tracing::error!(%mistakes, "The secrets cannot be read again"),
            }
            if let Some(key) = self.untold.take() {
                match self.accept(&key).await {
                    Ok(true) => tracing::info!("The real key is in use"),
                    Ok(false) => self.untold = Some(key),
                    Err(error) => {
                        let error = format!("{error:#}");
                        tracing::error!(error, "The real key is refused");
                    }
                }
            }
        }
    }

    /// False while Stripe does not tell whose key it is: the old one, if any, stays in use.
    async fn accept(&self, key: &StripeKey) -> anyhow::Result<bool> {
        let upstream = tls::upstream(&self.upstream, self.clock.clone(), key, &self.metrics)?;
        let Some(platform) = pin(&self.ledger, &upstream, key).await? else {
            return Ok(false);
        };
        self.proxy.replace_real_key(tls::real_key(key));
        self.proxy.confirm(platform);
        Ok(true)
    }
}
