//! Flags as the ledger keeps them: one row per reservation and kind, or per object and
//! kind where no reservation knows the object, with a count.

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
    /// The reservation it is about; `None` where it is about an object that no reservation knows.
    pub reservation: Option<ReservationId>,
    /// The vault key of that reservation.
    pub vault_key: Option<VaultKeyId>,
    /// The object, where it is about one that no reservation knows.
    pub object_id: Option<String>,
    /// The account of that object; empty for the platform's own, and with a reservation.
    pub account: String,
    /// The customer of that reservation or object.
    pub customer: Option<String>,
    /// When it was first observed.
    pub first_seen_at: UnixMs,
    /// When it was last observed.
    pub last_seen_at: UnixMs,
    /// Who acknowledged it; `None` while it is open.
    pub acknowledged_by: Option<String>,
}
