//! What reading a gap needs: whether commits may be lost, whose a charge may be.

use super::Reads;
use crate::domain::reservation::Reservation;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::handle::LedgerError;
use crate::ledger::lost::{self, LostCommits};
use crate::ledger::store::rows::{
    self, KeysWithCaps, cap_columns, reservation_columns, vault_key_columns,
};

const UNANSWERED: &str = concat!(
    "/* gap::unanswered */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE id IN (
        SELECT id FROM reservations
            WHERE state = 'in_flight' AND upstream_key = $1 AND account = $2
        UNION ALL
        SELECT id FROM reservations
            WHERE state IN ('held', 'open') AND state = 'held' AND upstream_key = $1 AND account = $2
     ) ORDER BY id",
);

const KEYS_BETWEEN: &str = concat!(
    "/* gap::keys_between */ SELECT ",
    vault_key_columns!(),
    ", ",
    cap_columns!(),
    " FROM vault_keys LEFT JOIN caps ON caps.vault_key = vault_keys.id
     WHERE expires_at_ms > $1 AND created_at_ms <= $2 ORDER BY id, currency",
);

impl Reads {
    /// Set while commits may be lost and no money is taken.
    pub async fn lost(&self) -> Result<Option<LostCommits>, LedgerError> {
        let found = self
            .fetch(lost::NOTE, Vec::new(), |row| row.text(0))
            .await?;
        Ok(found.first().map(|text| LostCommits::from_text(text)))
    }

    /// Reservations in flight or held that were sent under this key, oldest first.
    pub async fn unanswered(
        &self,
        upstream_key: &str,
        account: &str,
    ) -> Result<Vec<Reservation>, LedgerError> {
        let params = vec![upstream_key.into(), account.into()];
        self.fetch(UNANSWERED, params, rows::reservation).await
    }

    /// Every vault key whose time overlaps with this one, whatever became of it.
    pub async fn vault_keys_between(
        &self,
        from: UnixMs,
        to: UnixMs,
    ) -> Result<Vec<VaultKey>, LedgerError> {
        let mut keys = KeysWithCaps::default();
        let params = vec![from.0.into(), to.0.into()];
        self.fetch(KEYS_BETWEEN, params, |row| keys.add(row))
            .await?;
        Ok(keys.0)
    }

    /// Whether the ledger holds live money; `None` before a real key was pinned.
    pub async fn livemode(&self) -> Result<Option<bool>, LedgerError> {
        let mode = self.fact("mode").await?;
        Ok(mode.map(|mode| mode == "live"))
    }

    /// The time on the store's clock.
    pub async fn time(&self) -> Result<UnixMs, LedgerError> {
        self.now().await
    }
}
