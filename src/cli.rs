//! The `spendcap` command. Exit codes: 0 for done, 1 for failed, 2 for wrong usage.

mod admin_client;
mod backup;
mod check;
mod demo;
mod flags;
mod healthcheck;
mod held;
mod keys;
mod migrate;
mod money;
mod open_files;
mod reconcile;
mod reservations;
mod serve;
mod settings;
mod table;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

pub use open_files::raise_open_files;

use crate::sandbox;

/// A proxy in front of Stripe that makes over-charging impossible.
#[derive(Debug, Parser)]
#[command(name = "spendcap", version, after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Start with `spendcap demo`. The commands keys, reservations, held, flags and reconcile speak to the
admin API of a running `spendcap serve`.
Exit codes: 0 for done, 1 for failed, 2 for wrong usage.";

/// In the order in which somebody meets them.
#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Sandbox(sandbox::cli::SandboxArgs),
    Serve(serve::ServeArgs),
    Check(check::CheckArgs),
    Migrate(migrate::MigrateArgs),
    Backup(backup::BackupArgs),
    Healthcheck(healthcheck::HealthcheckArgs),
    Keys(keys::KeysArgs),
    Reservations(reservations::ReservationsArgs),
    Held(held::HeldArgs),
    Flags(flags::FlagsArgs),
    Reconcile(reconcile::ReconcileArgs),
}

/// Runs the command that the process was started with. Errors are printed here and nowhere else.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help goes to standard output, wrong usage to standard error; nobody may be reading.
            let _unread = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the one place that prints errors")]
            {
                eprintln!("spendcap: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the threads cannot be started")?;
    runtime.block_on(async {
        match cli.command {
            Command::Backup(args) => backup::run(&args).await,
            Command::Check(args) => check::run(&args).await,
            Command::Demo(args) => demo::run(&args).await,
            Command::Flags(args) => flags::run(args).await,
            Command::Healthcheck(args) => healthcheck::run(&args).await,
            Command::Held(args) => held::run(args).await,
            Command::Keys(args) => keys::run(args).await,
            Command::Migrate(args) => migrate::run(&args).await,
            Command::Reconcile(args) => reconcile::run(args).await,
            Command::Reservations(args) => reservations::run(args).await,
            Command::Sandbox(args) => sandbox::cli::run(args).await,
            Command::Serve(args) => serve::run(&args).await,
        }
    })
}
