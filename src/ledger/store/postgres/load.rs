//! Opens a transaction, locks the vault keys in order, then loads the rest of the working set.

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::write_error;
use crate::domain::digest::Digest16;
use crate::domain::id::VaultKeyId;
use crate::domain::reservation::{Request, Reservation};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::book::{ControlRecord, Loaded, Wanted};
use crate::ledger::command::ControlKey;
use crate::ledger::feed::FeedCursor;
use crate::ledger::flag::Flag;
use crate::ledger::lost::LostCommits;
use crate::ledger::store::rows::{
    self, Cells as _, cap_columns, flag_columns, request_columns, reservation_columns,
    vault_key_columns,
};
use crate::ledger::store::{OVERDUE_MAX, StoreError};

const LOCK_KEYS: &str = concat!(
    "/* postgres load::lock_keys */ SELECT ",
    vault_key_columns!(),
    " FROM vault_keys WHERE id = ANY($1) ORDER BY id FOR UPDATE",
);

/// The time is told after the locks are held, so that waiting for them does not make it stale.
const CAPS_AND_TIME: &str = concat!(
    "/* postgres load::caps_and_time */ SELECT ",
    cap_columns!(),
    ", now_ms, lost
     FROM (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms,
         (SELECT value FROM meta WHERE name = 'lost_commits') AS lost) AS clock
     LEFT JOIN caps ON vault_key = ANY($1) ORDER BY vault_key, currency",
);

const REQUESTS: &str = concat!(
    "/* postgres load::requests */ SELECT ",
    request_columns!(),
    " FROM requests WHERE digest = ANY($1)",
);

const RESERVATIONS: &str = concat!(
    "/* postgres load::reservations */ SELECT ",
    reservation_columns!(),
    " FROM reservations WHERE id = ANY(ARRAY(
        SELECT unnest($1::BIGINT[])
        UNION ALL
        SELECT id FROM reservations
            WHERE slot_claim IS NOT NULL AND slot_claim = ANY($2) AND state <> 'released'
        UNION ALL
        SELECT id FROM reservations
            WHERE intent_claim IS NOT NULL AND intent_claim = ANY($2) AND state <> 'released'
        UNION ALL
        SELECT reservations.id FROM unnest($3::TEXT[], $4::TEXT[]) AS wanted (account, object_id)
            JOIN reservations ON reservations.object_id = wanted.object_id
                AND reservations.account = wanted.account
            WHERE reservations.object_id IS NOT NULL
        UNION ALL
        SELECT id FROM (SELECT id FROM reservations
            WHERE state = 'in_flight' AND deadline_ms <= $5 ORDER BY deadline_ms LIMIT $6) AS overdue
     ))",
);

const FEED_CURSORS: &str = "/* postgres load::feed_cursors */
    SELECT account, read_until_ms, read_at_ms FROM feed_cursors WHERE account = ANY($1)";

const FLAGS: &str = concat!(
    "/* postgres load::flags */ SELECT ",
    flag_columns!(),
    " FROM flags WHERE id = ANY($1)",
);

const CONTROL_RECORDS: &str = "/* postgres load::control_records */
    SELECT digest, fingerprint, subject FROM control_requests WHERE digest = ANY($1)";

/// One writer of the audit log at a time; the number is this ledger's own.
const LOCK_AUDIT: &str = "/* postgres load::audit_tail */ SELECT pg_advisory_xact_lock(7305792810)";

const AUDIT_TAIL: &str =
    "/* postgres load::audit_tail */ SELECT hash FROM audit_log ORDER BY id DESC LIMIT 1";

/// 42 bits of milliseconds last until 2109; the other 11 tell blocks of one millisecond apart.
const NEXT_BLOCK: &str = "/* postgres load::next_block */
    SELECT (CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) << 21)
        | ((nextval('reservation_id_blocks') & 2047) << 10)";

