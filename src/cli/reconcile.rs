//! `spendcap reconcile`: after lost commits, over the admin API of a running `serve`.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::admin_client::AdminArgs;
use super::table::{self, amount, of_object, text, time};

/// Read what Stripe made since a time, and take money again after lost commits
///
/// Every charge since then that no reservation knows gets one, under the vault key that can have made it.
/// Running it again changes nothing more. Exits with 1 while money is refused.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReconcileArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Where the gap begins, such as 2026-09-01T00:00:00Z; earlier is safe
    #[arg(long, value_name = "TIME")]
    since: String,
    /// Whose a charge is that may be of several vault keys
    #[arg(long, value_name = "ID")]
    vault_key: Option<String>,
    /// Take money again although some charges have no reservation
    #[arg(long, requires = "reason")]
    leave_unattributed: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", requires = "leave_unattributed")]
    reason: Option<String>,
}

pub(super) async fn run(args: ReconcileArgs) -> anyhow::Result<()> {
    let mut body = json!({"since": args.since});
    if let Some(vault_key) = &args.vault_key {
        body["vault_key"] = json!(vault_key);
    }
    if let Some(reason) = &args.reason {
        body["leave_unattributed"] = json!(args.leave_unattributed);
        body["reason"] = json!(reason);
    }
    let client = args.admin.client()?.patient();
    let done = client.post("/v1/reconcile", &body).await?;
    table::print(&done, args.admin.json, report)?;
    match done["status"].as_str() {
        Some("ended" | "nothing_lost") => Ok(()),
        Some("unattributed") => bail!(
            "money is refused: name the charges' vault key with --vault-key, or leave them without a \
             reservation with --leave-unattributed --reason"
        ),
        Some("too_early") => bail!(
            "money is refused: requests that left before may still become charges; run it again after {}",
            time(&done["retry_at"])
        ),
        _ => bail!("money is refused: more was lost meanwhile; run it again"),
    }
}

fn report(done: &Value) -> String {
    let mut told = of_object(vec![
        ("status", text(&done["status"])),
        ("since", time(&done["since"])),
        ("until", time(&done["until"])),
        ("charges", text(&done["charges"])),
        ("known", text(&done["known"])),
        ("settled", text(&done["settled"])),
        ("rebuilt", text(&done["rebuilt"])),
        ("passed over", text(&done["passed_over"])),
        ("unattributed", text(&done["unattributed_count"])),
    ]);
    let charges = done["unattributed"].as_array();
    let charges = charges.map(Vec::as_slice).unwrap_or_default();
    if !charges.is_empty() {
        let mut table = table::plain();
        table.set_header(["CHARGE", "CUSTOMER", "AMOUNT", "CREATED", "MAY BE OF"]);
        table.add_rows(charges.iter().map(|charge| {
            let candidates = charge["candidates"].as_array();
            let candidates = candidates.map(Vec::as_slice).unwrap_or_default();
            let candidates: Vec<String> = candidates.iter().map(text).collect();
            [
                text(&charge["charge"]),
                text(&charge["customer"]),
                amount(&charge["amount"], &charge["currency"]),
                time(&charge["created"]),
                candidates.join(", "),
            ]
        }));
        told.push_str("\n\n");
        told.push_str(&table.trim_fmt());
    }
    told
}
