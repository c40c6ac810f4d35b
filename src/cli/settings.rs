//! Where a command finds its settings.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Environment, Settings};

/// The settings of this command.
#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    /// The settings' file; without it, the defaults and the environment
    #[arg(long, value_name = "FILE", env = "SPENDCAP_CONFIG")]
    config: Option<PathBuf>,
}

impl SettingsArgs {
    /// Settings and secrets, for commands that talk to Stripe.
    pub(super) fn load(&self) -> anyhow::Result<Settings> {
        Settings::load(self.config.as_deref(), &Environment::of_process())
            .map_err(|mistakes| anyhow::anyhow!("the settings cannot be used:\n{mistakes}"))
    }
}
