//! How the ledger stands: what the gauges show. Its cost goes by the vault keys that are not over, the
//! rows in flight and held, and the open flags; never by what is settled.

use super::Reads;
use crate::domain::flag::FlagKind;
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::time::UnixMs;
use crate::ledger::handle::LedgerError;
use crate::ledger::store::StoreError;
use crate::ledger::store::rows::{self, Cells};

/// How long a vault key is shown after its expiry: late answers still move its numbers.
const SHOWN_AFTER_EXPIRY_MS: i64 = 24 * 3_600_000;

/// How the ledger stands now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The caps of the vault keys that are not over for 24 h.
    pub caps: Vec<CapStanding>,
    /// Flags that nobody acknowledged, of every kind that has one.
    pub open_flags: Vec<(FlagKind, i64)>,
    /// Rows that are held.
    pub held: i64,
    /// Age of the oldest unproven send of a held row, in milliseconds.
    pub oldest_held_ms: Option<i64>,
    /// Commits may be lost: no money is taken.
    pub lost: bool,
}

/// One cap, or those of all keys beyond the bound together, in minor units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapStanding {
    /// Whose; `None` for the keys that are not shown by name.
    pub key: Option<ShownKey>,
    /// In which currency.
    pub currency: Currency,
    /// What is expected to be billed.
    pub expected_total: AmountMinor,
    /// The cap.
    pub max_amount: AmountMinor,
    /// What Stripe took.
    pub settled: AmountMinor,
    /// Reserved by rows in flight.
    pub in_flight: AmountMinor,
    /// Reserved by open rows.
    pub open: AmountMinor,
    /// Reserved by held rows.
    pub held: AmountMinor,
}

/// A vault key that is shown by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownKey {
    /// Its id.
    pub id: VaultKeyId,
    /// Its billing period.
    pub billing_period: String,
}

/// A sum in two parts, so that no number of amounts overflows it.
macro_rules! sum {
    ($column:literal) => {
        concat!(
            "CAST(sum(",
            $column,
            " / 1000000000) AS BIGINT), CAST(sum(",
            $column,
            " % 1000000000) AS BIGINT)"
        )
    };
}

const PART: i64 = 1_000_000_000;

/// The newest keys are shown by name, revoked ones only where there is room. A cap of nothing with nothing
/// on it is not shown: a client of an observing key makes one of any three letters it calls a currency.
/// What is open is the rest of what the cap has reserved, since open rows may be many.
///
/// `IN ('held', 'open')` repeats the condition of the index of unresolved rows: without it neither database
/// would use that index.
const CAPS: &str = concat!(
    "/* standing::caps */
    WITH ranked AS (
        SELECT id, billing_period, row_number() OVER (
            ORDER BY CASE status WHEN 'revoked' THEN 1 ELSE 0 END, created_at_ms DESC, id DESC
        ) AS place
        FROM vault_keys WHERE expires_at_ms > $1
    ), unresolved AS (
        SELECT vault_key, currency, sum(in_flight) AS in_flight, sum(held) AS held FROM (
            SELECT vault_key, currency, amount_reserved AS in_flight, 0 AS held
                FROM reservations WHERE state = 'in_flight'
            UNION ALL
            SELECT vault_key, currency, 0, amount_reserved
                FROM reservations WHERE state IN ('held', 'open') AND state = 'held'
        ) AS unresolved_rows GROUP BY vault_key, currency
    ), shown AS (
        SELECT CASE WHEN place <= $2 THEN id END AS id,
            CASE WHEN place <= $2 THEN billing_period END AS billing_period,
            caps.currency AS currency, expected_total, max_amount, settled, reserved,
            CAST(COALESCE(in_flight, 0) AS BIGINT) AS in_flight,
            CAST(COALESCE(held, 0) AS BIGINT) AS held
        FROM ranked JOIN caps ON caps.vault_key = ranked.id
            AND (expected_total > 0 OR max_amount > 0 OR settled > 0 OR reserved > 0)
        LEFT JOIN unresolved
            ON unresolved.vault_key = ranked.id AND unresolved.currency = caps.currency
    )
    SELECT id, billing_period, currency, ",
    sum!("expected_total"),
    ", ",
    sum!("max_amount"),
    ", ",
    sum!("settled"),
    ", ",
    sum!("reserved"),
    ", ",
    sum!("in_flight"),
    ", ",
    sum!("held"),
    " FROM shown GROUP BY id, billing_period, currency ORDER BY id, currency",
);

/// So many open flags are counted, the newest first: under a second's work on either database. Nobody acts
/// on the difference between half a million and more.
const OPEN_FLAGS_MAX: i64 = 500_000;

const OPEN_FLAGS: &str = "/* standing::open_flags */
    SELECT kind, count(*) FROM (
        SELECT kind FROM flags WHERE acknowledged_by IS NULL ORDER BY id DESC LIMIT $1
    ) AS newest GROUP BY kind";

const HELD: &str = "/* standing::held */
    SELECT count(*), min(COALESCE(first_unproven_at_ms, created_at_ms))
    FROM reservations WHERE state IN ('held', 'open') AND state = 'held'";

impl Reads {
    /// How the ledger stands, with at most `keys_max` vault keys by name.
    pub async fn standing(&self, keys_max: u32) -> Result<Standing, LedgerError> {
        let now = self.now().await?;
        let over = now.plus_ms(-SHOWN_AFTER_EXPIRY_MS);
        let params = vec![over.0.into(), i64::from(keys_max).into()];
        let caps = self.fetch(CAPS, params, cap).await?;
        let flags = self.fetch(OPEN_FLAGS, vec![OPEN_FLAGS_MAX.into()], |row| {
            Ok((FlagKind::parse(&row.text(0)?), row.int(1)?))
        });
        // A kind that only a newer version knows is left to that one.
        let open_flags = flags.await?.into_iter();
        let open_flags = open_flags.filter_map(|(kind, count)| Some((kind?, count)));
        let held = self.fetch(HELD, Vec::new(), |row| {
            Ok((row.int(0)?, row.int_or_null(1)?.map(UnixMs)))
        });
        let (held, oldest) = held.await?.pop().unwrap_or_default();
        Ok(Standing {
            caps,
            open_flags: open_flags.collect(),
            held,
            oldest_held_ms: oldest.map(|oldest| now.ms_since(oldest).max(0)),
            lost: self.lost().await?.is_some(),
        })
    }
}

fn cap(row: &dyn Cells) -> Result<CapStanding, StoreError> {
    let id = row.text_or_null(0)?;
    let key = id.map(|id| {
        Ok::<_, StoreError>(ShownKey {
            id: rows::parsed(id, |text| text.parse().ok())?,
            billing_period: row.text(1)?,
        })
    });
    let reserved = sum(row, 9)?;
    let (in_flight, held) = (sum(row, 11)?, sum(row, 13)?);
    Ok(CapStanding {
        key: key.transpose()?,
        currency: rows::currency(row.text(2)?)?,
        expected_total: sum(row, 3)?,
        max_amount: sum(row, 5)?,
        settled: sum(row, 7)?,
        in_flight,
        open: reserved.saturating_sub(in_flight.saturating_add(held)),
        held,
    })
}

/// A sum from its two parts; the largest amount where it does not fit.
fn sum(row: &dyn Cells, first: usize) -> Result<AmountMinor, StoreError> {
    let parts = row.int(first)?.saturating_mul(PART);
    rows::amount(parts.saturating_add(row.int(first + 1)?))
}
