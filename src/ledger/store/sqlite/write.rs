//! Writes what a book changed: the rows of charges in one statement each and one round trip, the rest
//! only where there is some.

use sqlx::sqlite::SqliteConnection;

use super::json::JsonRows;
use crate::domain::cap::Cap;
use crate::domain::id::VaultKeyId;
use crate::domain::reservation::{Request, Reservation};
use crate::ledger::book::Book;
use crate::ledger::store::rows::{request_columns, reservation_columns};
use crate::ledger::store::{StoreError, missing};

/// What every change of a reservation sets. Claims are set only where they changed: setting a column
/// rewrites its indexes.
macro_rules! state_assignments {
    () => {
        "version = j.value->>2, amount_reserved = j.value->>3, amount_settled = j.value->>4,
        state = j.value->>5, object_id = j.value->>6, send_operation = j.value->>7,
        upstream_key = j.value->>8, fingerprint = unhex(j.value->>9), sends = j.value->>10,
        unproven = j.value->>11, first_unproven_at_ms = j.value->>12,
        forward_by_ms = j.value->>13, deadline_ms = j.value->>14,
        outcome_stored = j.value->>15, resolved_at_ms = j.value->>16,
        server_error = j.value->>17"
    };
}

/// Sets a row with its claims.
macro_rules! claims_update {
    ($rows:literal) => {
        concat!(
            "UPDATE reservations SET slot_claim = unhex(j.value->>18),
                intent_claim = unhex(j.value->>19), holds_claims = j.value->>20, ",
            state_assignments!(),
            " FROM json_each(",
            $rows,
            ") AS j WHERE reservations.id = j.value->>0 AND version = j.value->>1; "
        )
    };
}

/// A row that was released gives its claims to another of the same batch, old or new: it comes first.
const CHARGES: &str = concat!(
    "/* sqlite write::charges */
     UPDATE caps SET expected_total = j.value->>2, max_amount = j.value->>3,
        reserved = j.value->>4, settled = j.value->>5
     FROM json_each($1) AS j WHERE vault_key = j.value->>0 AND currency = j.value->>1; ",
    claims_update!("$7"),
    claims_update!("$8"),
    "UPDATE reservations SET ",
    state_assignments!(),
    " FROM json_each($3) AS j WHERE reservations.id = j.value->>0 AND version = j.value->>1; ",
    "INSERT INTO reservations (",
    reservation_columns!(),
    ", holds_claims) SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7,
        unhex(value->>8), unhex(value->>9), value->>10, value->>11, value->>12, value->>13, value->>14,
        value->>15, value->>16, value->>17, value->>18, unhex(value->>19), value->>20, value->>21,
        value->>22, value->>23, value->>24, value->>25, value->>26, value->>27, value->>28, value->>29,
        value->>30, value->>31
     FROM json_each($2) WHERE true; ",
    "INSERT INTO requests (",
    request_columns!(),
    ") SELECT unhex(value->>0), value->>1, value->>2, value->>3, unhex(value->>4), value->>5
     FROM json_each($4) WHERE true; ",
    "UPDATE requests SET key_text = j.value->>2, reservation = j.value->>3, operation = j.value->>4,
        fingerprint = unhex(j.value->>5), created_at_ms = j.value->>6
     FROM json_each($5) AS j WHERE digest = unhex(j.value->>0) AND reservation = j.value->>1; ",
    "INSERT INTO flags (reservation, kind, count, vault_key, customer, first_seen_at_ms,
        last_seen_at_ms)
     SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>5
     FROM json_each($6) WHERE true
     ON CONFLICT (reservation, kind) DO UPDATE
        SET count = count + excluded.count, last_seen_at_ms = excluded.last_seen_at_ms",
);

