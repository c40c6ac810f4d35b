//! The tables as they are committed, and what the auditor is told of them.

use std::collections::{BTreeMap, BTreeSet};

use super::staged::Staged;
use crate::domain::digest::Digest16;
use crate::domain::id::{ReservationId, VaultKeyId};
use crate::domain::reservation::{Request, Reservation, State};
use crate::domain::vault_key::VaultKey;
use crate::ledger::feed::FeedCursor;
use crate::simulation::auditor::{self, Stored};

#[derive(Default)]
pub(super) struct Tables {
    pub(super) keys: BTreeMap<VaultKeyId, VaultKey>,
    pub(super) secrets: BTreeMap<[u8; 32], VaultKeyId>,
    pub(super) rows: BTreeMap<ReservationId, Reservation>,
    pub(super) requests: BTreeMap<Digest16, Request>,
    pub(super) claims: BTreeMap<Digest16, ReservationId>,
    pub(super) objects: BTreeMap<String, BTreeSet<ReservationId>>,
    pub(super) audit_tail: [u8; 32],
    /// Of the platform's own account; no run has another.
    pub(super) feed: Option<FeedCursor>,
    next_id: i64,
}

impl Tables {
    pub(super) fn fresh_id(&mut self) -> ReservationId {
        self.next_id += 1;
        ReservationId(self.next_id)
    }

    pub(super) fn apply(&mut self, staged: Staged) -> Option<Stored> {
        if staged.is_empty() {
            return None;
        }
        let mut stored = Stored::default();
        for (hash, id) in staged.secrets {
            self.secrets.insert(hash, id);
        }
        for key in staged.keys {
            stored.keys.push(plain_key(&key));
            self.keys.insert(key.id.clone(), key);
        }
        for row in &staged.rows {
            if let Some(old) = self.rows.get(&row.id).cloned() {
                self.unindex(&old);
            }
        }
        for row in staged.rows {
            stored.rows.push(plain_row(&row));
            self.index(&row);
            self.rows.insert(row.id, row);
        }
        for request in staged.requests {
            self.requests.insert(request.digest, request);
        }
        let flags = staged.flags.iter();
        stored.flags = flags.map(|(id, kind)| (id.0, kind.as_str())).collect();
        for (report, read_at) in staged.feed {
            self.feed = Some(FeedCursor {
                account: report.account,
                read_until: report.to,
                read_at,
            });
            for bypass in report.bypasses {
                if !self.objects.contains_key(&bypass.object_id) {
                    stored.bypasses.push(bypass.object_id);
                }
            }
        }
        if let Some(tail) = staged.audit_tail {
            self.audit_tail = tail;
        }
        Some(stored)
    }

    pub(super) fn hold_in_flight(&mut self) -> Option<Stored> {
        let mut stored = Stored::default();
        for row in self.rows.values_mut() {
            if row.state == State::InFlight {
                row.state = State::Held;
                row.version += 1;
                stored.rows.push(plain_row(row));
            }
        }
        (!stored.rows.is_empty()).then_some(stored)
    }

    fn index(&mut self, row: &Reservation) {
        if row.holds_claims() {
            for claim in row.slot_claim.iter().chain(&row.intent_claim) {
                self.claims.insert(*claim, row.id);
            }
        }
        if let Some(object) = &row.object_id {
            let rows = self.objects.entry(object.clone()).or_default();
            rows.insert(row.id);
        }
    }

    fn unindex(&mut self, row: &Reservation) {
        self.claims.retain(|_, holder| *holder != row.id);
    }

    /// The unreleased row that owns an object, else the latest.
    pub(super) fn object_owner(&self, object: &str) -> Option<&Reservation> {
        let owners = self.objects.get(object).into_iter().flatten();
        let owners = owners.filter_map(|id| self.rows.get(id));
        owners.max_by_key(|row| (row.state != State::Released, row.id))
    }
}

fn plain_key(key: &VaultKey) -> auditor::Key {
    let sum = |of: fn(&crate::domain::cap::Cap) -> i64| key.caps.iter().map(of).sum();
    auditor::Key {
        id: key.id.to_string(),
        status: key.status.as_str(),
        max_amount: sum(|cap| cap.max_amount.get()),
        reserved: sum(|cap| cap.reserved.get()),
        settled: sum(|cap| cap.settled.get()),
    }
}

fn plain_row(row: &Reservation) -> auditor::Row {
    auditor::Row {
        id: row.id.0,
        vault_key: row.vault_key.to_string(),
        adopted: !row.operation.creates(),
        intent: row.operation.creates().then(|| {
            let customer = row.customer.as_deref().unwrap_or_default();
            let place = (&row.namespace, &row.billing_period, &row.reference);
            format!("{place:?} {customer} {}", row.amount)
        }),
        reserved: row.amount_reserved.get(),
        settled: row.amount_settled.get(),
        state: row.state.as_str(),
        object_id: row.object_id.clone(),
        upstream_key: row.send.upstream_key.clone(),
        sends: row.send.sends,
    }
}
