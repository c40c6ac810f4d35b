//! `spendcap migrate`: the ledger's schema, brought up to date without serving.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Args;
use secrecy::SecretString;

use super::settings::SettingsArgs;
use crate::config::LedgerUrl;
use crate::ledger::Ledger;

/// Create the ledger's schema, or bring it up to date; `serve` does it too
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Needs the ledger's URL and no secret besides.
pub(super) async fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    let url = args.settings.without_secrets()?.ledger.url;
    let migrated = match &url {
        LedgerUrl::Sqlite(file) => Ledger::migrate_sqlite(file).await,
        LedgerUrl::Postgres(url) => {
            Ledger::migrate_postgres(&SecretString::from(url.expose())).await
        }
    };
    let version = migrated.with_context(|| format!("{url} was not migrated"))?;
    writeln!(io::stdout().lock(), "{url} has schema version {version}")?;
    Ok(())
}
