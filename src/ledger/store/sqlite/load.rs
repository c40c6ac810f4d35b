//! Opens a transaction and loads the working set, in one round trip to the database's thread.

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::json;
use super::json::JsonRows;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::time::UnixMs;
use crate::ledger::book::{ControlRecord, Loaded, Wanted};
use crate::ledger::command::ControlKey;
use crate::ledger::lost::LostCommits;
use crate::ledger::store::rows::{
    self, Cells, KeysWithCaps, VAULT_KEY_COLUMNS, cap_columns, flag_columns, request_columns,
    reservation_columns, vault_key_columns,
};
use crate::ledger::store::{OVERDUE_MAX, StoreError};

/// Rows of one answer are told apart by their number of columns.
const KEY_WITH_CAP: usize = VAULT_KEY_COLUMNS + 6;
const REQUEST: usize = 6;
const RESERVATION: usize = 31;
const FLAG: usize = 11;
const FEED_CURSOR: usize = 3;
const AUDIT_TAIL: usize = 1;
const LOST: usize = 2;

const LOAD: &str = concat!(
    "/* sqlite load::load_all */ BEGIN IMMEDIATE; ",
    "SELECT ",
    vault_key_columns!(),
    ", ",
    cap_columns!(),
    " FROM vault_keys LEFT JOIN caps ON caps.vault_key = vault_keys.id
     WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id, currency; ",
    "SELECT ",
    request_columns!(),
    " FROM requests WHERE digest IN (SELECT unhex(value) FROM json_each($2)); ",
    "SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE id IN (
        SELECT value FROM json_each($3)
        UNION ALL
        SELECT reservation FROM requests
            WHERE digest IN (SELECT unhex(value) FROM json_each($2))
        UNION ALL
        SELECT id FROM reservations
            WHERE slot_claim IN (SELECT unhex(value) FROM json_each($4)) AND holds_claims = 1
        UNION ALL
        SELECT id FROM reservations
            WHERE intent_claim IN (SELECT unhex(value) FROM json_each($4)) AND holds_claims = 1
        UNION ALL
        SELECT reservations.id FROM json_each($5) AS wanted CROSS JOIN reservations
            ON reservations.account = wanted.value->>0 AND reservations.object_id = wanted.value->>1
        UNION ALL
        SELECT id FROM (SELECT id FROM reservations
            WHERE state = 'in_flight' AND deadline_ms <= $6 ORDER BY deadline_ms LIMIT $7)
     ); ",
    "SELECT ",
    flag_columns!(),
    " FROM flags WHERE id IN (SELECT value FROM json_each($8)); ",
    "SELECT account, read_until_ms, read_at_ms FROM feed_cursors
     WHERE account IN (SELECT value FROM json_each($10)); ",
    "SELECT hash FROM audit_log WHERE $9 ORDER BY id DESC LIMIT 1; ",
    "SELECT name, value FROM meta WHERE name = 'lost_commits'",
);

const CONTROL_RECORDS: &str = "/* sqlite load::control_records */
    SELECT digest, fingerprint, subject FROM control_requests
    WHERE digest IN (SELECT unhex(value) FROM json_each($1))";

/// Opens a transaction that nobody else can write beside and loads what is wanted. `fresh_ids` is the
/// store's to fill in.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
    now: UnixMs,
) -> Result<Loaded, StoreError> {
    let records = control_records(connection, wanted).await?;
    if records.is_empty() {
        return load_all(connection, wanted, now).await;
    }
    let mut wanted = wanted.clone();
    for record in &records {
        wanted.add_subject(&record.subject);
    }
    let mut loaded = load_all(connection, &wanted, now).await?;
    loaded.control_records = records;
    Ok(loaded)
}

/// Read before the transaction: rows are only ever added, and by this process alone.
async fn control_records(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
) -> Result<Vec<ControlRecord>, StoreError> {
    if wanted.control_keys.is_empty() {
        return Ok(Vec::new());
    }
    let found = sqlx::query(CONTROL_RECORDS)
        .bind(json::digests(&wanted.control_keys))
        .fetch_all(connection)
        .await
        .map_err(StoreError::Unavailable)?;
    let record = |row: &SqliteRow| {
        Ok(ControlRecord {
            key: ControlKey {
                digest: rows::digest(row.bytes(0)?)?,
                fingerprint: rows::digest(row.bytes(1)?)?,
            },
            subject: row.text(2)?,
        })
    };
    found.iter().map(record).collect()
}

async fn load_all(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
    now: UnixMs,
) -> Result<Loaded, StoreError> {
    let mut objects = JsonRows::new();
    for (account, object_id) in &wanted.objects {
        objects.row().text(account).text(object_id);
    }
    let numbers = |ids: &mut dyn Iterator<Item = i64>| json::numbers(ids);
    let found = sqlx::query(LOAD)
        .bind(json::texts(
            wanted.vault_keys.iter().map(VaultKeyId::as_str),
        ))
        .bind(json::digests(&wanted.requests))
        .bind(numbers(
            &mut wanted.reservations.iter().map(|ReservationId(id)| *id),
        ))
        .bind(json::digests(&wanted.claims))
        .bind(objects.into_text())
        .bind(now.0)
        .bind(if wanted.overdue { OVERDUE_MAX } else { 0 })
        .bind(numbers(&mut wanted.flags.iter().map(|FlagId(id)| *id)))
        .bind(wanted.audit_tail)
        .bind(json::texts(wanted.feeds.iter().map(String::as_str)))
        .fetch_all(connection)
        .await
        .map_err(StoreError::Unavailable)?;
    sort_out(&found, now)
}

fn sort_out(found: &[SqliteRow], now: UnixMs) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded {
        now,
        ..Loaded::default()
    };
    let mut keys = KeysWithCaps::default();
    for row in found {
        match row.len() {
            KEY_WITH_CAP => keys.add(row)?,
            REQUEST => loaded.requests.push(rows::request(row)?),
            RESERVATION => loaded.reservations.push(rows::reservation(row)?),
            FLAG => loaded.flags.push(rows::flag(row)?),
            FEED_CURSOR => loaded.feed_cursors.push(rows::feed_cursor(row)?),
            AUDIT_TAIL => loaded.audit_tail = rows::sized(row.bytes(0)?)?,
            LOST => loaded.lost = Some(LostCommits::from_text(&row.text(1)?)),
            columns => {
                return Err(StoreError::Unreadable(format!(
                    "a row of {columns} columns"
                )));
            }
        }
    }
    loaded.vault_keys = keys.0;
    Ok(loaded)
}
