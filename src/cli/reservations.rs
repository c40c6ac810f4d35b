//! `spendcap reservations`: list them, and resolve what nobody knows, over the admin API.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::admin_client::{AdminArgs, encoded};
use super::keys::PageArgs;
use super::table::{self, amount, of_list, of_object, text, time};

/// List reservations, and resolve those whose outcome is unknown
#[derive(Debug, Args)]
pub(super) struct ReservationsArgs {
    #[command(subcommand)]
    command: ReservationsCommand,
}

#[derive(Debug, Subcommand)]
enum ReservationsCommand {
    List(ListArgs),
    Resolve(ResolveArgs),
}

/// List reservations, newest first
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only those under this vault key
    #[arg(long, value_name = "ID")]
    vault_key: Option<String>,
    /// Only those in this state, such as held
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only those of this customer
    #[arg(long, value_name = "ID")]
    customer: Option<String>,
    /// Only those of this billing period
    #[arg(long, value_name = "NAME")]
    period: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Say what became of a reservation, on evidence from Stripe
#[derive(Debug, Args)]
pub(super) struct ResolveArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The reservation, rsv_…
    id: String,
    /// settled: the money moved; released: it did not, and will not
    #[arg(long, value_name = "STATE")]
    state: String,
    /// How much moved, in minor units; with settled
    #[arg(long, value_name = "MINOR")]
    amount: Option<i64>,
    /// The Stripe object that shows it; with settled
    #[arg(long, value_name = "ID")]
    object_id: Option<String>,
    /// Do not read the object first: take your word for it
    #[arg(long)]
    unread: bool,
    /// How many sends it had when you looked: refused where it was sent again since
    #[arg(long, value_name = "COUNT")]
    sends: Option<u32>,
    /// Why, and on what evidence, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) async fn run(args: ReservationsArgs) -> anyhow::Result<()> {
    match args.command {
        ReservationsCommand::List(args) => list(&args).await,
        ReservationsCommand::Resolve(args) => resolve(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let filters = [
        ("vault_key", args.vault_key.as_deref()),
        ("state", args.state.as_deref()),
        ("customer", args.customer.as_deref()),
        ("billing_period", args.period.as_deref()),
    ];
    let path = args.page.path("/v1/reservations", &filters);
    let rows = args.admin.client()?.get(&path).await?;
    let header = [
        "ID", "STATE", "CUSTOMER", "AMOUNT", "OBJECT", "SENDS", "CREATED",
    ];
    table::print(&rows, args.admin.json, |rows| {
        of_list(rows, &header, |row| {
            vec![
                text(&row["id"]),
                text(&row["state"]),
                text(&row["customer"]),
                amount(&row["amount"], &row["currency"]),
                text(&row["object_id"]),
                text(&row["sends"]),
                time(&row["created"]),
            ]
        })
    })
}

pub(super) async fn resolve(args: &ResolveArgs) -> anyhow::Result<()> {
    let mut body = json!({"state": args.state, "reason": args.reason});
    if let Some(amount) = args.amount {
        body["amount"] = json!(amount);
    }
    if let Some(object_id) = &args.object_id {
        body["object_id"] = json!(object_id);
    }
    if args.unread {
        body["unread"] = json!(true);
    }
    if let Some(sends) = args.sends {
        body["sends"] = json!(sends);
    }
    let path = format!("/v1/reservations/{}/resolve", encoded(&args.id));
    let row = args.admin.client()?.post(&path, &body).await?;
    table::print(&row, args.admin.json, reservation)
}

fn reservation(row: &Value) -> String {
    of_object(vec![
        ("id", text(&row["id"])),
        ("state", text(&row["state"])),
        ("vault key", text(&row["vault_key"])),
        ("customer", text(&row["customer"])),
        ("amount", amount(&row["amount"], &row["currency"])),
        (
            "reserved",
            amount(&row["amount_reserved"], &row["currency"]),
        ),
        ("settled", amount(&row["amount_settled"], &row["currency"])),
        (
            "refunded",
            amount(&row["amount_refunded"], &row["currency"]),
        ),
        ("object", text(&row["object_id"])),
        ("idempotency key", text(&row["idempotency_key"])),
        ("created", time(&row["created"])),
        ("resolved", time(&row["resolved_at"])),
    ])
}
