//! The working set of one batch: what the store loaded, changed in memory, and what is to be written.
//!
//! **Invariant:** every change of a reservation's amounts passes [`Book::put`], which moves the same
//! amounts on its cap. A cap's `reserved` and `settled` are the sums over its reservations, always.
#![warn(clippy::as_conversions)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod audit_log;
mod changes;
mod control;
mod observe;
mod rebuild;
mod reserve;
mod settle;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::HashMap;

use thiserror::Error;

use crate::domain::cap::Cap;
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::reservation::{Request, Reservation, State};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::{KeyStatus, VaultKey};

use super::command::{Answer, ControlKey, Work};
use super::feed::FeedCursor;
use super::flag::Flag;
use super::lost::LostCommits;

pub use audit_log::{NewAuditEntry, audit_hash};
pub use changes::{Changes, Rotation};
pub use wanted::Wanted;

/// The books cannot be kept: the command is refused, nothing of it is written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BookError {
    /// The vault key a reservation belongs to is not in the ledger.
    #[error("vault key {0} is not in the ledger")]
    UnknownVaultKey(VaultKeyId),
    /// A sum would leave its range: the stored books do not agree with themselves.
    #[error("the books of {0} do not balance")]
    Unbalanced(VaultKeyId),
    /// The store handed out too few reservation ids.
    #[error("no reservation id is left in this batch")]
    NoIdLeft,
    /// Something a row refers to was not loaded or does not exist.
    #[error("{0} is not in the ledger")]
    Missing(String),
}

/// What the store loaded for one batch.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The store's clock.
    pub now: UnixMs,
    /// Vault keys with their caps, locked.
    pub vault_keys: Vec<VaultKey>,
    /// Every reservation asked for by id, claim, object or request.
    pub reservations: Vec<Reservation>,
    /// Request rows asked for.
    pub requests: Vec<Request>,
    /// Flags asked for.
    pub flags: Vec<Flag>,
    /// Admin commands carried out before under the keys asked for.
    pub control_records: Vec<ControlRecord>,
    /// How far the feeds asked for were read.
    pub feed_cursors: Vec<FeedCursor>,
    /// The hash of the last audit entry; zeros where there is none.
    pub audit_tail: [u8; 32],
    /// Set while commits may be lost: no money is taken.
    pub lost: Option<LostCommits>,
    /// Reservation ids that nothing uses yet, at least one for each reserve and settle.
    pub fresh_ids: Vec<ReservationId>,
}

/// An admin command that was carried out under an idempotency key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlRecord {
    /// The key.
    pub key: ControlKey,
    /// The id of what it worked on.
    pub subject: String,
}

/// The time a send may take, from its reserve to the end of its answer.
#[derive(Clone, Copy, Debug)]
pub struct SendTimes {
    /// From the reserve to the moment an in-flight row is held, in milliseconds: the forward window, the
    /// upstream timeout and a grace.
    pub deadline_ms: i64,
}

/// The working set of one batch.
#[derive(Debug)]
pub struct Book {
    now: UnixMs,
    times: SendTimes,
    vault_keys: HashMap<VaultKeyId, VaultKey>,
    reservations: HashMap<ReservationId, Reservation>,
    /// Slot and intent claims of unreleased rows; their digests never meet.
    holders: HashMap<Digest16, ReservationId>,
    objects: HashMap<(String, String), ReservationId>,
    requests: HashMap<Digest16, Request>,
    flags: HashMap<FlagId, Flag>,
    control_records: HashMap<Digest16, ControlRecord>,
    feed_cursors: HashMap<String, FeedCursor>,
    audit_tail: [u8; 32],
    lost: Option<LostCommits>,
    fresh_ids: Vec<ReservationId>,
    changes: Changes,
}

