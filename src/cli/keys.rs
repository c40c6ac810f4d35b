//! `spendcap keys`: issue, list, show, raise, revoke and rotate vault keys over the admin API.

mod issue;
mod show;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::admin_client::{AdminArgs, encoded, with_query};
use super::table;

/// Issue and manage vault keys
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    Issue(Box<issue::IssueArgs>),
    List(ListArgs),
    Show(ShowArgs),
    Raise(RaiseArgs),
    Revoke(RevokeArgs),
    Rotate(RotateArgs),
}

/// List vault keys, newest first
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only keys of this billing period
    #[arg(long, value_name = "NAME")]
    period: Option<String>,
    /// Only keys of this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// How many, 1 to 100
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// The last id of the page before
    #[arg(long, value_name = "ID")]
    starting_after: Option<String>,
}

impl PageArgs {
    /// The path of that page of the list, with `filters`.
    pub(super) fn path(&self, path: &str, filters: &[(&str, Option<&str>)]) -> String {
        let limit = self.limit.map(|limit| limit.to_string());
        let mut filters = filters.to_vec();
        filters.push(("limit", limit.as_deref()));
        filters.push(("starting_after", self.starting_after.as_deref()));
        with_query(path, &filters)
    }
}

/// Show a vault key and what is left of its caps
#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The vault key, vk_…
    id: String,
}

/// Raise or lower a vault key's expected totals, or resume a stopped key
#[derive(Debug, Args)]
struct RaiseArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The vault key, vk_…
    id: String,
    #[command(flatten)]
    expected: issue::ExpectedArgs,
    /// The factor between expected total and cap, such as 1.10
    #[arg(long, value_name = "DECIMAL")]
    headroom: Option<String>,
    /// Lift the stop that an excess put on the key
    #[arg(long)]
    resume: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// End a vault key for good
#[derive(Debug, Args)]
struct RevokeArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The vault key, vk_…
    id: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Give a vault key a new secret
#[derive(Debug, Args)]
struct RotateArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The vault key, vk_…
    id: String,
    /// How long the old secret still works: 0 to 604800, an hour by default
    #[arg(long, value_name = "SECONDS")]
    grace_seconds: Option<u32>,
}

pub(super) async fn run(args: KeysArgs) -> anyhow::Result<()> {
    match args.command {
        KeysCommand::Issue(args) => issue::run(&args).await,
        KeysCommand::List(args) => list(&args).await,
        KeysCommand::Show(args) => {
            let key = args.admin.client()?.get(&path(&args.id, "")).await?;
            table::print(&key, args.admin.json, show::key)
        }
        KeysCommand::Raise(args) => raise(&args).await,
        KeysCommand::Revoke(args) => {
            let body = json!({"reason": args.reason});
            let path = path(&args.id, "/revoke");
            let key = args.admin.client()?.post(&path, &body).await?;
            table::print(&key, args.admin.json, show::key)
        }
        KeysCommand::Rotate(args) => rotate(&args).await,
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let filters = [
        ("billing_period", args.period.as_deref()),
        ("namespace", args.namespace.as_deref()),
    ];
    let path = args.page.path("/v1/vault_keys", &filters);
    let keys = args.admin.client()?.get(&path).await?;
    table::print(&keys, args.admin.json, show::list)
}

async fn raise(args: &RaiseArgs) -> anyhow::Result<()> {
    let mut body = Map::new();
    args.expected.write(&mut body)?;
    if let Some(headroom) = &args.headroom {
        body.insert("headroom".to_owned(), json!(headroom));
    }
    if args.resume {
        body.insert("resume".to_owned(), json!(true));
    }
    body.insert("reason".to_owned(), json!(args.reason));
    let client = args.admin.client()?;
    let key = client
        .post(&path(&args.id, ""), &Value::Object(body))
        .await?;
    table::print(&key, args.admin.json, show::key)
}

async fn rotate(args: &RotateArgs) -> anyhow::Result<()> {
    let body = args.grace_seconds.map_or_else(
        || json!({}),
        |grace_seconds| json!({"grace_seconds": grace_seconds}),
    );
    let client = args.admin.client()?;
    let key = client.post(&path(&args.id, "/rotate"), &body).await?;
    table::print(&key, args.admin.json, show::key_with_secret)
}

fn path(id: &str, action: &str) -> String {
    format!("/v1/vault_keys/{}{action}", encoded(id))
}
