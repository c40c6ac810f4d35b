//! `/v1/vault_keys`: issue, list, look at, raise or lower, revoke, rotate.

mod change;
mod create;
mod object;

use axum::Json;
use axum::extract::State;
use uuid::Uuid;

use super::AdminState;
use super::auth::Actor;
use super::command::{Answer, Command, carry_out};
use super::error::AdminError;
use super::list::List;
use super::path::{PathId, missing};
use super::query::Query;
use crate::domain::id::VaultKeyId;
use crate::domain::secret::VaultSecret;
use crate::ledger::VaultKeyFilter;
use crate::ledger::command::{Control, ControlDone, Subject};

pub(super) use change::{VaultKeyRevoke, VaultKeyRotate, VaultKeyUpdate};
pub(super) use create::VaultKeyCreate;
pub(super) use object::VaultKeyObject;

const URL: &str = "/v1/vault_keys";

/// Issues a vault key. The answer carries the secret, once.
#[utoipa::path(
    post, path = "/v1/vault_keys", operation_id = "create_vault_key", tag = "Vault keys",
    request_body = VaultKeyCreate,
    responses((status = 200, body = VaultKeyObject)),
)]
pub(super) async fn create(
    State(state): State<AdminState>,
    actor: Actor,
    command: Command,
) -> Result<Answer<VaultKeyObject>, AdminError> {
    let now = state.clock.now();
    let asked = VaultKeyCreate::read(command.fields, now)?;
    let secret = new_secret()?;
    let id = new_id()?;
    let key = asked.into_key(id, secret.hint(), &state.defaults, now)?;
    let secret_hash = secret.hash();
    let key = Box::new(key);
    let control = Control::CreateKey { key, secret_hash };
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    answer(&state, done, Some(&secret))
}

/// Lists vault keys, newest first.
#[utoipa::path(
    get, path = "/v1/vault_keys", operation_id = "list_vault_keys", tag = "Vault keys",
    params(
        ("billing_period" = Option<String>, Query, description = "Only keys of this period."),
        ("namespace" = Option<String>, Query, description = "Only keys of this namespace."),
        ("limit" = Option<u32>, Query, description = "1 to 100, 10 by default."),
        ("starting_after" = Option<String>, Query, description = "The last id of the page before."),
    ),
    responses((status = 200, body = List<VaultKeyObject>)),
)]
pub(super) async fn list(
    State(state): State<AdminState>,
    query: Query,
) -> Result<Json<List<VaultKeyObject>>, AdminError> {
    let mut query = query.only(&["billing_period", "namespace", "limit", "starting_after"])?;
    let filter = VaultKeyFilter {
        billing_period: query.label("billing_period")?,
        namespace: query.label("namespace")?,
    };
    let page = query.page("vk_")?;
    let found = state.ledger.reads().vault_keys(&filter, &page).await?;
    let now = state.clock.now();
    let data = found.data.iter().map(|key| VaultKeyObject::of(key, now));
    Ok(Json(List::new(URL, data.collect(), found.has_more)))
}

/// Shows one vault key and what is left of its caps.
#[utoipa::path(
    get, path = "/v1/vault_keys/{id}", operation_id = "retrieve_vault_key", tag = "Vault keys",
    params(("id" = String, Path, description = "`vk_…`")),
    responses((status = 200, body = VaultKeyObject)),
)]
pub(super) async fn retrieve(
    State(state): State<AdminState>,
    PathId(id): PathId<VaultKeyId>,
    query: Query,
) -> Result<Json<VaultKeyObject>, AdminError> {
    query.only(&[])?;
    let key = state.ledger.reads().vault_key(&id).await?;
    let key = key.ok_or_else(|| missing("vault key", id.as_str()))?;
    Ok(Json(VaultKeyObject::of(&key, state.clock.now())))
}

/// Raises or lowers expected totals, changes the headroom, or resumes a stopped key. Lowering below
/// usage changes no usage; it refuses the next charge.
#[utoipa::path(
    post, path = "/v1/vault_keys/{id}", operation_id = "update_vault_key", tag = "Vault keys",
    params(("id" = String, Path, description = "`vk_…`")),
    request_body = VaultKeyUpdate,
    responses((status = 200, body = VaultKeyObject)),
)]
pub(super) async fn update(
    State(state): State<AdminState>,
    actor: Actor,
    PathId(id): PathId<VaultKeyId>,
    command: Command,
) -> Result<Answer<VaultKeyObject>, AdminError> {
    let control = VaultKeyUpdate::read(command.fields)?.into_control(id)?;
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    answer(&state, done, None)
}

/// Ends a vault key for good, on every replica at once.
#[utoipa::path(
    post, path = "/v1/vault_keys/{id}/revoke", operation_id = "revoke_vault_key", tag = "Vault keys",
    params(("id" = String, Path, description = "`vk_…`")),
    request_body = VaultKeyRevoke,
    responses((status = 200, body = VaultKeyObject)),
)]
pub(super) async fn revoke(
    State(state): State<AdminState>,
    actor: Actor,
    PathId(id): PathId<VaultKeyId>,
    command: Command,
) -> Result<Answer<VaultKeyObject>, AdminError> {
    let reason = VaultKeyRevoke::read(command.fields)?.reason;
    let control = Control::Revoke { id, reason };
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    answer(&state, done, None)
}

/// Gives a vault key a new secret; the old one works for `grace_seconds` more. The answer carries the
/// new secret, once.
#[utoipa::path(
    post, path = "/v1/vault_keys/{id}/rotate", operation_id = "rotate_vault_key", tag = "Vault keys",
    params(("id" = String, Path, description = "`vk_…`")),
    request_body = VaultKeyRotate,
    responses((status = 200, body = VaultKeyObject)),
)]
pub(super) async fn rotate(
    State(state): State<AdminState>,
    actor: Actor,
    PathId(id): PathId<VaultKeyId>,
    command: Command,
) -> Result<Answer<VaultKeyObject>, AdminError> {
    let grace_ms = VaultKeyRotate::read(command.fields)?.grace_ms();
    let secret = new_secret()?;
    let control = Control::Rotate {
        id,
        secret_hash: secret.hash(),
        secret_hint: secret.hint(),
        grace_ms,
    };
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    answer(&state, done, Some(&secret))
}

/// A replay shows no secret: the one made for this request was never stored.
fn answer(
    state: &AdminState,
    done: ControlDone,
    secret: Option<&VaultSecret>,
) -> Result<Answer<VaultKeyObject>, AdminError> {
    let replayed = done.replayed;
    let Subject::VaultKey(key) = done.subject else {
        return Err(AdminError::Internal);
    };
    let object = VaultKeyObject::of(&key, state.clock.now());
    let object = match secret {
        Some(secret) if !replayed => object.showing(secret),
        _ => object,
    };
    Ok(Answer { object, replayed })
}

/// A secret from the system's randomness.
fn new_secret() -> Result<VaultSecret, AdminError> {
    let mut entropy = [0; 24];
    getrandom::fill(&mut entropy).map_err(|_| AdminError::NoEntropy)?;
    Ok(VaultSecret::from_entropy(entropy))
}

/// Ids rise with time, so that lists of them do.
fn new_id() -> Result<VaultKeyId, AdminError> {
    let id = format!("vk_{}", Uuid::now_v7().simple());
    id.parse().map_err(|_| AdminError::Internal)
}
