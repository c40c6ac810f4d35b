//! What a batch changed, for the store to write.

use std::collections::{BTreeMap, BTreeSet};

use super::{ControlRecord, NewAuditEntry};
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::money::Currency;
use crate::domain::time::UnixMs;
use crate::ledger::feed::FeedReport;

/// What is to be written: names of what changed, the values are the book's.
#[derive(Debug, Default)]
pub struct Changes {
    /// New vault keys with the SHA-256 of their secrets.
    pub new_keys: BTreeMap<VaultKeyId, [u8; 32]>,
    /// Keys whose status, headroom or hint changed.
    pub changed_keys: BTreeSet<VaultKeyId>,
    /// Keys with a new secret.
    pub rotations: Vec<Rotation>,
    /// Caps that did not exist, of keys that did.
    pub new_caps: BTreeSet<(VaultKeyId, Currency)>,
    /// Caps whose sums or bounds changed.
    pub changed_caps: BTreeSet<(VaultKeyId, Currency)>,
    /// New reservations.
    pub new_reservations: BTreeSet<ReservationId>,
    /// Changed reservations and the version each must still have in the store.
    pub changed_reservations: BTreeMap<ReservationId, i64>,
    /// Those of them whose claims differ, or are held now and were not, or the reverse.
    pub changed_claims: BTreeSet<ReservationId>,
    /// New request rows.
    pub new_requests: BTreeSet<Digest16>,
    /// Request rows that point elsewhere now, and the reservation each must still point at.
    pub moved_requests: BTreeMap<Digest16, ReservationId>,
    /// Observations to add, and how many.
    pub flags: BTreeMap<(ReservationId, FlagKind), i64>,
    /// Flags acknowledged, and by whom.
    pub acknowledged: BTreeMap<FlagId, String>,
    /// Audit entries to append, in order.
    pub audit: Vec<NewAuditEntry>,
    /// Stretches of the event feed, in order.
    pub feed: Vec<FeedReport>,
    /// Admin commands carried out under a key.
    pub control_records: Vec<ControlRecord>,
    /// Money is taken again: the note of lost commits goes.
    pub lost_ended: bool,
}

/// A key's new secret, and when its old ones end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// Which key.
    pub vault_key: VaultKeyId,
    /// SHA-256 of the new secret.
    pub secret_hash: [u8; 32],
    /// When every older secret stops working at the latest.
    pub old_expire_at: UnixMs,
}

impl Changes {
    /// True where there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.new_keys.is_empty()
            && self.changed_keys.is_empty()
            && self.rotations.is_empty()
            && self.new_caps.is_empty()
            && self.changed_caps.is_empty()
            && self.new_reservations.is_empty()
            && self.changed_reservations.is_empty()
            && self.new_requests.is_empty()
            && self.moved_requests.is_empty()
            && self.flags.is_empty()
            && self.acknowledged.is_empty()
            && self.audit.is_empty()
            && self.feed.is_empty()
            && self.control_records.is_empty()
            && !self.lost_ended
    }
}
