//! `/v1/reconcile`: reads Stripe's feed over a gap in which commits may be lost.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::AdminState;
use super::auth::Actor;
use super::command::{Answer, Command};
use super::error::{AdminError, BadParameter};
use super::json::Fields;
use super::param;
use crate::domain::id::VaultKeyId;
use crate::domain::time::UnixMs;
use crate::reconcile::gap::{GapEnd, GapError, GapOrder, GapReader, GapReport, Unattributed};

/// What to read, and what to do about charges that nobody can place.
#[derive(Debug, ToSchema)]
pub(super) struct Reconcile {
    /// Where the gap begins: unix seconds, or RFC 3339 with an offset.
    #[schema(value_type = i64, example = 1_788_307_200)]
    since: UnixMs,
    /// Whose a charge is that may be of several vault keys.
    #[schema(value_type = Option<String>, nullable = false, example = "vk_06f3k8w2qz1ab")]
    vault_key: Option<VaultKeyId>,
    /// Take money again although some charges have no reservation; takes a `reason`.
    #[schema(value_type = Option<bool>, nullable = false)]
    leave_unattributed: bool,
    /// Why, for the audit log; with `leave_unattributed` only.
    #[schema(min_length = 1, max_length = 500, nullable = false)]
    reason: Option<String>,
}

impl Reconcile {
    fn read(fields: Map<String, Value>) -> Result<Self, BadParameter> {
        let known = ["since", "vault_key", "leave_unattributed", "reason"];
        let mut fields = Fields::new(fields, &known)?;
        let read = Self {
            since: fields.required("since", param::time)?,
            vault_key: fields.optional("vault_key", vault_key)?,
            leave_unattributed: fields
                .optional("leave_unattributed", param::boolean)?
                .unwrap_or_default(),
            reason: fields.optional("reason", param::reason)?,
        };
        match (read.leave_unattributed, &read.reason) {
            (true, None) => Err(param::missing("reason")),
            (false, Some(_)) => Err(param::invalid(
                "reason",
                "reason goes with leave_unattributed only",
            )),
            _ => Ok(read),
        }
    }
}

fn vault_key(param: &str, value: &Value) -> Result<VaultKeyId, BadParameter> {
    let text = param::text(param, value)?;
    text.parse()
        .map_err(|_| param::invalid(param, format!("{param} is a vault key's id, vk_…")))
}

/// What was found in the gap, and whether money is taken. Times are unix seconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(super) struct ReconciliationObject {
    /// Always `reconciliation`.
    #[schema(example = "reconciliation")]
    object: &'static str,
    /// `nothing_lost`: money is taken, as before. `ended`: money is taken again. `unattributed`,
    /// `too_early` and `lost_more`: money is refused.
    #[schema(example = "ended")]
    status: &'static str,
    /// When to ask again; with `too_early` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<i64>,
    /// Where the gap began.
    since: i64,
    /// Up to when it was read.
    until: i64,
    /// Charges that the feed names.
    charges: u64,
    /// Of those: some reservation had them.
    known: u64,
    /// Of those: a reservation had waited for them.
    settled: u64,
    /// Of those: their reservation was made again.
    rebuilt: u64,
    /// Of those: not made through spendcap, or nothing moved.
    passed_over: u64,
    /// Of those: nobody can tell under which vault key.
    unattributed_count: u64,
    /// The first hundred of them.
    unattributed: Vec<UnattributedObject>,
}

/// A charge that may be of several vault keys, or of none.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UnattributedCharge)]
pub(super) struct UnattributedObject {
    /// Its id.
    charge: String,
    /// Its account; none for the platform's own.
    account: Option<String>,
    /// Whom it bills.
    customer: Option<String>,
    /// What it took or may take, in minor units.
    amount: i64,
    /// In which currency.
    currency: String,
    /// When it was made.
    created: i64,
    /// The vault keys that it may be of.
    candidates: Vec<String>,
}

impl ReconciliationObject {
    fn of(order: &GapOrder, report: GapReport) -> Self {
        let (status, retry_at) = match report.end {
            GapEnd::NothingLost => ("nothing_lost", None),
            GapEnd::Ended => ("ended", None),
            GapEnd::Unattributed => ("unattributed", None),
            // Not before that second is over.
            GapEnd::TooEarly(until) => ("too_early", Some(until.plus_ms(999).unix_seconds())),
            GapEnd::LostMore => ("lost_more", None),
        };
        Self {
            object: "reconciliation",
            status,
            retry_at,
            since: order.since.unix_seconds(),
            until: report.until.unix_seconds(),
            charges: report.charges,
            known: report.known,
            settled: report.settled,
            rebuilt: report.rebuilt,
            passed_over: report.passed_over,
            unattributed_count: report.unattributed_count,
            unattributed: report.unattributed.into_iter().map(unattributed).collect(),
        }
    }
}

fn unattributed(charge: Unattributed) -> UnattributedObject {
    UnattributedObject {
        charge: charge.charge,
        account: Some(charge.account).filter(|account| !account.is_empty()),
        customer: charge.customer,
        amount: charge.amount.get(),
        currency: charge.currency.to_string(),
        created: charge.created.unix_seconds(),
        candidates: charge.candidates.iter().map(ToString::to_string).collect(),
    }
}

/// Reads Stripe's feed over a gap, makes lost reservations again, and takes money again.
///
/// It answers when the feed is read, which takes as long as there are charges without a reservation.
/// Running it twice changes nothing more.
#[utoipa::path(
    post, path = "/v1/reconcile", operation_id = "reconcile", tag = "Ledger",
    request_body = Reconcile,
    responses((status = 200, body = ReconciliationObject)),
)]
pub(super) async fn reconcile(
    State(state): State<AdminState>,
    actor: Actor,
    command: Command,
) -> Result<Answer<ReconciliationObject>, AdminError> {
    let asked = Reconcile::read(command.fields)?;
    let order = GapOrder {
        since: asked.since,
        vault_key: asked.vault_key,
        leave: asked.reason,
        actor: actor.0,
    };
    let reader = GapReader {
        ledger: state.ledger.clone(),
        stripe: Arc::clone(&state.stripe),
        clock: state.clock.clone(),
    };
    let report = reader.read(&order).await.map_err(refused)?;
    Ok(Answer {
        object: ReconciliationObject::of(&order, report),
        replayed: false,
    })
}

fn refused(error: GapError) -> AdminError {
    match error {
        GapError::SinceTooLate { newest } => {
            let latest = newest.unix_seconds();
            param::invalid("since", format!("{error} (since {latest})")).into()
        }
        GapError::SinceInFuture => param::invalid("since", error.to_string()).into(),
        GapError::UnknownVaultKey => param::invalid("vault_key", error.to_string()).into(),
        GapError::Stripe(_) | GapError::Account { .. } => AdminError::StripeUnread(error),
        GapError::Ledger(error) => error.into(),
    }
}
