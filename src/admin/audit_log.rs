//! `/v1/audit_log`: who did what, each entry chained to the one before.

use std::fmt::Write as _;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use super::error::AdminError;
use super::list::List;
use super::query::Query;
use crate::ledger::AuditEntry;

const URL: &str = "/v1/audit_log";

/// One thing that was done. The hash is SHA-256 over the previous hash, `created_ms`, and actor, action,
/// subject, reason and detail, each fenced by its length in 8 bytes: a changed or missing entry shows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct AuditObject {
    /// Its id.
    #[schema(example = "aud_06f3k8w2qz1ab")]
    id: String,
    /// Always `audit_entry`.
    #[schema(example = "audit_entry")]
    object: &'static str,
    /// When, in unix seconds.
    created: i64,
    /// The same in milliseconds, as it was hashed.
    created_ms: i64,
    /// The name of the admin token.
    actor: String,
    /// What was done.
    #[schema(example = "vault_key.revoke")]
    action: String,
    /// The id of what it was done to.
    subject: String,
    /// Why.
    reason: String,
    /// What changed, in words.
    detail: String,
    /// The hash of the entry before, in hex.
    previous_hash: String,
    /// The hash of this entry, in hex.
    hash: String,
}

impl AuditObject {
    fn of(entry: &AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            object: "audit_entry",
            created: entry.at.unix_seconds(),
            created_ms: entry.at.0,
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            reason: entry.reason.clone(),
            detail: entry.detail.clone(),
            previous_hash: hex(&entry.previous_hash),
            hash: hex(&entry.hash),
        }
    }
}

/// Lists what operators did, newest first.
#[utoipa::path(
    get, path = "/v1/audit_log", operation_id = "list_audit_log", tag = "Audit log",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 100, 10 by default."),
        ("starting_after" = Option<String>, Query, description = "The last id of the page before."),
    ),
    responses((status = 200, body = List<AuditObject>)),
)]
pub(super) async fn list(
    State(state): State<AdminState>,
    query: Query,
) -> Result<Json<List<AuditObject>>, AdminError> {
    let page = query.only(&["limit", "starting_after"])?.page("aud_")?;
    let found = state.ledger.reads().audit_log(&page).await?;
    let data = found.data.iter().map(AuditObject::of).collect();
    Ok(Json(List::new(URL, data, found.has_more)))
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
}