impl Book {
    /// Opens the book on what was loaded.
    pub fn open(loaded: Loaded, times: SendTimes) -> Self {
        let mut book = Self {
            now: loaded.now,
            times,
            vault_keys: HashMap::new(),
            reservations: HashMap::new(),
            holders: HashMap::new(),
            objects: HashMap::new(),
            requests: loaded
                .requests
                .into_iter()
                .map(|row| (row.digest, row))
                .collect(),
            flags: loaded
                .flags
                .into_iter()
                .map(|flag| (flag.id, flag))
                .collect(),
            control_records: HashMap::new(),
            feed_cursors: HashMap::new(),
            audit_tail: loaded.audit_tail,
            lost: loaded.lost,
            fresh_ids: loaded.fresh_ids,
            changes: Changes::default(),
        };
        for key in loaded.vault_keys {
            book.vault_keys.insert(key.id.clone(), key);
        }
        for record in loaded.control_records {
            book.control_records.insert(record.key.digest, record);
        }
        for cursor in loaded.feed_cursors {
            book.feed_cursors.insert(cursor.account.clone(), cursor);
        }
        for row in loaded.reservations {
            book.index(&row);
            book.reservations.insert(row.id, row);
        }
        book
    }

    /// Runs one unit of work. After an error the book is spoilt: the batch is rolled back.
    pub fn run(&mut self, work: &Work) -> Result<Answer, BookError> {
        match work {
            Work::Reserve(ask) => self.reserve(ask).map(Answer::Verdict),
            Work::Settle(report) => self.settle(report).map(Answer::Settled),
            Work::Sweep => self.sweep().map(Answer::Swept),
            Work::Observe(report) => Ok(Answer::Observed(self.observe(report))),
            Work::WriteOff(row) => self.write_off(row).map(Answer::WrittenOff),
            Work::Control(request) => self.control(request).map(Answer::Control),
        }
    }

    /// What is to be written.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The store's clock when the batch was loaded.
    pub fn now(&self) -> UnixMs {
        self.now
    }

    /// A vault key in the book.
    pub fn vault_key(&self, id: &VaultKeyId) -> Option<&VaultKey> {
        self.vault_keys.get(id)
    }

    /// A cap in the book.
    pub fn cap(&self, id: &VaultKeyId, currency: Currency) -> Option<&Cap> {
        self.vault_keys.get(id)?.cap(currency)
    }

