//! `/v1/flags`: what was observed, and who has seen it.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use super::auth::Actor;
use super::command::{Answer, Command, carry_out};
use super::error::AdminError;
use super::json::Fields;
use super::list::List;
use super::path::PathId;
use super::query::Query;
use crate::domain::flag::FlagKind;
use crate::domain::id::FlagId;
use crate::ledger::FlagFilter;
use crate::ledger::command::{Control, Subject};
use crate::ledger::flag::Flag;

const URL: &str = "/v1/flags";

/// A recorded observation: one row per reservation and kind, with a count. Times are unix seconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Flag)]
pub(super) struct FlagObject {
    /// Its id.
    #[schema(example = "flag_06f3k8w2qz1ab")]
    id: String,
    /// Always `flag`.
    #[schema(example = "flag")]
    object: &'static str,
    /// What was observed.
    #[schema(example = "duplicate_customer_period")]
    kind: &'static str,
    /// How often.
    count: i64,
    /// The reservation it is about; `null` where it is about an object that none knows.
    reservation: Option<String>,
    /// The vault key of that reservation.
    vault_key: Option<String>,
    /// The Stripe object, where no reservation knows it.
    #[schema(example = "ch_3NqK2e")]
    object_id: Option<String>,
    /// The connected account of that object; `null` for the platform's own.
    account: Option<String>,
    /// The customer of that reservation or object.
    customer: Option<String>,
    /// Somebody has seen it.
    acknowledged: bool,
    /// The name of that token.
    acknowledged_by: Option<String>,
    /// When it was first observed.
    created: i64,
    /// When it was last observed.
    last_seen_at: i64,
}

impl FlagObject {
    fn of(flag: &Flag) -> Self {
        Self {
            id: flag.id.to_string(),
            object: "flag",
            kind: flag.kind.as_str(),
            count: flag.count,
            reservation: flag.reservation.map(|id| id.to_string()),
            vault_key: flag.vault_key.as_ref().map(ToString::to_string),
            object_id: flag.object_id.clone(),
            account: (!flag.account.is_empty()).then(|| flag.account.clone()),
            customer: flag.customer.clone(),
            acknowledged: flag.acknowledged_by.is_some(),
            acknowledged_by: flag.acknowledged_by.clone(),
            created: flag.first_seen_at.unix_seconds(),
            last_seen_at: flag.last_seen_at.unix_seconds(),
        }
    }
}

/// Lists flags, newest first.
#[utoipa::path(
    get, path = "/v1/flags", operation_id = "list_flags", tag = "Flags",
    params(
        ("acknowledged" = Option<bool>, Query, description = "`false` for those nobody has seen."),
        ("kind" = Option<String>, Query, description = "Only of this kind."),
        ("vault_key" = Option<String>, Query, description = "Only those under this vault key."),
        ("limit" = Option<u32>, Query, description = "1 to 100, 10 by default."),
        ("starting_after" = Option<String>, Query, description = "The last id of the page before."),
    ),
    responses((status = 200, body = List<FlagObject>)),
)]
pub(super) async fn list(
    State(state): State<AdminState>,
    query: Query,
) -> Result<Json<List<FlagObject>>, AdminError> {
    let mut query = query.only(&[
        "acknowledged",
        "kind",
        "vault_key",
        "limit",
        "starting_after",
    ])?;
    let kinds = FlagKind::ALL.map(FlagKind::as_str);
    let filter = FlagFilter {
        acknowledged: query.choice("acknowledged", |name| name.parse().ok(), &["true", "false"])?,
        kind: query.choice("kind", FlagKind::parse, &kinds)?,
        vault_key: query.id("vault_key", "vk_")?,
    };
    let page = query.page("flag_")?;
    let found = state.ledger.reads().flags(&filter, &page).await?;
    let data = found.data.iter().map(FlagObject::of).collect();
    Ok(Json(List::new(URL, data, found.has_more)))
}

/// Marks a flag as seen. It stays in the list.
#[utoipa::path(
    post, path = "/v1/flags/{id}/acknowledge", operation_id = "acknowledge_flag", tag = "Flags",
    params(("id" = String, Path, description = "`flag_…`")),
    responses((status = 200, body = FlagObject)),
)]
pub(super) async fn acknowledge(
    State(state): State<AdminState>,
    actor: Actor,
    PathId(flag): PathId<FlagId>,
    command: Command,
) -> Result<Answer<FlagObject>, AdminError> {
    Fields::new(command.fields, &[])?;
    let control = Control::Acknowledge { flag };
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    let Subject::Flag(flag) = done.subject else {
        return Err(AdminError::Internal);
    };
    Ok(Answer {
        object: FlagObject::of(&flag),
        replayed: done.replayed,
    })
}
