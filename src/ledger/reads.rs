//! Look-ups that take no lock and make no decision: authentication, the admin API, readiness.

mod gap;
mod lists;
mod query;
mod roll_up;
#[cfg(test)]
pub(crate) mod source;
mod standing;

use crate::domain::flag::FlagKind;
use crate::domain::id::{AuditId, ReservationId, VaultKeyId};
use crate::domain::reservation::{Request, Reservation, State};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;

use super::feed::FeedCursor;
use super::handle::{LedgerError, Ready};
use super::schema;
use super::store::StoreError;
use super::store::rows::{
    self, KeysWithCaps, cap_columns, request_columns, reservation_columns, vault_key_columns,
};

pub use query::Reads;
pub use roll_up::{CapSums, PeriodCap, PeriodRollUp, StateSums};
pub use standing::{CapStanding, ShownKey, Standing};

/// A page of a list, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<Id> {
    /// 1 to 100.
    pub limit: u32,
    /// Return what comes after this one in the list.
    pub starting_after: Option<Id>,
}

impl<Id> Default for Page<Id> {
    fn default() -> Self {
        Self {
            limit: 10,
            starting_after: None,
        }
    }
}

/// What a page holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed<T> {
    /// Newest first.
    pub data: Vec<T>,
    /// There are older ones.
    pub has_more: bool,
}

/// Which vault keys to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VaultKeyFilter {
    /// Of this billing period.
    pub billing_period: Option<String>,
    /// Of this namespace.
    pub namespace: Option<String>,
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

/// Which flags to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlagFilter {
    /// Only those that somebody acknowledged, or that nobody did.
    pub acknowledged: Option<bool>,
    /// Of reservations of this vault key.
    pub vault_key: Option<VaultKeyId>,
    /// Of this kind.
    pub kind: Option<FlagKind>,
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
    /// See [`crate::ledger::book::audit_hash`].
    pub hash: [u8; 32],
}

impl AuditEntry {
    /// True where the hash is that of the entry as it stands.
    pub fn is_intact(&self) -> bool {
        let fields = [
            &self.actor,
            &self.action,
            &self.subject,
            &self.reason,
            &self.detail,
        ];
        super::book::audit_hash(&self.previous_hash, self.at.0, fields.map(String::as_str))
            == self.hash
    }
}

const KEY_BY_SECRET: &str = concat!(
    "/* reads::vault_key_by_secret */ SELECT ",
    vault_key_columns!(),
    ", ",
    cap_columns!(),
    " FROM vault_keys LEFT JOIN caps ON caps.vault_key = vault_keys.id
     WHERE id = (SELECT vault_key FROM vault_key_secrets
        WHERE sha256 = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2))
     ORDER BY id, currency",
);

const KEY_BY_ID: &str = concat!(
    "/* reads::vault_key */ SELECT ",
    vault_key_columns!(),
    ", ",
    cap_columns!(),
    " FROM vault_keys LEFT JOIN caps ON caps.vault_key = vault_keys.id
     WHERE id = $1 ORDER BY id, currency",
);

const RESERVATION: &str = concat!(
    "/* reads::reservation */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE id = $1",
);

const OBJECT_OWNER: &str = concat!(
    "/* reads::object_owner */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE object_id = $1 AND account = $2
     ORDER BY CASE WHEN state = 'released' THEN 1 ELSE 0 END, id DESC LIMIT 1",
);

const REQUESTS: &str = concat!(
    "/* reads::requests */ SELECT ",
    request_columns!(),
    " FROM requests WHERE reservation = $1 ORDER BY created_at_ms, digest LIMIT $2",
);

const UNRESOLVED: &str = concat!(
    "/* reads::unresolved */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE state IN ('held', 'open') AND id > $1 ORDER BY id LIMIT $2",
);

/// Rows to which an event under their key may be news; those that are still reserved first.
const BY_UPSTREAM_KEY: &str = concat!(
    "/* reads::by_upstream_key */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE account = $2 AND id IN (
        SELECT id FROM reservations WHERE upstream_key = $1
            AND state IN ('held', 'open', 'released', 'written_off')
        UNION ALL
        SELECT id FROM reservations WHERE upstream_key = $1
            AND state = 'in_flight' AND deadline_ms > 0)
     ORDER BY CASE WHEN state IN ('in_flight', 'held', 'open') THEN 0 ELSE 1 END, id DESC LIMIT 20",
);

