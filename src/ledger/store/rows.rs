//! Rows become what they stand for. Both databases hold the same columns in the same order, so one
//! decoder serves both.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::StoreError;
use crate::domain::cap::{Cap, Headroom};
use crate::domain::digest::Digest16;
use crate::domain::flag::FlagKind;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};
use crate::domain::idempotency::Fingerprint;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::operation::{MoneyOperation, Permission};
use crate::domain::reservation::{Request, Reservation, SendState, State};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::{Enforcement, KeyStatus, OnDuplicate, RefusalStatus, VaultKey};
use crate::ledger::feed::FeedCursor;
use crate::ledger::flag::Flag;

/// The columns of [`vault_key`], in order.
macro_rules! vault_key_columns {
    () => {
        "id, secret_hint, billing_period, namespace, status, starts_at_ms, expires_at_ms, \
         headroom_millionths, on_duplicate, enforcement, permissions, max_charge, refusal_status, \
         accounts, require_customer, metadata, created_at_ms"
    };
}

/// How many columns those are.
pub(crate) const VAULT_KEY_COLUMNS: usize = 17;

/// The columns of [`cap`], in order.
macro_rules! cap_columns {
    () => {
        "vault_key, currency, expected_total, max_amount, reserved, settled"
    };
}

/// The columns of [`reservation`], in order.
macro_rules! reservation_columns {
    () => {
        "id, version, vault_key, account, namespace, billing_period, customer, reference, \
         slot_claim, intent_claim, operation, currency, amount, amount_reserved, amount_settled, \
         state, object_id, send_operation, upstream_key, fingerprint, sends, unproven, \
         first_unproven_at_ms, forward_by_ms, deadline_ms, attempt, outcome_stored, created_at_ms, \
         resolved_at_ms, server_error, amount_refunded"
    };
}

/// The columns of [`request`], in order.
macro_rules! request_columns {
    () => {
        "digest, key_text, reservation, operation, fingerprint, created_at_ms"
    };
}

/// The columns of [`flag`], in order.
macro_rules! flag_columns {
    () => {
        "id, kind, count, reservation, vault_key, customer, first_seen_at_ms, last_seen_at_ms, \
         acknowledged_by, account, object_id"
    };
}

pub(crate) use {
    cap_columns, flag_columns, request_columns, reservation_columns, vault_key_columns,
};

