//! Writes the rows of charges, a statement for each kind of row. Rows go in the order of their keys, so
//! that two processes lock them in one order.

use sqlx::PgConnection;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::columns::{CapColumns, FlagColumns, OriginColumns, RequestColumns, StateColumns};
use super::write_error;
use crate::ledger::book::Book;
use crate::ledger::store::{StoreError, missing};

const UPDATE_CAPS: &str = "/* postgres write::caps */
    UPDATE caps SET expected_total = j.expected_total, max_amount = j.max_amount,
        reserved = j.reserved, settled = j.settled
    FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
        AS j (vault_key, currency, expected_total, max_amount, reserved, settled)
    WHERE caps.vault_key = j.vault_key AND caps.currency = j.currency";

const INSERT_RESERVATIONS: &str = "/* postgres write::new_reservations */
    INSERT INTO reservations (id, version, slot_claim, intent_claim, amount_reserved,
        amount_settled, state, object_id, send_operation, upstream_key, fingerprint, sends,
        unproven, first_unproven_at_ms, forward_by_ms, deadline_ms, outcome_stored,
        resolved_at_ms, server_error, vault_key, account, namespace, billing_period, customer, reference,
        operation, currency, amount, attempt, created_at_ms)
    SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[], $5::BIGINT[],
        $6::BIGINT[], $7::TEXT[], $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::BYTEA[],
        $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[], $17::BOOLEAN[],
        $18::BIGINT[], $19::BOOLEAN[], $20::TEXT[], $21::TEXT[], $22::TEXT[], $23::TEXT[],
        $24::TEXT[], $25::TEXT[], $26::TEXT[], $27::TEXT[], $28::BIGINT[], $29::BIGINT[],
        $30::BIGINT[])";

const UPDATE_RESERVATIONS: &str = "/* postgres write::changed_reservations */
    UPDATE reservations SET version = j.version, slot_claim = j.slot_claim,
        intent_claim = j.intent_claim, amount_reserved = j.amount_reserved,
        amount_settled = j.amount_settled, state = j.state, object_id = j.object_id,
        send_operation = j.send_operation, upstream_key = j.upstream_key,
        fingerprint = j.fingerprint, sends = j.sends, unproven = j.unproven,
        first_unproven_at_ms = j.first_unproven_at_ms, forward_by_ms = j.forward_by_ms,
        deadline_ms = j.deadline_ms, outcome_stored = j.outcome_stored,
        resolved_at_ms = j.resolved_at_ms, server_error = j.server_error
    FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[], $5::BIGINT[],
        $6::BIGINT[], $7::TEXT[], $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::BYTEA[],
        $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[], $17::BOOLEAN[],
        $18::BIGINT[], $19::BOOLEAN[], $20::BIGINT[])
        AS j (id, version, slot_claim, intent_claim, amount_reserved, amount_settled, state,
            object_id, send_operation, upstream_key, fingerprint, sends, unproven,
            first_unproven_at_ms, forward_by_ms, deadline_ms, outcome_stored, resolved_at_ms,
            server_error, old_version)
    WHERE reservations.id = j.id AND reservations.version = j.old_version";

