//! Look-ups that take no lock and make no decision: authentication, the admin API, readiness.

use crate::domain::id::{AuditId, ReservationId, VaultKeyId};
use crate::domain::reservation::{Reservation, State};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;

use super::handle::LedgerError;

/// Reads from whichever database the ledger is in.
#[derive(Clone, Debug)]
pub struct Reads {}

/// A page of a list, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page<Id> {
    /// 1 to 100.
    pub limit: u32,
    /// Return what comes after this one in the list.
    pub starting_after: Option<Id>,
}

/// Which reservations to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReservationFilter {
    /// Of this vault key.
    pub vault_key: Option<VaultKeyId>,
    /// In this state.
    pub state: Option<State>,
    /// Of this customer.
    pub customer: Option<String>,
    /// Of this billing period.
    pub billing_period: Option<String>,
}

/// One entry of the audit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: UnixMs,
    /// The name of the admin token.
    pub actor: String,
    /// Such as `vault_key.revoke`.
    pub action: String,
    /// The id of what it was done to.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// What changed, in words.
    pub detail: String,
    /// The hash of the entry before.
    pub previous_hash: [u8; 32],
    /// See [`crate::ledger::book`].
    pub hash: [u8; 32],
}

impl Reads {
    /// The vault key a secret opens now; `None` for an unknown secret or one whose time is over.
    pub async fn vault_key_by_secret(
        &self,
        secret_hash: &[u8; 32],
    ) -> Result<Option<VaultKey>, LedgerError> {
        let _ = secret_hash;
        Err(LedgerError::Unavailable)
    }

    /// A reservation by id.
    pub async fn reservation(&self, id: ReservationId) -> Result<Option<Reservation>, LedgerError> {
        let _ = id;
        Err(LedgerError::Unavailable)
    }

    /// The reservation that owns an object: the unreleased one, else the latest.
    pub async fn object_owner(
        &self,
        account: &str,
        object_id: &str,
    ) -> Result<Option<Reservation>, LedgerError> {
        let _ = (account, object_id);
        Err(LedgerError::Unavailable)
    }
}
