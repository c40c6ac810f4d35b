//! `spendcap demo`: three replicas of a billing job race over 500 customers, straight to Stripe and
//! through spendcap. A real sandbox, a real proxy on a real SQLite ledger, real sockets; what is counted
//! is the sandbox's own books, not the proxy's.

mod issue;
mod race;
mod report;
mod world;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use race::{Race, Tally};
use report::Row;
use world::World;

/// The billing run of the demo.
const CUSTOMERS: usize = 500;
const REPLICAS: usize = 3;
/// $99.00.
const AMOUNT_MINOR: i64 = 9_900;
/// 500 × $99.00; the cap is ten percent above it.
const EXPECTED_TOTAL_MINOR: i64 = 4_950_000;
/// Every request, every customer once, as many as the cap of $54,450 holds.
const EXPECTED_CHARGES: [usize; 3] = [1_500, 500, 550];

/// Race three replicas of a billing job and count who gets charged
///
/// Everything runs in this process, on free ports of this machine: a sandbox Stripe, spendcap in
/// front of it, a ledger in a temporary directory. Exits with 1 where the sandbox counted something
/// else than it should.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct DemoArgs {
    /// Exit after the table instead of staying up for curl
    #[arg(long)]
    once: bool,
}

/// Plays the race three ways, prints the table, and stays up unless told otherwise.
pub(super) async fn run(args: &DemoArgs) -> anyhow::Result<()> {
    // From the start, so that a signal during the race is not lost.
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    report::say(&format!(
        "Three replicas of a billing job charge the same {CUSTOMERS} customers $99 each for 2026-08,\n\
         at the same moment, each request under a fresh Idempotency-Key.\n"
    ));
    let replay = tokio::select! {
        raced = race(args) => raced?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    if !args.once {
        report::curl_lines(&replay);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    replay.stop().await
}

/// The races and their table; returns the world in which the one through spendcap took place.
async fn race(args: &DemoArgs) -> anyhow::Result<World> {
    let straight = race_straight()
        .await
        .context("the race straight to the sandbox failed")?;
    let replay = World::start("replay").await?;
    if !args.once {
        report::metrics_line(&replay);
    }
    let replayed = race_through(&replay, "through spendcap").await?;
    let flag = World::start("flag").await?;
    let flagged = race_through(&flag, "with on_duplicate = flag").await?;
    flag.stop().await?;
    let rows = [straight, replayed, flagged];
    report::table(&rows);
    for (row, expected) in rows.iter().zip(EXPECTED_CHARGES) {
        row.expect(expected)?;
    }
    Ok(replay)
}

async fn race_straight() -> anyhow::Result<Row> {
    let sandbox = world::sandbox()?;
    let race = Race {
        title: "straight to Stripe",
        base_url: sandbox.base_url(),
        bearer: crate::sandbox::cli::SECRET_KEY_DEFAULT.to_owned(),
    };
    let tally = race.run().await?;
    let row = Row::counted(race.title, &sandbox, tally);
    sandbox.shutdown().await;
    Ok(row)
}

async fn race_through(world: &World, title: &'static str) -> anyhow::Result<Row> {
    let race = Race {
        title,
        base_url: world.proxy_url(),
        bearer: world.vault_key().to_owned(),
    };
    let tally: Tally = race.run().await?;
    Ok(Row::counted(title, world.sandbox(), tally))
}
