//! `spendcap backup`: a copy of a SQLite ledger, made while `serve` uses it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::settings::SettingsArgs;
use crate::config::LedgerUrl;
use crate::ledger::Ledger;

/// Copy a SQLite ledger to a file, also while `serve` uses it
///
/// The file must not exist. `serve` takes it for the ledger only with --restored. PostgreSQL has its own
/// backups.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Where the copy goes
    file: PathBuf,
}

/// Needs the ledger's URL and no secret besides.
pub(super) async fn run(args: &BackupArgs) -> anyhow::Result<()> {
    let url = args.settings.without_secrets()?.ledger.url;
    let LedgerUrl::Sqlite(ledger) = &url else {
        anyhow::bail!("{url} is PostgreSQL: back it up as any other, such as with pg_basebackup");
    };
    Ledger::backup_sqlite(ledger, &args.file).await?;
    let copy = args.file.display();
    writeln!(io::stdout().lock(), "{url} is copied to {copy}")?;
    Ok(())
}