const INSERT_REQUESTS: &str = "/* postgres write::new_requests */
    INSERT INTO requests (digest, key_text, reservation, operation, fingerprint, created_at_ms)
    SELECT * FROM unnest($1::BYTEA[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BYTEA[],
        $6::BIGINT[])";

const UPDATE_REQUESTS: &str = "/* postgres write::moved_requests */
    UPDATE requests SET key_text = j.key_text, reservation = j.reservation,
        operation = j.operation, fingerprint = j.fingerprint, created_at_ms = j.created_at_ms
    FROM unnest($1::BYTEA[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BYTEA[], $6::BIGINT[],
        $7::BIGINT[])
        AS j (digest, key_text, reservation, operation, fingerprint, created_at_ms,
            old_reservation)
    WHERE requests.digest = j.digest AND requests.reservation = j.old_reservation";

const ADD_FLAGS: &str = "/* postgres write::flags */
    INSERT INTO flags (reservation, kind, count, vault_key, customer, first_seen_at_ms,
        last_seen_at_ms)
    SELECT j.*, $6, $6
    FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[]) AS j
    ON CONFLICT (reservation, kind) DO UPDATE
        SET count = flags.count + excluded.count, last_seen_at_ms = excluded.last_seen_at_ms";

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Writes the rows of charges. Every changed row must still be as it was loaded.
pub(super) async fn charges(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    caps(connection, book).await?;
    // A row that was released gives its claims to another of the same batch, old or new.
    changed_reservations(connection, book, false).await?;
    changed_reservations(connection, book, true).await?;
    new_reservations(connection, book).await?;
    new_requests(connection, book).await?;
    moved_requests(connection, book).await?;
    flags(connection, book).await
}

async fn caps(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    let mut caps = CapColumns::default();
    for (id, currency) in &book.changes().changed_caps {
        caps.add(id, book.cap(id, *currency).ok_or_else(|| missing(id))?);
    }
    let rows = caps.reserved.len();
    let statement = sqlx::query(UPDATE_CAPS)
        .bind(caps.vault_key)
        .bind(caps.currency)
        .bind(caps.expected_total)
        .bind(caps.max_amount)
        .bind(caps.reserved)
        .bind(caps.settled);
    run(connection, statement, rows).await
}

async fn new_reservations(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    let (mut state, mut origin) = (StateColumns::default(), OriginColumns::default());
    for id in &book.changes().new_reservations {
        let row = book.reservation(*id).ok_or_else(|| missing(id))?;
        state.add(row);
        origin.add(row);
    }
    let rows = state.id.len();
    let statement = bind_state(sqlx::query(INSERT_RESERVATIONS), state)
        .bind(origin.vault_key)
        .bind(origin.account)
        .bind(origin.namespace)
        .bind(origin.billing_period)
        .bind(origin.customer)
        .bind(origin.reference)
        .bind(origin.operation)
        .bind(origin.currency)
        .bind(origin.amount)
        .bind(origin.attempt)
        .bind(origin.created_at_ms);
    run(connection, statement, rows).await
}

/// Those that take claims they did not hold, or all others.
async fn changed_reservations(
    connection: &mut PgConnection,
    book: &Book,
    taking: bool,
) -> Result<(), StoreError> {
    let (mut state, mut old_versions) = (StateColumns::default(), Vec::new());
    let changes = book.changes();
    for (id, version) in &changes.changed_reservations {
        let row = book.reservation(*id).ok_or_else(|| missing(id))?;
        if taking == (changes.changed_claims.contains(id) && row.holds_claims()) {
            state.add(row);
            old_versions.push(*version);
        }
    }
    let rows = old_versions.len();
    let statement = bind_state(sqlx::query(UPDATE_RESERVATIONS), state).bind(old_versions);
    run(connection, statement, rows).await
}

fn bind_state<'q>(statement: Statement<'q>, state: StateColumns<'q>) -> Statement<'q> {
    statement
        .bind(state.id)
        .bind(state.version)
        .bind(state.slot_claim)
        .bind(state.intent_claim)
        .bind(state.amount_reserved)
        .bind(state.amount_settled)
        .bind(state.state)
        .bind(state.object_id)
        .bind(state.send_operation)
        .bind(state.upstream_key)
        .bind(state.fingerprint)
        .bind(state.sends)
        .bind(state.unproven)
        .bind(state.first_unproven_at_ms)
        .bind(state.forward_by_ms)
        .bind(state.deadline_ms)
        .bind(state.outcome_stored)
        .bind(state.resolved_at_ms)
        .bind(state.server_error)
}

async fn new_requests(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    let mut requests = RequestColumns::default();
    for digest in &book.changes().new_requests {
        requests.add(book.request(*digest).ok_or_else(|| missing("a request"))?);
    }
    let rows = requests.reservation.len();
    run(
        connection,
        bind_requests(sqlx::query(INSERT_REQUESTS), requests),
        rows,
    )
    .await
}

async fn moved_requests(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    let (mut requests, mut old) = (RequestColumns::default(), Vec::new());
    for (digest, old_reservation) in &book.changes().moved_requests {
        requests.add(book.request(*digest).ok_or_else(|| missing("a request"))?);
        old.push(old_reservation.0);
    }
    let rows = old.len();
    run(
        connection,
        bind_requests(sqlx::query(UPDATE_REQUESTS), requests).bind(old),
        rows,
    )
    .await
}

fn bind_requests<'q>(statement: Statement<'q>, requests: RequestColumns<'q>) -> Statement<'q> {
    statement
        .bind(requests.digest)
        .bind(requests.key_text)
        .bind(requests.reservation)
        .bind(requests.operation)
        .bind(requests.fingerprint)
        .bind(requests.created_at_ms)
}

async fn flags(connection: &mut PgConnection, book: &Book) -> Result<(), StoreError> {
    let mut flags = FlagColumns::default();
    for ((id, kind), count) in &book.changes().flags {
        flags.add(
            book.reservation(*id).ok_or_else(|| missing(id))?,
            *kind,
            *count,
        );
    }
    let rows = flags.count.len();
    let statement = sqlx::query(ADD_FLAGS)
        .bind(flags.reservation)
        .bind(flags.kind)
        .bind(flags.count)
        .bind(flags.vault_key)
        .bind(flags.customer)
        .bind(book.now().0);
    run(connection, statement, rows).await
}

/// An insert stores every row or fails, so a difference is an update that did not find its row.
async fn run(
    connection: &mut PgConnection,
    statement: Statement<'_>,
    rows: usize,
) -> Result<(), StoreError> {
    if rows == 0 {
        return Ok(());
    }
    let done = statement.execute(connection).await.map_err(write_error)?;
    if usize::try_from(done.rows_affected()) == Ok(rows) {
        Ok(())
    } else {
        Err(StoreError::Conflict)
    }
}
