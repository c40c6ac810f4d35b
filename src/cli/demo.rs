//! `spendcap demo`: three replicas of a billing job race over 500 customers, straight to Stripe and
//! through spendcap. A real sandbox, a real proxy on a real SQLite ledger, real sockets; what is counted
//! is the sandbox's own books, not the proxy's.

mod issue;
mod race;
mod report;
mod world;

use anyhow::Context as _;
use clap::Args;

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

/// Race three replicas against each other and show who gets charged.
#[derive(Args, Debug)]
pub(super) struct DemoArgs {
    /// Exit after the table instead of staying up for curl.
    #[arg(long)]
    once: bool,
}

/// Plays the race three ways, prints the table, and stays up unless told otherwise.
pub(super) async fn run(args: &DemoArgs) -> anyhow::Result<()> {
    report::say(&format!(
        "Three replicas bill the same {CUSTOMERS} customers $99 each for 2026-08 at the same moment,\n\
         each request with a fresh Idempotency-Key: {} requests in all.\n",
        CUSTOMERS * REPLICAS
    ));
    let straight = race_straight()
        .await
        .context("the race straight to the sandbox failed")?;
    let replay = World::start("replay").await?;
    let replayed = race_through(&replay, "through spendcap").await?;
    let flag = World::start("flag").await?;
    let flagged = race_through(&flag, "through spendcap, on_duplicate = \"flag\"").await?;
    flag.stop().await?;
    report::table(&[straight, replayed, flagged]);
    if args.once {
        return replay.stop().await;
    }
    report::curl_lines(&replay);
    tokio::signal::ctrl_c()
        .await
        .context("waiting for Ctrl-C failed")?;
    replay.stop().await
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
