//! `/healthz`: the process answers. `/readyz`: it can read its ledger, and is not draining.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;

/// Whether the process is there, or ready.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok` or `unavailable`.
    #[schema(example = "ok")]
    status: &'static str,
    /// Why it is unavailable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    /// The version of the ledger's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<i64>,
}

/// The process answers. Never touches the ledger: a database that is away is no reason to restart.
#[utoipa::path(
    get, path = "/healthz", tag = "Health", security(()),
    responses((status = 200, body = Health)),
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health {
        status: "ok",
        reasons: Vec::new(),
        schema_version: None,
    })
}

/// The ledger can be read and written, its schema is known, and the process is not draining.
#[utoipa::path(
    get, path = "/readyz", tag = "Health", security(()),
    responses((status = 200, body = Health), (status = 503, body = Health)),
)]
pub(super) async fn readyz(State(state): State<AdminState>) -> (StatusCode, Json<Health>) {
    let mut reasons = Vec::new();
    if state.draining.is_cancelled() {
        reasons.push("draining: the process is about to end".to_owned());
    }
    if !state.ledger.is_writable() {
        reasons.push("ledger: the last write failed; it is tried again every second".to_owned());
    }
    let schema_version = match state.ledger.reads().ready().await {
        Ok(ready) => {
            if ready.lost {
                let why =
                    "ledger: commits may be lost; no money is taken until `spendcap reconcile`";
                reasons.push(why.to_owned());
            }
            Some(ready.schema_version)
        }
        Err(error) => {
            reasons.push(format!("ledger: {error}"));
            None
        }
    };
    let (code, status) = if reasons.is_empty() {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    };
    let health = Health {
        status,
        reasons,
        schema_version,
    };
    (code, Json(health))
}
