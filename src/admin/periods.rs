//! `/v1/periods/{period}`: what one billing period came to, over all its vault keys.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use super::error::AdminError;
use super::path::{PathLabel, missing};
use super::query::Query;
use crate::ledger::{PeriodCap, PeriodRollUp, StateSums};

/// A billing period. Amounts are in minor units.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Period)]
pub(super) struct PeriodObject {
    /// The name of the period.
    #[schema(example = "2026-08")]
    id: String,
    /// Always `period`.
    #[schema(example = "period")]
    object: &'static str,
    /// How many vault keys it has.
    vault_keys: i64,
    /// The caps of its vault keys together, by namespace and currency.
    caps: Vec<PeriodCapObject>,
    /// Its reservations, by state and currency.
    reservations: Vec<StateSumsObject>,
    /// Flags that nobody acknowledged.
    open_flags: i64,
}

/// The caps of one namespace and currency together, in minor units.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PeriodCap)]
struct PeriodCapObject {
    /// Which billing job.
    namespace: String,
    /// The currency's code in lower case.
    #[schema(example = "usd")]
    currency: String,
    /// What is expected to be billed.
    expected_total: i64,
    /// What may be billed.
    max_amount: i64,
    /// Sent to Stripe, outcome not known yet.
    reserved: i64,
    /// Taken by Stripe.
    settled: i64,
}

/// The reservations in one state and currency together, in minor units.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PeriodReservations)]
struct StateSumsObject {
    /// `in_flight`, `open`, `held`, `settled`, `released` or `written_off`.
    state: &'static str,
    /// The currency's code in lower case.
    #[schema(example = "usd")]
    currency: String,
    /// How many.
    count: i64,
    /// What was asked for.
    amount: i64,
    /// What counts against the caps until the outcomes are known.
    amount_reserved: i64,
    /// What Stripe took.
    amount_settled: i64,
}

/// Sums up one billing period.
#[utoipa::path(
    get, path = "/v1/periods/{period}", operation_id = "retrieve_period", tag = "Periods",
    params(("period" = String, Path, description = "The `billing_period` of its vault keys.")),
    responses((status = 200, body = PeriodObject)),
)]
pub(super) async fn retrieve(
    State(state): State<AdminState>,
    PathLabel(period): PathLabel,
    query: Query,
) -> Result<Json<PeriodObject>, AdminError> {
    query.only(&[])?;
    let sums = state.ledger.reads().period(&period).await?;
    if sums.vault_keys == 0 {
        return Err(missing("billing period", &period));
    }
    Ok(Json(PeriodObject::of(&sums)))
}

impl PeriodObject {
    fn of(sums: &PeriodRollUp) -> Self {
        Self {
            id: sums.billing_period.clone(),
            object: "period",
            vault_keys: sums.vault_keys,
            caps: sums.caps.iter().map(PeriodCapObject::of).collect(),
            reservations: sums.reservations.iter().map(StateSumsObject::of).collect(),
            open_flags: sums.open_flags,
        }
    }
}

impl PeriodCapObject {
    fn of(cap: &PeriodCap) -> Self {
        Self {
            namespace: cap.namespace.clone(),
            currency: cap.currency.to_string(),
            expected_total: cap.expected_total.get(),
            max_amount: cap.max_amount.get(),
            reserved: cap.reserved.get(),
            settled: cap.settled.get(),
        }
    }
}

impl StateSumsObject {
    fn of(sums: &StateSums) -> Self {
        Self {
            state: sums.state.as_str(),
            currency: sums.currency.to_string(),
            count: sums.count,
            amount: sums.amount.get(),
            amount_reserved: sums.amount_reserved.get(),
            amount_settled: sums.amount_settled.get(),
        }
    }
}
