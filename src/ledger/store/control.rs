//! Writes what operators did, to either database. Rare, so a statement per row will do.

use super::encode::KeyTexts;
use super::rows::{cap_columns, vault_key_columns};
use super::statement::Execute;
use super::{StoreError, missing};
use crate::domain::cap::Cap;
use crate::domain::id::VaultKeyId;
use crate::domain::vault_key::VaultKey;
use crate::ledger::book::Book;
use crate::ledger::lost;

const INSERT_KEY: &str = concat!(
    "/* control::insert_key */ INSERT INTO vault_keys (",
    vault_key_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
);

const INSERT_CAP: &str = concat!(
    "/* control::insert_cap */ INSERT INTO caps (",
    cap_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6)",
);

const UPDATE_KEY: &str = "/* control::keys */
    UPDATE vault_keys SET status = $2, headroom_millionths = $3, secret_hint = $4 WHERE id = $1";

const END_SECRETS: &str = "/* control::keys */
    UPDATE vault_key_secrets SET expires_at_ms = $2
    WHERE vault_key = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2)";

const INSERT_SECRET: &str = "/* control::insert_secret */
    INSERT INTO vault_key_secrets (sha256, vault_key, expires_at_ms) VALUES ($1, $2, NULL)";

const ACKNOWLEDGE: &str = "/* control::records */
    UPDATE flags SET acknowledged_by = $2 WHERE id = $1";

const APPEND_AUDIT: &str = "/* control::records */
    INSERT INTO audit_log (happened_at_ms, actor, action, subject, reason, detail, previous_hash, hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const INSERT_RECORD: &str = "/* control::records */
    INSERT INTO control_requests (digest, fingerprint, subject) VALUES ($1, $2, $3)";

/// Writes new and changed keys with their secrets, and new caps: before the rows of charges, which
/// refer to them.
pub(super) async fn keys(connection: &mut impl Execute, book: &Book) -> Result<(), StoreError> {
    let changes = book.changes();
    for (id, secret) in &changes.new_keys {
        let key = book.vault_key(id).ok_or_else(|| missing(id))?;
        insert_key(connection, key).await?;
        insert_secret(connection, id, secret).await?;
        for cap in &key.caps {
            insert_cap(connection, id, cap).await?;
        }
    }
    for id in &changes.changed_keys {
        let key = book.vault_key(id).ok_or_else(|| missing(id))?;
        let headroom = i64::from(key.headroom.millionths());
        let params = [
            id.as_str().into(),
            key.status.as_str().into(),
            headroom.into(),
            key.secret_hint.as_str().into(),
        ];
        connection.execute(UPDATE_KEY, params).await?;
    }
    for rotation in &changes.rotations {
        let id = &rotation.vault_key;
        let params = [id.as_str().into(), rotation.old_expire_at.0.into()];
        connection.execute(END_SECRETS, params).await?;
        insert_secret(connection, id, &rotation.secret_hash).await?;
    }
    for (id, currency) in &changes.new_caps {
        let cap = book.cap(id, *currency).ok_or_else(|| missing(id))?;
        insert_cap(connection, id, cap).await?;
    }
    Ok(())
}

/// Writes acknowledgements, audit entries, the end of lost commits, and the admin commands that may be
/// repeated.
pub(super) async fn records(connection: &mut impl Execute, book: &Book) -> Result<(), StoreError> {
    let changes = book.changes();
    for (flag, actor) in &changes.acknowledged {
        let params = [flag.0.into(), actor.as_str().into()];
        connection.execute(ACKNOWLEDGE, params).await?;
    }
    if changes.lost_ended {
        connection.execute(lost::END, []).await?;
    }
    for entry in &changes.audit {
        let params = [
            entry.at.0.into(),
            entry.actor.as_str().into(),
            entry.action.into(),
            entry.subject.as_str().into(),
            entry.reason.as_str().into(),
            entry.detail.as_str().into(),
            entry.previous_hash[..].into(),
            entry.hash[..].into(),
        ];
        connection.execute(APPEND_AUDIT, params).await?;
    }
    for record in &changes.control_records {
        let params = [
            record.key.digest.0[..].into(),
            record.key.fingerprint.0[..].into(),
            record.subject.as_str().into(),
        ];
        connection.execute(INSERT_RECORD, params).await?;
    }
    Ok(())
}

async fn insert_key(connection: &mut impl Execute, key: &VaultKey) -> Result<(), StoreError> {
    let texts = KeyTexts::of(key);
    let params = [
        key.id.as_str().into(),
        key.secret_hint.as_str().into(),
        key.billing_period.as_str().into(),
        key.namespace.as_str().into(),
        key.status.as_str().into(),
        key.starts_at.map(|at| at.0).into(),
        key.expires_at.0.into(),
        i64::from(key.headroom.millionths()).into(),
        key.on_duplicate.as_str().into(),
        key.enforcement.as_str().into(),
        texts.permissions.into(),
        texts.max_charge.into(),
        i64::from(key.refusal_status.as_u16()).into(),
        texts.accounts.into(),
        key.require_customer.into(),
        texts.metadata.into(),
        key.created_at.0.into(),
    ];
    connection.execute(INSERT_KEY, params).await?;
    Ok(())
}

async fn insert_cap(
    connection: &mut impl Execute,
    id: &VaultKeyId,
    cap: &Cap,
) -> Result<(), StoreError> {
    let params = [
        id.as_str().into(),
        cap.currency.as_str().into(),
        cap.expected_total.get().into(),
        cap.max_amount.get().into(),
        cap.reserved.get().into(),
        cap.settled.get().into(),
    ];
    connection.execute(INSERT_CAP, params).await?;
    Ok(())
}

async fn insert_secret(
    connection: &mut impl Execute,
    id: &VaultKeyId,
    sha256: &[u8; 32],
) -> Result<(), StoreError> {
    let params = [sha256[..].into(), id.as_str().into()];
    connection.execute(INSERT_SECRET, params).await?;
    Ok(())
}
