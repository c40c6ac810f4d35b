//! Rows turned into columns: `UNNEST` takes one array for each.

use crate::domain::cap::Cap;
use crate::domain::flag::FlagKind;
use crate::domain::id::VaultKeyId;
use crate::domain::reservation::{Request, Reservation};

/// Caps whose sums or bounds changed.
#[derive(Default)]
pub(super) struct CapColumns<'a> {
    pub(super) vault_key: Vec<&'a str>,
    pub(super) currency: Vec<&'a str>,
    pub(super) expected_total: Vec<i64>,
    pub(super) max_amount: Vec<i64>,
    pub(super) reserved: Vec<i64>,
    pub(super) settled: Vec<i64>,
}

impl<'a> CapColumns<'a> {
    pub(super) fn add(&mut self, vault_key: &'a VaultKeyId, cap: &'a Cap) {
        self.vault_key.push(vault_key.as_str());
        self.currency.push(cap.currency.as_str());
        self.expected_total.push(cap.expected_total.get());
        self.max_amount.push(cap.max_amount.get());
        self.reserved.push(cap.reserved.get());
        self.settled.push(cap.settled.get());
    }
}

/// What never changes about a reservation.
#[derive(Default)]
pub(super) struct OriginColumns<'a> {
    pub(super) vault_key: Vec<&'a str>,
    pub(super) account: Vec<&'a str>,
    pub(super) namespace: Vec<&'a str>,
    pub(super) billing_period: Vec<&'a str>,
    pub(super) customer: Vec<Option<&'a str>>,
    pub(super) reference: Vec<&'a str>,
    pub(super) operation: Vec<&'static str>,
    pub(super) currency: Vec<&'a str>,
    pub(super) amount: Vec<i64>,
    pub(super) attempt: Vec<i64>,
    pub(super) created_at_ms: Vec<i64>,
}

impl<'a> OriginColumns<'a> {
    pub(super) fn add(&mut self, row: &'a Reservation) {
        self.vault_key.push(row.vault_key.as_str());
        self.account.push(&row.account);
        self.namespace.push(&row.namespace);
        self.billing_period.push(&row.billing_period);
        self.customer.push(row.customer.as_deref());
        self.reference.push(&row.reference);
        self.operation.push(row.operation.as_str());
        self.currency.push(row.currency.as_str());
        self.amount.push(row.amount.get());
        self.attempt.push(i64::from(row.attempt));
        self.created_at_ms.push(row.created_at.0);
    }
}

/// What may change about a reservation.
#[derive(Default)]
pub(super) struct StateColumns<'a> {
    pub(super) id: Vec<i64>,
    pub(super) version: Vec<i64>,
    pub(super) slot_claim: Vec<Option<&'a [u8]>>,
    pub(super) intent_claim: Vec<Option<&'a [u8]>>,
    pub(super) amount_reserved: Vec<i64>,
    pub(super) amount_settled: Vec<i64>,
    pub(super) state: Vec<&'static str>,
    pub(super) object_id: Vec<Option<&'a str>>,
    pub(super) send_operation: Vec<&'static str>,
    pub(super) upstream_key: Vec<&'a str>,
    pub(super) fingerprint: Vec<&'a [u8]>,
    pub(super) sends: Vec<i64>,
    pub(super) unproven: Vec<i64>,
    pub(super) first_unproven_at_ms: Vec<Option<i64>>,
    pub(super) forward_by_ms: Vec<i64>,
    pub(super) deadline_ms: Vec<i64>,
    pub(super) outcome_stored: Vec<bool>,
    pub(super) resolved_at_ms: Vec<Option<i64>>,
    pub(super) server_error: Vec<bool>,
}

impl<'a> StateColumns<'a> {
    pub(super) fn add(&mut self, row: &'a Reservation) {
        self.id.push(row.id.0);
        self.version.push(row.version);
        self.slot_claim
            .push(row.slot_claim.as_ref().map(|claim| &claim.0[..]));
        self.intent_claim
            .push(row.intent_claim.as_ref().map(|claim| &claim.0[..]));
        self.amount_reserved.push(row.amount_reserved.get());
        self.amount_settled.push(row.amount_settled.get());
        self.state.push(row.state.as_str());
        self.object_id.push(row.object_id.as_deref());
        self.send_operation.push(row.send.operation.as_str());
        self.upstream_key.push(&row.send.upstream_key);
        self.fingerprint.push(&row.send.fingerprint.0.0);
        self.sends.push(i64::from(row.send.sends));
        self.unproven.push(i64::from(row.send.unproven));
        self.first_unproven_at_ms
            .push(row.send.first_unproven_at.map(|at| at.0));
        self.forward_by_ms.push(row.send.forward_by.0);
        self.deadline_ms.push(row.send.deadline.0);
        self.outcome_stored.push(row.outcome_stored);
        self.resolved_at_ms.push(row.resolved_at.map(|at| at.0));
        self.server_error.push(row.server_error);
    }
}

/// Idempotency keys.
#[derive(Default)]
pub(super) struct RequestColumns<'a> {
    pub(super) digest: Vec<&'a [u8]>,
    pub(super) key_text: Vec<&'a str>,
    pub(super) reservation: Vec<i64>,
    pub(super) operation: Vec<&'static str>,
    pub(super) fingerprint: Vec<&'a [u8]>,
    pub(super) created_at_ms: Vec<i64>,
}

impl<'a> RequestColumns<'a> {
    pub(super) fn add(&mut self, request: &'a Request) {
        self.digest.push(&request.digest.0);
        self.key_text.push(&request.key);
        self.reservation.push(request.reservation.0);
        self.operation.push(request.operation.as_str());
        self.fingerprint.push(&request.fingerprint.0.0);
        self.created_at_ms.push(request.created_at.0);
    }
}

/// Observations.
#[derive(Default)]
pub(super) struct FlagColumns<'a> {
    pub(super) reservation: Vec<i64>,
    pub(super) kind: Vec<&'static str>,
    pub(super) count: Vec<i64>,
    pub(super) vault_key: Vec<&'a str>,
    pub(super) customer: Vec<Option<&'a str>>,
}

impl<'a> FlagColumns<'a> {
    pub(super) fn add(&mut self, row: &'a Reservation, kind: FlagKind, count: i64) {
        self.reservation.push(row.id.0);
        self.kind.push(kind.as_str());
        self.count.push(count);
        self.vault_key.push(row.vault_key.as_str());
        self.customer.push(row.customer.as_deref());
    }
}
