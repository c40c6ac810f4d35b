//! The control plane: what operators see and do.
//!
//! It has Stripe's habits (design §5): `snake_case`, `object`, prefixed ids, lists with `has_more`,
//! `Idempotency-Key` on POST, and Stripe's error envelope. It has a listener of its own, and every path
//! under `/v1/` takes an admin token. A request goes one way: [`auth`] names who asks, [`command`] or
//! [`query`] reads what is asked, a resource does it, [`error`] says why not.
//!
//! One file per resource; what stands on the wire is converted from and to the domain's types by named
//! functions there.

mod audit_log;
mod auth;
mod command;
mod error;
mod flags;
mod health;
mod json;
mod list;
mod metrics;
mod openapi;
mod param;
mod path;
mod periods;
mod query;
mod reconcile;
mod request;
mod reservations;
mod serve;
mod vault_keys;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{AdminTokens, DefaultsConfig};
use crate::ledger::Ledger;
use crate::stripe::read::StripeRead;
use crate::telemetry::metrics::Metrics;

pub use metrics::Gauges;
pub use openapi::openapi_json;
pub use serve::serve;

/// What the control plane works with. A cheap clone.
#[derive(Clone, Debug)]
pub struct AdminState {
    /// Where everything is kept.
    pub ledger: Ledger,
    /// Tells whether a vault key has begun or expired; the ledger decides by its own.
    pub clock: Clock,
    /// Who may ask; replaced when the tokens' file changes.
    pub tokens: watch::Receiver<AdminTokens>,
    /// Reads what an operator's evidence names.
    pub stripe: Arc<dyn StripeRead>,
    /// What a vault key gets when its creation does not say.
    pub defaults: Arc<DefaultsConfig>,
    /// What this process counted.
    pub metrics: Arc<Metrics>,
    /// What the ledger holds, for `/metrics`.
    pub gauges: Gauges,
    /// Cancelled once the process begins to drain: `/readyz` then answers 503.
    pub draining: CancellationToken,
}

/// Every path of the control plane.
pub fn router(state: AdminState) -> Router {
    let guarded = Router::new()
        .route(
            "/v1/vault_keys",
            get(vault_keys::list).post(vault_keys::create),
        )
        .route(
            "/v1/vault_keys/{id}",
            get(vault_keys::retrieve).post(vault_keys::update),
        )
        .route("/v1/vault_keys/{id}/revoke", post(vault_keys::revoke))
        .route("/v1/vault_keys/{id}/rotate", post(vault_keys::rotate))
        .route("/v1/reservations", get(reservations::list))
        .route("/v1/reservations/{id}", get(reservations::retrieve))
        .route("/v1/reservations/{id}/resolve", post(reservations::resolve))
        .route("/v1/flags", get(flags::list))
        .route("/v1/flags/{id}/acknowledge", post(flags::acknowledge))
        .route("/v1/periods/{period}", get(periods::retrieve))
        .route("/v1/reconcile", post(reconcile::reconcile))
        .route("/v1/audit_log", get(audit_log::list))
        .route_layer(from_fn_with_state(state.clone(), auth::require_token));
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::scrape))
        .route("/openapi.json", get(openapi::serve))
        .merge(guarded)
        .fallback(error::unknown_path)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(from_fn(request::identify))
        .with_state(state)
}