    /// A reservation in the book.
    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.reservations.get(&id)
    }

    /// The newest reservation among those to be written, as it will stand: a witness of the batch.
    pub fn last_written(&self) -> Option<&Reservation> {
        let changes = &self.changes;
        let last = changes.new_reservations.last();
        let last = last.or_else(|| changes.changed_reservations.keys().next_back());
        self.reservation(*last?)
    }

    /// A request row in the book.
    pub fn request(&self, digest: Digest16) -> Option<&Request> {
        self.requests.get(&digest)
    }

    fn remaining(&self, id: &VaultKeyId, currency: Currency) -> AmountMinor {
        self.cap(id, currency)
            .map_or(AmountMinor::ZERO, Cap::remaining)
    }

    fn holder(&self, claim: Option<Digest16>) -> Option<&Reservation> {
        self.reservations.get(self.holders.get(&claim?)?)
    }

    /// The unreleased row that owns an object, else a released one.
    fn object_owner(&self, account: &str, object_id: &str) -> Option<&Reservation> {
        let id = self
            .objects
            .get(&(account.to_owned(), object_id.to_owned()))?;
        self.reservations.get(id)
    }

    /// Writes a row into the book, new or changed, and moves its amounts on its cap.
    fn put(&mut self, row: Reservation) -> Result<(), BookError> {
        let old = self.reservations.get(&row.id);
        let before = old.map_or((AmountMinor::ZERO, AmountMinor::ZERO), |old| {
            (old.amount_reserved, old.amount_settled)
        });
        let old_version = old.map(|old| old.version);
        self.move_amounts(&row, before)?;
        let mut row = row;
        match old_version {
            None => {
                row.version = 1;
                self.changes.new_reservations.insert(row.id);
            }
            Some(version) if !self.changes.new_reservations.contains(&row.id) => {
                let stored = *self
                    .changes
                    .changed_reservations
                    .entry(row.id)
                    .or_insert(version);
                row.version = stored.saturating_add(1);
            }
            Some(version) => row.version = version,
        }
        if let Some(old) = self.reservations.get(&row.id).cloned() {
            if claims(&old) != claims(&row) {
                self.changes.changed_claims.insert(row.id);
            }
            self.unindex(&old);
        }
        self.index(&row);
        self.reservations.insert(row.id, row);
        Ok(())
    }

    fn move_amounts(
        &mut self,
        row: &Reservation,
        (reserved, settled): (AmountMinor, AmountMinor),
    ) -> Result<(), BookError> {
        if (reserved, settled) == (row.amount_reserved, row.amount_settled) {
            return Ok(());
        }
        let Some(key) = self.vault_keys.get_mut(&row.vault_key) else {
            return Err(BookError::UnknownVaultKey(row.vault_key.clone()));
        };
        let existed = key.cap(row.currency).is_some();
        if !existed {
            // Only an observed charge, or a truth that came late, is in a currency without a cap.
            key.caps.push(Cap::fresh(
                row.currency,
                AmountMinor::ZERO,
                AmountMinor::ZERO,
            ));
            key.caps.sort_by_key(|cap| cap.currency);
        }
        let unbalanced = || BookError::Unbalanced(row.vault_key.clone());
        let cap = key.cap_mut(row.currency).ok_or_else(unbalanced)?;
        let shift = |sum: AmountMinor, before: AmountMinor, after: AmountMinor| {
            sum.checked_sub(before)
                .and_then(|rest| rest.checked_add(after))
        };
        let new_reserved = shift(cap.reserved, reserved, row.amount_reserved);
        let new_settled = shift(cap.settled, settled, row.amount_settled);
        (cap.reserved, cap.settled) = new_reserved.zip(new_settled).ok_or_else(unbalanced)?;
        self.cap_changed(&row.vault_key, row.currency, existed);
        Ok(())
    }

    /// A new key is written with all its caps, a new cap with its sums.
    fn cap_changed(&mut self, id: &VaultKeyId, currency: Currency, existed: bool) {
        let cap = (id.clone(), currency);
        let written_whole =
            self.changes.new_keys.contains_key(id) || self.changes.new_caps.contains(&cap);
        match (written_whole, existed) {
            (true, _) => {}
            (false, true) => self.changes.changed_caps.extend([cap]),
            (false, false) => self.changes.new_caps.extend([cap]),
        }
    }

    fn index(&mut self, row: &Reservation) {
        if row.holds_claims() {
            for claim in row.slot_claim.iter().chain(&row.intent_claim) {
                self.holders.insert(*claim, row.id);
            }
        }
        if let Some(object_id) = &row.object_id {
            let object = (row.account.clone(), object_id.clone());
            let held = self
                .objects
                .get(&object)
                .and_then(|id| self.reservations.get(id));
            let better = held.is_none_or(|held| held.state == State::Released);
            if better {
                self.objects.insert(object, row.id);
            }
        }
    }

    fn unindex(&mut self, row: &Reservation) {
        for claim in row.slot_claim.iter().chain(&row.intent_claim) {
            if self.holders.get(claim) == Some(&row.id) {
                self.holders.remove(claim);
            }
        }
    }

    fn flag(&mut self, reservation: ReservationId, kind: FlagKind) {
        let count = self.changes.flags.entry((reservation, kind)).or_insert(0);
        *count = count.saturating_add(1);
    }

    fn stop_key(&mut self, id: &VaultKeyId) {
        if let Some(key) = self.vault_keys.get_mut(id)
            && key.status == KeyStatus::Active
        {
            key.status = KeyStatus::Stopped;
            self.changes.changed_keys.insert(id.clone());
        }
    }

    fn take_id(&mut self) -> Result<ReservationId, BookError> {
        self.fresh_ids.pop().ok_or(BookError::NoIdLeft)
    }
}

/// What a row claims, and whether it holds that.
fn claims(row: &Reservation) -> (Option<Digest16>, Option<Digest16>, bool) {
    (row.slot_claim, row.intent_claim, row.holds_claims())
}
