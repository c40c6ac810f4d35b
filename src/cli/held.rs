//! `spendcap held`: what nobody knows yet, over the admin API.

use clap::{Args, Subcommand};

use super::admin_client::AdminArgs;
use super::keys::PageArgs;
use super::reservations::{self, ResolveArgs};
use super::table::{self, amount, of_list, text, time};

/// List what is held, and say what became of it
#[derive(Debug, Args)]
pub(super) struct HeldArgs {
    #[command(subcommand)]
    command: HeldCommand,
}

#[derive(Debug, Subcommand)]
enum HeldCommand {
    List(ListArgs),
    Resolve(ResolveArgs),
}

/// List reservations whose outcome is unknown, newest first, with the keys that Stripe saw
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only those under this vault key
    #[arg(long, value_name = "ID")]
    vault_key: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub(super) async fn run(args: HeldArgs) -> anyhow::Result<()> {
    match args.command {
        HeldCommand::List(args) => list(&args).await,
        HeldCommand::Resolve(args) => reservations::resolve(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let filters = [
        ("vault_key", args.vault_key.as_deref()),
        ("state", Some("held")),
    ];
    let path = args.page.path("/v1/reservations", &filters);
    let rows = args.admin.client()?.get(&path).await?;
    let header = [
        "ID",
        "CUSTOMER",
        "AMOUNT",
        "OBJECT",
        "SENDS",
        "CREATED",
        "IDEMPOTENCY KEY",
    ];
    table::print(&rows, args.admin.json, |rows| {
        of_list(rows, &header, |row| {
            vec![
                text(&row["id"]),
                text(&row["customer"]),
                amount(&row["amount"], &row["currency"]),
                text(&row["object_id"]),
                text(&row["sends"]),
                time(&row["created"]),
                text(&row["idempotency_key"]),
            ]
        })
    })
}
