//! The audit log: who did what, each entry chained to the one before.

use sha2::{Digest as _, Sha256};

use crate::domain::time::UnixMs;

/// Who did what, chained to the entry before by its hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAuditEntry {
    /// When.
    pub at: UnixMs,
    /// The name of the admin token.
    pub actor: String,
    /// Such as `vault_key.revoke`.
    pub action: &'static str,
    /// The id of what it was done to.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// What changed, in words.
    pub detail: String,
    /// The hash of the entry before.
    pub previous_hash: [u8; 32],
    /// SHA-256 over the previous hash and every field above.
    pub hash: [u8; 32],
}

impl NewAuditEntry {
    pub(super) fn chained(
        previous_hash: [u8; 32],
        at_ms: i64,
        fields: [&str; 5],
        action: &'static str,
    ) -> Self {
        let hash = audit_hash(&previous_hash, at_ms, fields);
        let [actor, _, subject, reason, detail] = fields.map(str::to_owned);
        let at = UnixMs(at_ms);
        Self {
            at,
            actor,
            action,
            subject,
            reason,
            detail,
            previous_hash,
            hash,
        }
    }
}

/// SHA-256 over the previous hash, the time and the fields, each fenced by its length. Anyone can check
/// the chain: a changed or missing entry breaks it.
pub fn audit_hash(previous_hash: &[u8; 32], at_ms: i64, fields: [&str; 5]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(previous_hash);
    hash.update(at_ms.to_be_bytes());
    for field in fields {
        hash.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(field.as_bytes());
    }
    hash.finalize().into()
}
