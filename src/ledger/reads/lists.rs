//! Lists, newest first, a page at a time.

use super::query::Select;
use super::{AuditEntry, FlagFilter, Listed, Page, Reads, ReservationFilter, VaultKeyFilter};
use crate::domain::id::{AuditId, FlagId, ReservationId, VaultKeyId};
use crate::domain::reservation::Reservation;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::flag::Flag;
use crate::ledger::handle::LedgerError;
use crate::ledger::store::StoreError;
use crate::ledger::store::rows::{
    self, Cells, KeysWithCaps, cap_columns, flag_columns, reservation_columns, vault_key_columns,
};

/// The longest page.
const PAGE_MAX: u32 = 100;

impl Reads {
    /// Vault keys with their caps.
    pub async fn vault_keys(
        &self,
        filter: &VaultKeyFilter,
        page: &Page<VaultKeyId>,
    ) -> Result<Listed<VaultKey>, LedgerError> {
        let mut select = Select::new(concat!(
            "/* lists::vault_keys */ SELECT ",
            vault_key_columns!(),
            ", ",
            cap_columns!(),
            " FROM (SELECT * FROM vault_keys WHERE true",
        ));
        if let Some(period) = &filter.billing_period {
            select.with(" AND billing_period = ?", period.as_str());
        }
        if let Some(namespace) = &filter.namespace {
            select.with(" AND namespace = ?", namespace.as_str());
        }
        if let Some(id) = &page.starting_after {
            select.with(
                " AND (created_at_ms, id) < (SELECT created_at_ms, id FROM vault_keys WHERE id = ?)",
                id.as_str(),
            );
        }
        select.with(
            " ORDER BY created_at_ms DESC, id DESC LIMIT ?) AS page
             LEFT JOIN caps ON caps.vault_key = page.id
             ORDER BY created_at_ms DESC, id DESC, currency",
            one_more(page),
        );
        let mut keys = KeysWithCaps::default();
        self.select(select, |row| keys.add(row)).await?;
        Ok(listed(keys.0, page))
    }

    /// Reservations.
    pub async fn reservations(
        &self,
        filter: &ReservationFilter,
        page: &Page<ReservationId>,
    ) -> Result<Listed<Reservation>, LedgerError> {
        let mut select = Select::new(concat!(
            "/* lists::reservations */ SELECT ",
            reservation_columns!(),
            " FROM reservations WHERE true",
        ));
        if let Some(id) = &filter.vault_key {
            select.with(" AND vault_key = ?", id.as_str());
        }
        if let Some(state) = filter.state {
            select.with(" AND state = ?", state.as_str());
        }
        if let Some(customer) = &filter.customer {
            select.with(" AND customer = ?", customer.as_str());
        }
        if let Some(period) = &filter.billing_period {
            select.with(
                " AND vault_key IN (SELECT id FROM vault_keys WHERE billing_period = ?)",
                period.as_str(),
            );
        }
        if let Some(id) = page.starting_after {
            select.with(" AND id < ?", id.0);
        }
        select.with(" ORDER BY id DESC LIMIT ?", one_more(page));
        Ok(listed(self.select(select, rows::reservation).await?, page))
    }

    /// Flags.
    pub async fn flags(
        &self,
        filter: &FlagFilter,
        page: &Page<FlagId>,
    ) -> Result<Listed<Flag>, LedgerError> {
        let mut select = Select::new(concat!(
            "/* lists::flags */ SELECT ",
            flag_columns!(),
            " FROM flags WHERE true",
        ));
        if let Some(acknowledged) = filter.acknowledged {
            select.with(" AND (acknowledged_by IS NOT NULL) = ?", acknowledged);
        }
        if let Some(id) = &filter.vault_key {
            select.with(" AND vault_key = ?", id.as_str());
        }
        if let Some(kind) = filter.kind {
            select.with(" AND kind = ?", kind.as_str());
        }
        if let Some(id) = page.starting_after {
            select.with(" AND id < ?", id.0);
        }
        select.with(" ORDER BY id DESC LIMIT ?", one_more(page));
        Ok(listed(self.select(select, rows::flag).await?, page))
    }

    /// The audit log.
    pub async fn audit_log(&self, page: &Page<AuditId>) -> Result<Listed<AuditEntry>, LedgerError> {
        let mut select = Select::new(
            "/* lists::audit_log */ SELECT id, happened_at_ms, actor, action, subject, reason,
                detail, previous_hash, hash FROM audit_log WHERE true",
        );
        if let Some(id) = page.starting_after {
            select.with(" AND id < ?", id.0);
        }
        select.with(" ORDER BY id DESC LIMIT ?", one_more(page));
        Ok(listed(self.select(select, audit_entry).await?, page))
    }
}

fn limit<Id>(page: &Page<Id>) -> u32 {
    page.limit.clamp(1, PAGE_MAX)
}

/// One more than the page holds tells whether there are more.
fn one_more<Id>(page: &Page<Id>) -> i64 {
    i64::from(limit(page)) + 1
}

fn listed<T, Id>(mut data: Vec<T>, page: &Page<Id>) -> Listed<T> {
    let limit = usize::try_from(limit(page)).unwrap_or(usize::MAX);
    let has_more = data.len() > limit;
    data.truncate(limit);
    Listed { data, has_more }
}

fn audit_entry(row: &dyn Cells) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        id: AuditId(row.int(0)?),
        at: UnixMs(row.int(1)?),
        actor: row.text(2)?,
        action: row.text(3)?,
        subject: row.text(4)?,
        reason: row.text(5)?,
        detail: row.text(6)?,
        previous_hash: rows::sized(row.bytes(7)?)?,
        hash: rows::sized(row.bytes(8)?)?,
    })
}
