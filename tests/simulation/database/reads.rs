//! Look-ups beside the writer: committed rows, encoded as a database hands them over.

use std::pin::Pin;
use std::sync::Arc;

use super::Database;
use crate::domain::digest::Digest16;
use crate::domain::id::ReservationId;
use crate::domain::reservation::{Reservation, State};
use crate::domain::vault_key::VaultKey;
use crate::ledger::simulated::{KeyTexts, Param, Row, Source, StoreError, timed_out};
use crate::simulation::replica::Mishaps;

/// One process's reads.
pub(in crate::simulation) struct Rows {
    database: Arc<Database>,
    mishaps: Mishaps,
}

impl Rows {
    pub(in crate::simulation) fn new(database: Arc<Database>, mishaps: Mishaps) -> Self {
        Self { database, mishaps }
    }

    fn look_up(&self, sql: &str, params: &[Param]) -> Vec<Row> {
        self.database.tables(|tables| match (name(sql), params) {
            ("reads::vault_key_by_secret", [Param::Bytes(hash), _]) => {
                let hash: [u8; 32] = hash[..].try_into().unwrap();
                let key = tables.secrets.get(&hash).and_then(|id| tables.keys.get(id));
                key.map(vault_key).unwrap_or_default()
            }
            ("reads::object_owner", [Param::Text(Some(object)), _]) => tables
                .object_owner(object)
                .map(reservation)
                .into_iter()
                .collect(),
            ("reads::reservation", [Param::Int(Some(id))]) => {
                let row = tables.rows.get(&ReservationId(*id));
                row.map(reservation).into_iter().collect()
            }
            ("reads::unresolved", [Param::Int(Some(after)), Param::Int(Some(limit))]) => {
                let rows = tables.rows.values().filter(|row| {
                    matches!(row.state, State::Held | State::Open) && row.id.0 > *after
                });
                let limit = usize::try_from(*limit).unwrap();
                rows.take(limit).map(reservation).collect()
            }
            ("reads::by_upstream_key", [Param::Text(Some(key)), _]) => {
                let rows = tables
                    .rows
                    .values()
                    .filter(|row| row.send.upstream_key == *key && row.state != State::Settled);
                let mut rows: Vec<&Reservation> = rows.collect();
                rows.sort_by_key(|row| (!row.state.is_reserved(), std::cmp::Reverse(row.id)));
                rows.into_iter().map(reservation).collect()
            }
            ("reads::feed_cursor", [_]) => {
                let cursor = tables.feed.iter();
                cursor
                    .map(|cursor| {
                        let times = (cursor.read_until.0, cursor.read_at.0);
                        vec![
                            cursor.account.as_str().into(),
                            times.0.into(),
                            times.1.into(),
                        ]
                    })
                    .collect()
            }
            // No run has another account, or loses a commit.
            ("reads::next_account" | "lost::note", _) => Vec::new(),
            (other, params) => panic!("the simulation does not know {other} with {params:?}"),
        })
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rows")
    }
}

impl Source for Rows {
    fn fetch<'a>(
        &'a self,
        sql: &str,
        params: Vec<Param>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Row>, StoreError>> + Send + 'a>> {
        let sql = sql.to_owned();
        Box::pin(async move {
            let world = &self.database.world;
            world.hop().await;
            self.mishaps.strike().await;
            if self.database.is_down() || world.fault("a read of the ledger fails", 3) {
                return Err(StoreError::Unavailable(timed_out()));
            }
            Ok(self.look_up(&sql, &params))
        })
    }
}

/// `/* reads::vault_key */ SELECT …` is `reads::vault_key`.
fn name(sql: &str) -> &str {
    let name = sql.trim_start().strip_prefix("/* ");
    let name = name.and_then(|rest| rest.split(" */").next());
    name.unwrap_or(sql)
}

fn vault_key(key: &VaultKey) -> Vec<Row> {
    let texts = KeyTexts::of(key);
    let columns: Row = vec![
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
    let caps = key.caps.iter();
    caps.map(|cap| {
        let mut columns = columns.clone();
        columns.extend([
            key.id.as_str().into(),
            cap.currency.as_str().into(),
            cap.expected_total.get().into(),
            cap.max_amount.get().into(),
            cap.reserved.get().into(),
            cap.settled.get().into(),
        ]);
        columns
    })
    .collect()
}

fn reservation(row: &Reservation) -> Row {
    let digest = |digest: &Option<Digest16>| match digest {
        Some(digest) => Param::Bytes(digest.0.to_vec()),
        None => Param::Text(None),
    };
    vec![
        row.id.0.into(),
        row.version.into(),
        row.vault_key.as_str().into(),
        row.account.as_str().into(),
        row.namespace.as_str().into(),
        row.billing_period.as_str().into(),
        Param::Text(row.customer.clone()),
        row.reference.as_str().into(),
        digest(&row.slot_claim),
        digest(&row.intent_claim),
        row.operation.as_str().into(),
        row.currency.as_str().into(),
        row.amount.get().into(),
        row.amount_reserved.get().into(),
        row.amount_settled.get().into(),
        row.state.as_str().into(),
        Param::Text(row.object_id.clone()),
        row.send.operation.as_str().into(),
        row.send.upstream_key.as_str().into(),
        Param::Bytes(row.send.fingerprint.0.0.to_vec()),
        i64::from(row.send.sends).into(),
        i64::from(row.send.unproven).into(),
        row.send.first_unproven_at.map(|at| at.0).into(),
        row.send.forward_by.0.into(),
        row.send.deadline.0.into(),
        i64::from(row.attempt).into(),
        row.outcome_stored.into(),
        row.created_at.0.into(),
        row.resolved_at.map(|at| at.0).into(),
        row.server_error.into(),
        row.amount_refunded.get().into(),
    ]
}
