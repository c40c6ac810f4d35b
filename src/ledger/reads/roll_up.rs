//! Sums over many rows: a billing period at a glance, and the check that the caps add up.

use super::Reads;
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::reservation::State;
use crate::ledger::handle::LedgerError;
use crate::ledger::store::StoreError;
use crate::ledger::store::rows::{self, Cells};

/// A billing period over all its vault keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeriodRollUp {
    /// Which one.
    pub billing_period: String,
    /// How many vault keys it has.
    pub vault_keys: i64,
    /// Its caps, by namespace and currency.
    pub caps: Vec<PeriodCap>,
    /// Its reservations, by state and currency.
    pub reservations: Vec<StateSums>,
    /// Flags that nobody acknowledged.
    pub open_flags: i64,
}

/// The caps of one namespace and currency together, in minor units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeriodCap {
    /// Which billing job.
    pub namespace: String,
    /// In which currency.
    pub currency: Currency,
    /// What is expected to be billed.
    pub expected_total: AmountMinor,
    /// What may be billed.
    pub max_amount: AmountMinor,
    /// What is reserved.
    pub reserved: AmountMinor,
    /// What is settled.
    pub settled: AmountMinor,
}

/// The reservations in one state and currency together, in minor units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateSums {
    /// In which state.
    pub state: State,
    /// In which currency.
    pub currency: Currency,
    /// How many.
    pub count: i64,
    /// What was asked for.
    pub amount: AmountMinor,
    /// What is reserved.
    pub amount_reserved: AmountMinor,
    /// What Stripe took.
    pub amount_settled: AmountMinor,
}

/// A cap's stored sums beside the sums over its reservations, in minor units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapSums {
    /// Whose cap.
    pub vault_key: VaultKeyId,
    /// In which currency.
    pub currency: Currency,
    /// The cap.
    pub max_amount: AmountMinor,
    /// As the cap says.
    pub reserved: AmountMinor,
    /// As the cap says.
    pub settled: AmountMinor,
    /// As its reservations say.
    pub rows_reserved: AmountMinor,
    /// As its reservations say.
    pub rows_settled: AmountMinor,
}

impl CapSums {
    /// True where the cap says what its reservations say.
    pub fn agree(&self) -> bool {
        self.reserved == self.rows_reserved && self.settled == self.rows_settled
    }
}

const PERIOD_COUNTS: &str = "/* roll_up::period */
    SELECT (SELECT count(*) FROM vault_keys WHERE billing_period = $1),
        (SELECT count(*) FROM flags WHERE acknowledged_by IS NULL
            AND vault_key IN (SELECT id FROM vault_keys WHERE billing_period = $1))";

const PERIOD_CAPS: &str = "/* roll_up::period */
    SELECT namespace, currency, CAST(sum(expected_total) AS BIGINT),
        CAST(sum(max_amount) AS BIGINT), CAST(sum(reserved) AS BIGINT),
        CAST(sum(settled) AS BIGINT)
    FROM vault_keys JOIN caps ON caps.vault_key = vault_keys.id
    WHERE billing_period = $1 GROUP BY namespace, currency ORDER BY namespace, currency";

const PERIOD_STATES: &str = "/* roll_up::period */
    SELECT state, currency, count(*), CAST(sum(amount) AS BIGINT),
        CAST(sum(amount_reserved) AS BIGINT), CAST(sum(amount_settled) AS BIGINT)
    FROM reservations
    WHERE vault_key IN (SELECT id FROM vault_keys WHERE billing_period = $1)
    GROUP BY state, currency ORDER BY state, currency";

const CAP_SUMS: &str = "/* roll_up::cap_sums */
    SELECT caps.vault_key, caps.currency, max_amount, reserved, settled,
        CAST(COALESCE(sum(amount_reserved), 0) AS BIGINT),
        CAST(COALESCE(sum(amount_settled), 0) AS BIGINT)
    FROM caps LEFT JOIN reservations
        ON reservations.vault_key = caps.vault_key AND reservations.currency = caps.currency
    GROUP BY caps.vault_key, caps.currency, max_amount, reserved, settled
    ORDER BY caps.vault_key, caps.currency";

impl Reads {
    /// A billing period; all zeros and empty where there is no vault key of it.
    pub async fn period(&self, billing_period: &str) -> Result<PeriodRollUp, LedgerError> {
        let params = || vec![billing_period.into()];
        let counts = self.fetch(PERIOD_COUNTS, params(), |row| {
            Ok((row.int(0)?, row.int(1)?))
        });
        let (vault_keys, open_flags) = counts.await?.pop().unwrap_or_default();
        Ok(PeriodRollUp {
            billing_period: billing_period.to_owned(),
            vault_keys,
            caps: self.fetch(PERIOD_CAPS, params(), period_cap).await?,
            reservations: self.fetch(PERIOD_STATES, params(), state_sums).await?,
            open_flags,
        })
    }

    /// Every cap beside the sums over its reservations: for tests and for an operator's doubts, as it
    /// reads the whole ledger.
    pub async fn cap_sums(&self) -> Result<Vec<CapSums>, LedgerError> {
        self.fetch(CAP_SUMS, Vec::new(), cap_sums).await
    }
}

fn period_cap(row: &dyn Cells) -> Result<PeriodCap, StoreError> {
    Ok(PeriodCap {
        namespace: row.text(0)?,
        currency: rows::currency(row.text(1)?)?,
        expected_total: rows::amount(row.int(2)?)?,
        max_amount: rows::amount(row.int(3)?)?,
        reserved: rows::amount(row.int(4)?)?,
        settled: rows::amount(row.int(5)?)?,
    })
}

fn state_sums(row: &dyn Cells) -> Result<StateSums, StoreError> {
    Ok(StateSums {
        state: rows::parsed(row.text(0)?, State::parse)?,
        currency: rows::currency(row.text(1)?)?,
        count: row.int(2)?,
        amount: rows::amount(row.int(3)?)?,
        amount_reserved: rows::amount(row.int(4)?)?,
        amount_settled: rows::amount(row.int(5)?)?,
    })
}

fn cap_sums(row: &dyn Cells) -> Result<CapSums, StoreError> {
    Ok(CapSums {
        vault_key: rows::parsed(row.text(0)?, |text| text.parse().ok())?,
        currency: rows::currency(row.text(1)?)?,
        max_amount: rows::amount(row.int(2)?)?,
        reserved: rows::amount(row.int(3)?)?,
        settled: rows::amount(row.int(4)?)?,
        rows_reserved: rows::amount(row.int(5)?)?,
        rows_settled: rows::amount(row.int(6)?)?,
    })
}
