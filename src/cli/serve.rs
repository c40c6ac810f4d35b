//! `spendcap serve`: both listeners, until SIGTERM.

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::settings::{SECRETS_HELP, SettingsArgs};
use crate::app::App;
use crate::clock::Clock;
use crate::telemetry::logging;

/// Run the proxy until SIGTERM
#[derive(Args, Debug)]
#[command(after_help = SECRETS_HELP)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The ledger was restored from a backup: take no money until `spendcap reconcile` has read Stripe's feed.
    /// For one start
    #[arg(long)]
    restored: bool,
}

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends the process at once.
pub(super) async fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let settings = args.settings.load()?;
    logging::init(&settings.config.log)?;
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    let app = if args.restored {
        App::start_restored(settings, Clock::system()).await?
    } else {
        App::start(settings, Clock::system()).await?
    };
    tracing::info!(proxy = %app.proxy_addr(), admin = %app.admin_addr(), "Serving");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tokio::select! {
        drained = app.drain() => drained,
        _ = terminate.recv() => anyhow::bail!("stopped before everything was finished"),
        _ = interrupt.recv() => anyhow::bail!("stopped before everything was finished"),
    }
}
