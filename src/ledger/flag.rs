//! Flags as the ledger keeps them: one row per reservation and kind, with a count.

use crate::domain::flag::FlagKind;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::time::UnixMs;

/// A recorded observation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flag {
    /// Its id.
    pub id: FlagId,
    /// What was observed.
    pub kind: FlagKind,
    /// How often.
    pub count: i64,
    /// The reservation it is about.
    pub reservation: ReservationId,
    /// The vault key of that reservation.
    pub vault_key: VaultKeyId,
    /// The customer of that reservation.
    pub customer: Option<String>,
    /// When it was first observed.
    pub first_seen_at: UnixMs,
    /// When it was last observed.
    pub last_seen_at: UnixMs,
    /// Who acknowledged it; `None` while it is open.
    pub acknowledged_by: Option<String>,
}
