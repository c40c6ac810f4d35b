//! `/v1/reservations`: what was reserved, and what became of it; `/resolve` for what nobody knows.

mod evidence;
mod object;
mod resolve;

use axum::Json;
use axum::extract::State;

use super::AdminState;
use super::auth::Actor;
use super::command::{Answer, Command, carry_out};
use super::error::AdminError;
use super::list::List;
use super::path::{PathId, missing};
use super::query::Query;
use crate::domain::id::ReservationId;
use crate::domain::reservation::{self, Reservation};
use crate::ledger::ReservationFilter;
use crate::ledger::command::{Control, Subject};

pub(super) use object::ReservationObject;
pub(super) use resolve::ReservationResolve;

const URL: &str = "/v1/reservations";

/// Lists reservations, newest first.
#[utoipa::path(
    get, path = "/v1/reservations", operation_id = "list_reservations", tag = "Reservations",
    params(
        ("vault_key" = Option<String>, Query, description = "Only those under this vault key."),
        ("state" = Option<String>, Query, description = "`in_flight`, `open`, `held`, `settled`, `released` or `written_off`."),
        ("customer" = Option<String>, Query, description = "Only those of this customer."),
        ("billing_period" = Option<String>, Query, description = "Only those of this period."),
        ("limit" = Option<u32>, Query, description = "1 to 100, 10 by default."),
        ("starting_after" = Option<String>, Query, description = "The last id of the page before."),
    ),
    responses((status = 200, body = List<ReservationObject>)),
)]
pub(super) async fn list(
    State(state): State<AdminState>,
    query: Query,
) -> Result<Json<List<ReservationObject>>, AdminError> {
    let known = [
        "vault_key",
        "state",
        "customer",
        "billing_period",
        "limit",
        "starting_after",
    ];
    let mut query = query.only(&known)?;
    let names = reservation::State::ALL.map(reservation::State::as_str);
    let filter = ReservationFilter {
        vault_key: query.id("vault_key", "vk_")?,
        state: query.choice("state", reservation::State::parse, &names)?,
        customer: query.text("customer")?,
        billing_period: query.label("billing_period")?,
    };
    let page = query.page("rsv_")?;
    let found = state.ledger.reads().reservations(&filter, &page).await?;
    let data = found.data.iter().map(ReservationObject::of).collect();
    Ok(Json(List::new(URL, data, found.has_more)))
}

/// Shows one reservation.
#[utoipa::path(
    get, path = "/v1/reservations/{id}", operation_id = "retrieve_reservation", tag = "Reservations",
    params(("id" = String, Path, description = "`rsv_…`")),
    responses((status = 200, body = ReservationObject)),
)]
pub(super) async fn retrieve(
    State(state): State<AdminState>,
    PathId(id): PathId<ReservationId>,
    query: Query,
) -> Result<Json<ReservationObject>, AdminError> {
    query.only(&[])?;
    let row = find(&state, id).await?;
    Ok(Json(ReservationObject::of(&row)))
}

/// Says what became of a reservation that is held, open or written off, on evidence from Stripe.
#[utoipa::path(
    post, path = "/v1/reservations/{id}/resolve", operation_id = "resolve_reservation", tag = "Reservations",
    params(("id" = String, Path, description = "`rsv_…`")),
    request_body = ReservationResolve,
    responses((status = 200, body = ReservationObject)),
)]
pub(super) async fn resolve(
    State(state): State<AdminState>,
    actor: Actor,
    PathId(id): PathId<ReservationId>,
    command: Command,
) -> Result<Answer<ReservationObject>, AdminError> {
    let asked = ReservationResolve::read(command.fields)?;
    let resolution = asked.resolution()?;
    // The ledger locks the vault key before it loads the row, so it is told which one that is.
    let mut reservation = Box::new(find(&state, id).await?);
    if let Some(sends) = asked.sends {
        reservation.send.sends = sends;
    }
    if !asked.unread {
        evidence::check(&state, &reservation, &resolution).await?;
    }
    let control = Control::Resolve {
        reservation,
        resolution,
        reason: asked.reason,
    };
    let done = carry_out(&state, actor, command.idempotency, control).await?;
    let Subject::Reservation(row) = done.subject else {
        return Err(AdminError::Internal);
    };
    Ok(Answer {
        object: ReservationObject::of(&row),
        replayed: done.replayed,
    })
}

async fn find(state: &AdminState, id: ReservationId) -> Result<Reservation, AdminError> {
    let row = state.ledger.reads().reservation(id).await?;
    row.ok_or_else(|| missing("reservation", &id.to_string()))
}
