//! What a transaction has written and not committed yet.

use std::collections::BTreeSet;

use super::tables::Tables;
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::{ReservationId, VaultKeyId};
use crate::domain::reservation::{Request, Reservation};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::book::Book;
use crate::ledger::feed::FeedReport;

#[derive(Default)]
pub(super) struct Staged {
    pub(super) keys: Vec<VaultKey>,
    pub(super) secrets: Vec<([u8; 32], VaultKeyId)>,
    pub(super) rows: Vec<Reservation>,
    pub(super) requests: Vec<Request>,
    pub(super) flags: Vec<(ReservationId, FlagKind)>,
    pub(super) audit_tail: Option<[u8; 32]>,
    pub(super) feed: Vec<(FeedReport, UnixMs)>,
}

impl Staged {
    /// The rows a book changed, taken where the book says that they changed and nowhere else.
    pub(super) fn of(book: &Book, tables: &Tables) -> Self {
        let changes = book.changes();
        let keys = changes.new_keys.keys().chain(&changes.changed_keys);
        let mut ids: BTreeSet<&VaultKeyId> = keys.collect();
        ids.extend(changes.new_caps.iter().map(|(id, _)| id));
        ids.extend(changes.changed_caps.iter().map(|(id, _)| id));
        let keys = ids.into_iter().map(|id| key(book, tables, id)).collect();
        let rows = changes.new_reservations.iter();
        let rows = rows.chain(changes.changed_reservations.keys());
        let requests = changes.new_requests.iter();
        let requests = requests.chain(changes.moved_requests.keys());
        Self {
            keys,
            secrets: changes
                .new_keys
                .iter()
                .map(|(id, hash)| (*hash, id.clone()))
                .chain(
                    changes
                        .rotations
                        .iter()
                        .map(|it| (it.secret_hash, it.vault_key.clone())),
                )
                .collect(),
            rows: rows
                .map(|id| book.reservation(*id).unwrap().clone())
                .collect(),
            requests: requests
                .map(|digest| book.request(*digest).unwrap().clone())
                .collect(),
            flags: changes.flags.keys().copied().collect(),
            audit_tail: changes.audit.last().map(|entry| entry.hash),
            feed: changes
                .feed
                .iter()
                .map(|report| (report.clone(), book.now()))
                .collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.secrets.is_empty()
            && self.rows.is_empty()
            && self.requests.is_empty()
            && self.flags.is_empty()
            && self.feed.is_empty()
    }
}

/// The key's own columns and the caps' are written apart, each only where it changed.
fn key(book: &Book, tables: &Tables, id: &VaultKeyId) -> VaultKey {
    let changes = book.changes();
    let new = book.vault_key(id).unwrap();
    let Some(stored) = tables.keys.get(id) else {
        return new.clone();
    };
    let mut key = stored.clone();
    if changes.changed_keys.contains(id) {
        key.status = new.status;
        key.headroom = new.headroom;
        key.secret_hint.clone_from(&new.secret_hint);
    }
    for (owner, currency) in changes.new_caps.iter().chain(&changes.changed_caps) {
        if owner == id {
            let cap = book.cap(id, *currency).unwrap().clone();
            key.caps.retain(|stored| stored.currency != *currency);
            key.caps.push(cap);
        }
    }
    key.caps.sort_by_key(|cap| cap.currency);
    key
}

/// The claims that the transaction writes into the unique index: those of new rows, and of rows whose
/// claims changed.
pub(super) fn claims(book: &Book) -> Vec<(Digest16, ReservationId)> {
    let changes = book.changes();
    let rows = changes
        .new_reservations
        .iter()
        .chain(&changes.changed_claims);
    let rows = rows.filter_map(|id| book.reservation(*id));
    let mut claims: Vec<(Digest16, ReservationId)> = rows
        .filter(|row| row.holds_claims())
        .flat_map(|row| {
            let claims = row.slot_claim.iter().chain(&row.intent_claim);
            claims.map(|claim| (*claim, row.id))
        })
        .collect();
    claims.sort();
    claims
}