const FEED_CURSOR: &str = "/* reads::feed_cursor */
    SELECT account, read_until_ms, read_at_ms FROM feed_cursors WHERE account = $1";

const NEXT_ACCOUNT: &str = "/* reads::next_account */
    SELECT account FROM reservations WHERE account <> '' AND account > $1 ORDER BY account LIMIT 1";

/// Idempotency keys shown of one reservation: a client that retries with new keys makes many.
const REQUESTS_MAX: i64 = 100;

impl Reads {
    /// The vault key a secret opens now; `None` for an unknown secret or one whose time is over.
    pub async fn vault_key_by_secret(
        &self,
        secret_hash: &[u8; 32],
    ) -> Result<Option<VaultKey>, LedgerError> {
        let now = self.clock.now();
        self.key(KEY_BY_SECRET, vec![secret_hash[..].into(), now.0.into()])
            .await
    }

    /// A vault key by id.
    pub async fn vault_key(&self, id: &VaultKeyId) -> Result<Option<VaultKey>, LedgerError> {
        self.key(KEY_BY_ID, vec![id.as_str().into()]).await
    }

    async fn key(
        &self,
        sql: &'static str,
        params: Vec<super::store::statement::Param>,
    ) -> Result<Option<VaultKey>, LedgerError> {
        let mut keys = KeysWithCaps::default();
        self.fetch(sql, params, |row| keys.add(row)).await?;
        Ok(keys.0.pop())
    }

    /// A reservation by id.
    pub async fn reservation(&self, id: ReservationId) -> Result<Option<Reservation>, LedgerError> {
        let found = self.fetch(RESERVATION, vec![id.0.into()], rows::reservation);
        Ok(found.await?.pop())
    }

    /// Reservations that are held or open, oldest first, after the one named.
    pub async fn unresolved(
        &self,
        after: Option<ReservationId>,
        limit: u32,
    ) -> Result<Vec<Reservation>, LedgerError> {
        let after = after.map_or(i64::MIN, |id| id.0);
        let params = vec![after.into(), i64::from(limit).into()];
        self.fetch(UNRESOLVED, params, rows::reservation).await
    }

    /// Reservations without a settled outcome whose requests Stripe saw under this key, at most 20.
    pub async fn by_upstream_key(
        &self,
        account: &str,
        upstream_key: &str,
    ) -> Result<Vec<Reservation>, LedgerError> {
        let params = vec![upstream_key.into(), account.into()];
        self.fetch(BY_UPSTREAM_KEY, params, rows::reservation).await
    }

    /// How far the event feed of an account was read; `None` where it never was.
    pub async fn feed_cursor(&self, account: &str) -> Result<Option<FeedCursor>, LedgerError> {
        let found = self.fetch(FEED_CURSOR, vec![account.into()], rows::feed_cursor);
        Ok(found.await?.pop())
    }

    /// The connected account with reservations that comes after this one in order.
    pub async fn next_account(&self, after: &str) -> Result<Option<String>, LedgerError> {
        let found = self.fetch(NEXT_ACCOUNT, vec![after.into()], |row| row.text(0));
        Ok(found.await?.pop())
    }

    /// The reservation that owns an object: the unreleased one, else the latest.
    pub async fn object_owner(
        &self,
        account: &str,
        object_id: &str,
    ) -> Result<Option<Reservation>, LedgerError> {
        let params = vec![object_id.into(), account.into()];
        Ok(self
            .fetch(OBJECT_OWNER, params, rows::reservation)
            .await?
            .pop())
    }

    /// The idempotency keys that point at a reservation, oldest first, at most 100.
    pub async fn requests(&self, reservation: ReservationId) -> Result<Vec<Request>, LedgerError> {
        let params = vec![reservation.0.into(), REQUESTS_MAX.into()];
        self.fetch(REQUESTS, params, rows::request).await
    }

    /// Whether the database answers and which schema it has. Writes nothing.
    pub async fn ready(&self) -> Result<Ready, LedgerError> {
        let version = |text: String| {
            let version = text.parse().ok();
            version.ok_or(StoreError::Unreadable(text))
        };
        let found = self
            .fetch(schema::APPLIED, Vec::new(), |row| version(row.text(0)?))
            .await?;
        let schema_version = found.first().copied().ok_or(LedgerError::Inconsistent)?;
        let lost = self.lost().await?.is_some();
        Ok(Ready {
            schema_version,
            lost,
        })
    }
}