/// Opens a transaction and loads what is wanted. `fresh_ids` is the store's to fill in.
pub(super) async fn load(
    connection: &mut PgConnection,
    wanted: &Wanted,
    offset_ms: i64,
) -> Result<Loaded, StoreError> {
    // The database's default may be another level, on which a lock does not show what was committed before.
    sqlx::query("/* postgres load */ BEGIN ISOLATION LEVEL READ COMMITTED")
        .execute(&mut *connection)
        .await
        .map_err(StoreError::Unavailable)?;
    // Rows of these are only ever added, and a unique index stops a second one.
    let control_records = control_records(connection, wanted).await?;
    if control_records.is_empty() {
        return load_all(connection, wanted, offset_ms).await;
    }
    let mut wanted = wanted.clone();
    for record in &control_records {
        wanted.add_subject(&record.subject);
    }
    let loaded = load_all(connection, &wanted, offset_ms).await?;
    Ok(Loaded {
        control_records,
        ..loaded
    })
}

/// The first of a block of reservation ids that nobody else has.
pub(super) async fn next_block(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let row = sqlx::query(NEXT_BLOCK)
        .fetch_one(connection)
        .await
        .map_err(write_error)?;
    row.int(0)
}

async fn load_all(
    connection: &mut PgConnection,
    wanted: &Wanted,
    offset_ms: i64,
) -> Result<Loaded, StoreError> {
    let mut vault_keys = lock_keys(connection, wanted).await?;
    if wanted.audit_tail {
        sqlx::query(LOCK_AUDIT)
            .execute(&mut *connection)
            .await
            .map_err(write_error)?;
    }
    let (now, lost) = caps_and_time(connection, &mut vault_keys).await?;
    let now = now.plus_ms(offset_ms);
    let requests = requests(connection, wanted).await?;
    let reservations = reservations(connection, wanted, &requests, now).await?;
    Ok(Loaded {
        now,
        vault_keys,
        reservations,
        requests,
        flags: flags(connection, wanted).await?,
        control_records: Vec::new(),
        feed_cursors: feed_cursors(connection, wanted).await?,
        audit_tail: audit_tail(connection, wanted).await?,
        lost,
        fresh_ids: Vec::new(),
    })
}

async fn lock_keys(
    connection: &mut PgConnection,
    wanted: &Wanted,
) -> Result<Vec<VaultKey>, StoreError> {
    if wanted.vault_keys.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = wanted.vault_keys.iter().map(VaultKeyId::as_str).collect();
    let found = sqlx::query(LOCK_KEYS).bind(ids).fetch_all(connection).await;
    found
        .map_err(write_error)?
        .iter()
        .map(|row| rows::vault_key(row))
        .collect()
}

/// Gives each key its caps; the time is the database's. Also tells whether commits may be lost.
async fn caps_and_time(
    connection: &mut PgConnection,
    vault_keys: &mut [VaultKey],
) -> Result<(UnixMs, Option<LostCommits>), StoreError> {
    let ids: Vec<&str> = vault_keys.iter().map(|key| key.id.as_str()).collect();
    let found = sqlx::query(CAPS_AND_TIME)
        .bind(ids)
        .fetch_all(connection)
        .await;
    let found = found.map_err(write_error)?;
    let mut now = None;
    for row in &found {
        let lost = row.text_or_null(7)?;
        let lost = lost.map(|text| LostCommits::from_text(&text));
        now = Some((UnixMs(row.int(6)?), lost));
        let Some((id, cap)) = rows::cap(row, 0)? else {
            continue;
        };
        // Both lists are in the order of the ids.
        if let Ok(index) = vault_keys.binary_search_by(|key| key.id.cmp(&id))
            && let Some(key) = vault_keys.get_mut(index)
        {
            key.caps.push(cap);
        }
    }
    now.ok_or_else(|| StoreError::Unreadable("no time".to_owned()))
}

