//! A reservation as the control plane shows it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::reservation::Reservation;
use crate::domain::time::UnixMs;

/// One money-moving intent. Amounts are in minor units, times in unix seconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(crate) struct ReservationObject {
    /// Its id.
    #[schema(example = "rsv_06f3k8w2qz1ab")]
    id: String,
    /// Always `reservation`.
    #[schema(example = "reservation")]
    object: &'static str,
    /// The vault key whose cap it uses.
    vault_key: String,
    /// `in_flight`, `open`, `held`, `settled`, `released` or `written_off`.
    state: &'static str,
    /// The operation that made it.
    #[schema(example = "charges.create")]
    operation: &'static str,
    /// The connected account whose money moves; `null` for the platform's own.
    account: Option<String>,
    /// The vault key's period.
    billing_period: String,
    /// The vault key's namespace.
    namespace: String,
    /// The customer, where one is named.
    customer: Option<String>,
    /// `Spendcap-Reference`; empty by default.
    reference: String,
    /// The currency's code in lower case.
    currency: String,
    /// What was asked for.
    amount: i64,
    /// What counts against the cap until the outcome is known.
    amount_reserved: i64,
    /// What Stripe took.
    amount_settled: i64,
    /// What went back of that since. It raises no cap.
    amount_refunded: i64,
    /// The Stripe object, once known.
    object_id: Option<String>,
    /// How often it was sent.
    sends: u32,
    /// The idempotency key that Stripe sees.
    idempotency_key: String,
    /// When it was reserved.
    created: i64,
    /// When it was settled, released or written off.
    resolved_at: Option<i64>,
}

impl ReservationObject {
    /// `row` as it stands.
    pub(super) fn of(row: &Reservation) -> Self {
        Self {
            id: row.id.to_string(),
            object: "reservation",
            vault_key: row.vault_key.to_string(),
            state: row.state.as_str(),
            operation: row.operation.as_str(),
            account: (!row.account.is_empty()).then(|| row.account.clone()),
            billing_period: row.billing_period.clone(),
            namespace: row.namespace.clone(),
            customer: row.customer.clone(),
            reference: row.reference.clone(),
            currency: row.currency.to_string(),
            amount: row.amount.get(),
            amount_reserved: row.amount_reserved.get(),
            amount_settled: row.amount_settled.get(),
            amount_refunded: row.amount_refunded.get(),
            object_id: row.object_id.clone(),
            sends: row.send.sends,
            idempotency_key: row.send.upstream_key.clone(),
            created: row.created_at.unix_seconds(),
            resolved_at: row.resolved_at.map(UnixMs::unix_seconds),
        }
    }
}
