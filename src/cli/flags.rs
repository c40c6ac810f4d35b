//! `spendcap flags`: list what was observed, and mark it as seen, over the admin API.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::admin_client::{AdminArgs, encoded};
use super::keys::PageArgs;
use super::table::{self, of_list, of_object, text, time};

/// List flags, and mark them as seen
#[derive(Debug, Args)]
pub(super) struct FlagsArgs {
    #[command(subcommand)]
    command: FlagsCommand,
}

#[derive(Debug, Subcommand)]
enum FlagsCommand {
    List(ListArgs),
    Acknowledge(AcknowledgeArgs),
}

/// List flags, newest first
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Those that somebody has seen, or with false those that nobody has
    #[arg(long, value_name = "TRUE|FALSE")]
    acknowledged: Option<bool>,
    /// Only of this kind
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Only those under this vault key
    #[arg(long, value_name = "ID")]
    vault_key: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Mark a flag as seen
#[derive(Debug, Args)]
struct AcknowledgeArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The flag, flag_…
    id: String,
}

pub(super) async fn run(args: FlagsArgs) -> anyhow::Result<()> {
    match args.command {
        FlagsCommand::List(args) => list(&args).await,
        FlagsCommand::Acknowledge(args) => {
            let path = format!("/v1/flags/{}/acknowledge", encoded(&args.id));
            let flag = args.admin.client()?.post(&path, &json!({})).await?;
            table::print(&flag, args.admin.json, flag_table)
        }
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let acknowledged = args.acknowledged.map(|seen| seen.to_string());
    let filters = [
        ("acknowledged", acknowledged.as_deref()),
        ("kind", args.kind.as_deref()),
        ("vault_key", args.vault_key.as_deref()),
    ];
    let path = args.page.path("/v1/flags", &filters);
    let flags = args.admin.client()?.get(&path).await?;
    let header = [
        "ID",
        "KIND",
        "COUNT",
        "RESERVATION",
        "CUSTOMER",
        "SEEN BY",
        "LAST",
    ];
    table::print(&flags, args.admin.json, |flags| {
        of_list(flags, &header, |flag| {
            vec![
                text(&flag["id"]),
                text(&flag["kind"]),
                text(&flag["count"]),
                text(about(flag)),
                text(&flag["customer"]),
                text(&flag["acknowledged_by"]),
                time(&flag["last_seen_at"]),
            ]
        })
    })
}

/// The reservation, or the charge that none knows.
fn about(flag: &Value) -> &Value {
    match &flag["reservation"] {
        Value::Null => &flag["object_id"],
        reservation => reservation,
    }
}

fn flag_table(flag: &Value) -> String {
    of_object(vec![
        ("id", text(&flag["id"])),
        ("kind", text(&flag["kind"])),
        ("count", text(&flag["count"])),
        ("reservation", text(&flag["reservation"])),
        ("object", text(&flag["object_id"])),
        ("vault key", text(&flag["vault_key"])),
        ("customer", text(&flag["customer"])),
        ("seen by", text(&flag["acknowledged_by"])),
        ("first", time(&flag["created"])),
        ("last", time(&flag["last_seen_at"])),
    ])
}