/// Writes the rows of charges. Every changed row must still be as it was loaded.
pub(super) async fn charges(
    connection: &mut SqliteConnection,
    book: &Book,
) -> Result<(), StoreError> {
    let changes = book.changes();
    let (mut caps, mut new, mut updated) = (JsonRows::new(), JsonRows::new(), JsonRows::new());
    let (mut freed, mut taken) = (JsonRows::new(), JsonRows::new());
    let (mut requests, mut moved, mut flags) = (JsonRows::new(), JsonRows::new(), JsonRows::new());
    for (vault_key, currency) in &changes.changed_caps {
        let cap = book.cap(vault_key, *currency);
        add_cap(&mut caps, vault_key, cap.ok_or_else(|| missing(vault_key))?);
    }
    for id in &changes.new_reservations {
        add_new(&mut new, book.reservation(*id).ok_or_else(|| missing(id))?);
    }
    for (id, version) in &changes.changed_reservations {
        let row = book.reservation(*id).ok_or_else(|| missing(id))?;
        if changes.changed_claims.contains(id) {
            let claims = if row.holds_claims() {
                &mut taken
            } else {
                &mut freed
            };
            add_changed(claims, row, *version);
            add_claims(claims, row);
        } else {
            add_changed(&mut updated, row, *version);
        }
    }
    for digest in &changes.new_requests {
        let request = book.request(*digest).ok_or_else(|| missing("a request"))?;
        requests.row().bytes(&request.digest.0);
        add_request(&mut requests, request);
    }
    for (digest, old) in &changes.moved_requests {
        let request = book.request(*digest).ok_or_else(|| missing("a request"))?;
        moved.row().bytes(&request.digest.0).int(old.0);
        add_request(&mut moved, request);
    }
    for ((id, kind), count) in &changes.flags {
        let row = book.reservation(*id).ok_or_else(|| missing(id))?;
        let flag = flags.row().int(id.0).text(kind.as_str()).int(*count);
        flag.text(row.vault_key.as_str())
            .text_or_null(row.customer.as_deref())
            .int(book.now().0);
    }
    let rows = [
        &caps, &new, &updated, &requests, &moved, &flags, &freed, &taken,
    ];
    let expected: u64 = rows.iter().map(|rows| rows.len()).sum();
    if expected == 0 {
        return Ok(());
    }
    let done = sqlx::query(CHARGES)
        .bind(caps.into_text())
        .bind(new.into_text())
        .bind(updated.into_text())
        .bind(requests.into_text())
        .bind(moved.into_text())
        .bind(flags.into_text())
        .bind(freed.into_text())
        .bind(taken.into_text())
        .execute(connection)
        .await
        .map_err(super::write_error)?;
    // An insert stores every row or fails, so a difference is an update that did not find its row.
    if done.rows_affected() == expected {
        Ok(())
    } else {
        Err(StoreError::Conflict)
    }
}

fn add_cap(rows: &mut JsonRows, vault_key: &VaultKeyId, cap: &Cap) {
    let cells = rows
        .row()
        .text(vault_key.as_str())
        .text(cap.currency.as_str());
    cells
        .int(cap.expected_total.get())
        .int(cap.max_amount.get());
    cells.int(cap.reserved.get()).int(cap.settled.get());
}

fn add_request(rows: &mut JsonRows, request: &Request) {
    let cells = rows.text(&request.key).int(request.reservation.0);
    cells
        .text(request.operation.as_str())
        .bytes(&request.fingerprint.0.0);
    cells.int(request.created_at.0);
}

fn add_new(rows: &mut JsonRows, row: &Reservation) {
    let cells = rows
        .row()
        .int(row.id.0)
        .int(row.version)
        .text(row.vault_key.as_str());
    cells
        .text(&row.account)
        .text(&row.namespace)
        .text(&row.billing_period);
    cells
        .text_or_null(row.customer.as_deref())
        .text(&row.reference);
    cells
        .digest_or_null(row.slot_claim)
        .digest_or_null(row.intent_claim);
    cells
        .text(row.operation.as_str())
        .text(row.currency.as_str())
        .int(row.amount.get());
    add_state(cells, row);
    cells
        .int(row.send.deadline.0)
        .int(i64::from(row.attempt))
        .truth(row.outcome_stored);
    cells
        .int(row.created_at.0)
        .int_or_null(row.resolved_at.map(|at| at.0))
        .truth(row.server_error)
        .int(row.amount_refunded.get())
        .truth(row.holds_claims());
}

fn add_changed(rows: &mut JsonRows, row: &Reservation, old_version: i64) {
    let cells = rows.row().int(row.id.0).int(old_version).int(row.version);
    add_state(cells, row);
    cells.int(row.send.deadline.0).truth(row.outcome_stored);
    cells
        .int_or_null(row.resolved_at.map(|at| at.0))
        .truth(row.server_error);
}

fn add_claims(cells: &mut JsonRows, row: &Reservation) {
    cells
        .digest_or_null(row.slot_claim)
        .digest_or_null(row.intent_claim)
        .truth(row.holds_claims());
}

/// From `amount_reserved` to `forward_by_ms`.
fn add_state(cells: &mut JsonRows, row: &Reservation) {
    cells
        .int(row.amount_reserved.get())
        .int(row.amount_settled.get());
    cells
        .text(row.state.as_str())
        .text_or_null(row.object_id.as_deref());
    let send = &row.send;
    cells.text(send.operation.as_str()).text(&send.upstream_key);
    cells
        .bytes(&send.fingerprint.0.0)
        .int(i64::from(send.sends))
        .int(i64::from(send.unproven));
    cells
        .int_or_null(send.first_unproven_at.map(|at| at.0))
        .int(send.forward_by.0);
}