async fn requests(
    connection: &mut PgConnection,
    wanted: &Wanted,
) -> Result<Vec<Request>, StoreError> {
    if wanted.requests.is_empty() {
        return Ok(Vec::new());
    }
    let digests = bytes(&wanted.requests);
    let found = sqlx::query(REQUESTS)
        .bind(digests)
        .fetch_all(connection)
        .await;
    found
        .map_err(write_error)?
        .iter()
        .map(|row| rows::request(row))
        .collect()
}

async fn reservations(
    connection: &mut PgConnection,
    wanted: &Wanted,
    requests: &[Request],
    now: UnixMs,
) -> Result<Vec<Reservation>, StoreError> {
    let mut ids: Vec<i64> = wanted.reservations.iter().map(|id| id.0).collect();
    ids.extend(requests.iter().map(|request| request.reservation.0));
    let nothing = ids.is_empty() && wanted.claims.is_empty() && wanted.objects.is_empty();
    if nothing && !wanted.overdue {
        return Ok(Vec::new());
    }
    let objects = wanted.objects.iter();
    let (accounts, object_ids): (Vec<&str>, Vec<&str>) = objects
        .map(|(account, id)| (account.as_str(), id.as_str()))
        .unzip();
    let found = sqlx::query(RESERVATIONS)
        .bind(ids)
        .bind(bytes(&wanted.claims))
        .bind(accounts)
        .bind(object_ids)
        .bind(now.0)
        .bind(if wanted.overdue { OVERDUE_MAX } else { 0 })
        .fetch_all(connection)
        .await;
    found
        .map_err(write_error)?
        .iter()
        .map(|row| rows::reservation(row))
        .collect()
}

async fn feed_cursors(
    connection: &mut PgConnection,
    wanted: &Wanted,
) -> Result<Vec<FeedCursor>, StoreError> {
    if wanted.feeds.is_empty() {
        return Ok(Vec::new());
    }
    let accounts: Vec<&str> = wanted.feeds.iter().map(String::as_str).collect();
    let found = sqlx::query(FEED_CURSORS)
        .bind(accounts)
        .fetch_all(connection)
        .await;
    found
        .map_err(write_error)?
        .iter()
        .map(|row| rows::feed_cursor(row))
        .collect()
}

async fn flags(connection: &mut PgConnection, wanted: &Wanted) -> Result<Vec<Flag>, StoreError> {
    if wanted.flags.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = wanted.flags.iter().map(|id| id.0).collect();
    let found = sqlx::query(FLAGS).bind(ids).fetch_all(connection).await;
    found
        .map_err(write_error)?
        .iter()
        .map(|row| rows::flag(row))
        .collect()
}

async fn control_records(
    connection: &mut PgConnection,
    wanted: &Wanted,
) -> Result<Vec<ControlRecord>, StoreError> {
    if wanted.control_keys.is_empty() {
        return Ok(Vec::new());
    }
    let digests = bytes(&wanted.control_keys);
    let found = sqlx::query(CONTROL_RECORDS)
        .bind(digests)
        .fetch_all(connection)
        .await;
    let record = |row: &PgRow| {
        Ok(ControlRecord {
            key: ControlKey {
                digest: rows::digest(row.bytes(0)?)?,
                fingerprint: rows::digest(row.bytes(1)?)?,
            },
            subject: row.text(2)?,
        })
    };
    found.map_err(write_error)?.iter().map(record).collect()
}

async fn audit_tail(
    connection: &mut PgConnection,
    wanted: &Wanted,
) -> Result<[u8; 32], StoreError> {
    if !wanted.audit_tail {
        return Ok([0; 32]);
    }
    let found = sqlx::query(AUDIT_TAIL)
        .fetch_optional(connection)
        .await
        .map_err(write_error)?;
    found.map_or(Ok([0; 32]), |row| rows::sized(row.bytes(0)?))
}

fn bytes<'a>(digests: impl IntoIterator<Item = &'a Digest16>) -> Vec<&'a [u8]> {
    digests.into_iter().map(|digest| &digest.0[..]).collect()
}