/// The cells of a row, by column number.
pub(crate) trait Cells {
    fn int(&self, column: usize) -> Result<i64, StoreError>;
    fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn truth(&self, column: usize) -> Result<bool, StoreError>;
    fn text(&self, column: usize) -> Result<String, StoreError>;
    fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError>;
    fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError>;
    fn bytes_or_null(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError>;
}

macro_rules! cells {
    ($row:ty) => {
        impl Cells for $row {
            fn int(&self, column: usize) -> Result<i64, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn truth(&self, column: usize) -> Result<bool, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn text(&self, column: usize) -> Result<String, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
            fn bytes_or_null(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
                sqlx::Row::try_get(self, column).map_err(|error| unreadable(&error))
            }
        }
    };
}

cells!(sqlx::sqlite::SqliteRow);
cells!(sqlx::postgres::PgRow);

/// A vault key without its caps, from [`vault_key_columns`].
pub(crate) fn vault_key(row: &dyn Cells) -> Result<VaultKey, StoreError> {
    let id: VaultKeyId = parsed(row.text(0)?, |text| text.parse().ok())?;
    let permissions: Vec<String> = json(&row.text(10)?)?;
    let permissions = permissions
        .into_iter()
        .map(|name| parsed(name, Permission::parse));
    let max_charge: BTreeMap<String, i64> = json(&row.text(11)?)?;
    let max_charge = max_charge
        .into_iter()
        .map(|(code, minor)| Ok((currency(code)?, amount(minor)?)));
    Ok(VaultKey {
        id,
        secret_hint: row.text(1)?,
        billing_period: row.text(2)?,
        namespace: row.text(3)?,
        status: parsed(row.text(4)?, KeyStatus::parse)?,
        starts_at: row.int_or_null(5)?.map(UnixMs),
        expires_at: UnixMs(row.int(6)?),
        headroom: number(row.int(7)?, |millionths: u32| {
            Headroom::from_millionths(millionths).ok()
        })?,
        on_duplicate: parsed(row.text(8)?, OnDuplicate::parse)?,
        enforcement: parsed(row.text(9)?, Enforcement::parse)?,
        permissions: permissions.collect::<Result<_, _>>()?,
        max_charge: max_charge.collect::<Result<_, StoreError>>()?,
        refusal_status: number(row.int(12)?, RefusalStatus::from_u16)?,
        accounts: json(&row.text(13)?)?,
        require_customer: row.truth(14)?,
        metadata: json(&row.text(15)?)?,
        caps: Vec::new(),
        created_at: UnixMs(row.int(16)?),
    })
}

/// A cap and whose it is, from [`cap_columns`] that begin at column `first`; `None` where an outer join
/// found no cap.
pub(crate) fn cap(row: &dyn Cells, first: usize) -> Result<Option<(VaultKeyId, Cap)>, StoreError> {
    let Some(vault_key) = row.text_or_null(first)? else {
        return Ok(None);
    };
    let [code, expected_total, max_amount, reserved, settled] = [1, 2, 3, 4, 5].map(|n| first + n);
    let cap = Cap {
        currency: currency(row.text(code)?)?,
        expected_total: amount(row.int(expected_total)?)?,
        max_amount: amount(row.int(max_amount)?)?,
        reserved: amount(row.int(reserved)?)?,
        settled: amount(row.int(settled)?)?,
    };
    Ok(Some((parsed(vault_key, |text| text.parse().ok())?, cap)))
}

/// Vault keys with their caps, from rows of [`vault_key_columns`] and [`cap_columns`] side by side, the
/// rows of one key together and its caps in order.
#[derive(Default)]
pub(crate) struct KeysWithCaps(pub(crate) Vec<VaultKey>);

impl KeysWithCaps {
    pub(crate) fn add(&mut self, row: &dyn Cells) -> Result<(), StoreError> {
        let id = row.text(0)?;
        if self.0.last().is_none_or(|last| last.id.as_str() != id) {
            self.0.push(vault_key(row)?);
        }
        let cap = cap(row, VAULT_KEY_COLUMNS)?;
        if let (Some((_, cap)), Some(last)) = (cap, self.0.last_mut()) {
            last.caps.push(cap);
        }
        Ok(())
    }
}

/// A reservation, from [`reservation_columns`].
pub(crate) fn reservation(row: &dyn Cells) -> Result<Reservation, StoreError> {
    Ok(Reservation {
        id: ReservationId(row.int(0)?),
        version: row.int(1)?,
        vault_key: parsed(row.text(2)?, |text| text.parse().ok())?,
        account: row.text(3)?,
        namespace: row.text(4)?,
        billing_period: row.text(5)?,
        customer: row.text_or_null(6)?,
        reference: row.text(7)?,
        slot_claim: row.bytes_or_null(8)?.map(digest).transpose()?,
        intent_claim: row.bytes_or_null(9)?.map(digest).transpose()?,
        operation: parsed(row.text(10)?, MoneyOperation::parse)?,
        currency: currency(row.text(11)?)?,
        amount: amount(row.int(12)?)?,
        amount_reserved: amount(row.int(13)?)?,
        amount_settled: amount(row.int(14)?)?,
        state: parsed(row.text(15)?, State::parse)?,
        object_id: row.text_or_null(16)?,
        send: SendState {
            operation: parsed(row.text(17)?, MoneyOperation::parse)?,
            upstream_key: row.text(18)?,
            fingerprint: Fingerprint(digest(row.bytes(19)?)?),
            sends: number(row.int(20)?, Some)?,
            unproven: number(row.int(21)?, Some)?,
            first_unproven_at: row.int_or_null(22)?.map(UnixMs),
            forward_by: UnixMs(row.int(23)?),
            deadline: UnixMs(row.int(24)?),
        },
        attempt: number(row.int(25)?, Some)?,
        outcome_stored: row.truth(26)?,
        created_at: UnixMs(row.int(27)?),
        resolved_at: row.int_or_null(28)?.map(UnixMs),
        server_error: row.truth(29)?,
        amount_refunded: amount(row.int(30)?)?,
    })
}

/// A request, from [`request_columns`].
pub(crate) fn request(row: &dyn Cells) -> Result<Request, StoreError> {
    Ok(Request {
        digest: digest(row.bytes(0)?)?,
        key: row.text(1)?,
        reservation: ReservationId(row.int(2)?),
        operation: parsed(row.text(3)?, MoneyOperation::parse)?,
        fingerprint: Fingerprint(digest(row.bytes(4)?)?),
        created_at: UnixMs(row.int(5)?),
    })
}

/// How far a feed was read, from its account, `read_until_ms` and `read_at_ms`.
pub(crate) fn feed_cursor(row: &dyn Cells) -> Result<FeedCursor, StoreError> {
    Ok(FeedCursor {
        account: row.text(0)?,
        read_until: UnixMs(row.int(1)?),
        read_at: UnixMs(row.int(2)?),
    })
}

/// A flag, from [`flag_columns`].
pub(crate) fn flag(row: &dyn Cells) -> Result<Flag, StoreError> {
    Ok(Flag {
        id: FlagId(row.int(0)?),
        kind: parsed(row.text(1)?, FlagKind::parse)?,
        count: row.int(2)?,
        reservation: row.int_or_null(3)?.map(ReservationId),
        vault_key: row
            .text_or_null(4)?
            .map(|id| parsed(id, |text| text.parse().ok()))
            .transpose()?,
        customer: row.text_or_null(5)?,
        first_seen_at: UnixMs(row.int(6)?),
        last_seen_at: UnixMs(row.int(7)?),
        acknowledged_by: row.text_or_null(8)?,
        account: row.text(9)?,
        object_id: row.text_or_null(10)?,
    })
}

pub(crate) fn currency(code: String) -> Result<Currency, StoreError> {
    parsed(code, |code| Currency::parse(code).ok())
}

pub(crate) fn amount(minor: i64) -> Result<AmountMinor, StoreError> {
    AmountMinor::new(minor)
        .ok_or_else(|| StoreError::Unreadable(format!("{minor} is not an amount")))
}

pub(crate) fn digest(bytes: Vec<u8>) -> Result<Digest16, StoreError> {
    sized(bytes).map(Digest16)
}

pub(crate) fn sized<const N: usize>(bytes: Vec<u8>) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|bytes: Vec<u8>| {
        StoreError::Unreadable(format!("{} bytes where {N} belong", bytes.len()))
    })
}

/// The names in the ledger are closed lists: an unknown one is a damaged row, or a newer binary's.
pub(crate) fn parsed<T>(
    text: String,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    parse(&text).ok_or(StoreError::Unreadable(text))
}

fn number<N: TryFrom<i64>, T>(
    stored: i64,
    read: impl FnOnce(N) -> Option<T>,
) -> Result<T, StoreError> {
    let number = N::try_from(stored).ok();
    number
        .and_then(read)
        .ok_or_else(|| StoreError::Unreadable(stored.to_string()))
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Unreadable(error.to_string()))
}

fn unreadable(error: &sqlx::Error) -> StoreError {
    StoreError::Unreadable(error.to_string())
}
