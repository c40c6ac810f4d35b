//! Where a command finds its settings.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, Environment, Mistakes, Settings};

/// Below the help of commands that need secrets.
pub(super) const SECRETS_HELP: &str = "\
Secrets, from the environment or from a file that a variable names:
  STRIPE_SECRET_KEY     or  STRIPE_SECRET_KEY_FILE     the real Stripe key
  SPENDCAP_ADMIN_TOKEN  or  SPENDCAP_ADMIN_TOKEN_FILE  a token for the admin API
  SPENDCAP_LEDGER_URL   or  SPENDCAP_LEDGER_URL_FILE   a ledger URL with a password";

/// The settings of this command.
#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    /// The settings' file; without it, the defaults and the environment
    #[arg(
        long,
        value_name = "FILE",
        env = "SPENDCAP_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
}

impl SettingsArgs {
    /// Settings and secrets, for commands that talk to Stripe.
    pub(super) fn load(&self) -> anyhow::Result<Settings> {
        Settings::load(self.config.as_deref(), &Environment::of_process())
            .map_err(|mistakes| unusable(&mistakes))
    }

    /// Settings alone, for commands that need no secret.
    pub(super) fn without_secrets(&self) -> anyhow::Result<Config> {
        Config::load(self.config.as_deref(), &Environment::of_process())
            .map_err(|mistakes| unusable(&mistakes))
    }
}

fn unusable(mistakes: &Mistakes) -> anyhow::Error {
    anyhow::anyhow!("the settings cannot be used:\n{mistakes}")
}
