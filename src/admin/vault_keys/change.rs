//! What can be done to a vault key: raised, lowered, resumed, revoked, rotated.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::json::Fields;
use super::super::param;
use super::create::Totals;
use crate::admin::error::BadParameter;
use crate::domain::cap::Headroom;
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::ledger::command::Control;

/// Long enough to roll a secret out to every billing service, short enough that a leaked one ends.
const GRACE_SECONDS_MAX: i64 = 7 * 24 * 60 * 60;
const GRACE_SECONDS_DEFAULT: i64 = 60 * 60;

/// A change of a vault key; at least one of the fields besides `reason`.
#[derive(Debug, ToSchema)]
pub(crate) struct VaultKeyUpdate {
    /// The new expected total, in minor units, with `currency`.
    #[schema(value_type = i64, required = false, minimum = 0, example = 6_000_000)]
    expected_total: Option<AmountMinor>,
    /// The currency of `expected_total`; one without a cap gets one.
    #[schema(value_type = String, required = false, example = "usd")]
    currency: Option<Currency>,
    /// New expected totals by currency; others stay.
    #[schema(value_type = BTreeMap<String, i64>, required = false)]
    expected_totals: Option<BTreeMap<Currency, AmountMinor>>,
    /// A new factor, applied to every cap of the key.
    #[schema(value_type = String, required = false, example = "1.10")]
    headroom: Option<Headroom>,
    /// `true` lifts a stop.
    #[schema(nullable = false)]
    resume: Option<bool>,
    /// Why: 1 to 500 characters, for the audit log.
    #[schema(min_length = 1, max_length = 500, example = "INC-4411")]
    reason: String,
}

impl VaultKeyUpdate {
    pub(crate) const FIELDS: [&str; 6] = [
        "expected_total",
        "currency",
        "expected_totals",
        "headroom",
        "resume",
        "reason",
    ];

    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, BadParameter> {
        let mut fields = Fields::new(fields, &Self::FIELDS)?;
        Ok(Self {
            expected_total: fields.optional("expected_total", param::amount)?,
            currency: fields.optional("currency", param::currency)?,
            expected_totals: fields.optional("expected_totals", param::amounts)?,
            headroom: fields.optional("headroom", param::headroom)?,
            resume: fields.optional("resume", resume)?,
            reason: fields.required("reason", param::reason)?,
        })
    }

    pub(super) fn into_control(self, id: VaultKeyId) -> Result<Control, BadParameter> {
        let totals = Totals::of(self.expected_total, self.currency, self.expected_totals)?;
        if totals.is_none() && self.headroom.is_none() && self.resume.is_none() {
            return Err(param::missing("expected_total"));
        }
        let totals = totals.map(|totals| totals.by_currency).unwrap_or_default();
        Ok(Control::UpdateKey {
            id,
            expected_totals: totals.into_iter().collect(),
            headroom: self.headroom,
            resume: self.resume.unwrap_or(false),
            reason: self.reason,
        })
    }
}

/// The end of a vault key.
#[derive(Debug, ToSchema)]
pub(crate) struct VaultKeyRevoke {
    /// Why: 1 to 500 characters, for the audit log.
    #[schema(min_length = 1, max_length = 500, example = "INC-4411")]
    pub(super) reason: String,
}

impl VaultKeyRevoke {
    pub(crate) const FIELDS: [&str; 1] = ["reason"];

    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, BadParameter> {
        let mut fields = Fields::new(fields, &Self::FIELDS)?;
        let reason = fields.required("reason", param::reason)?;
        Ok(Self { reason })
    }
}

/// A new secret for a vault key.
#[derive(Debug, ToSchema)]
pub(crate) struct VaultKeyRotate {
    /// How long the old secret still works: 0 to 604800 seconds, 3600 by default.
    #[schema(value_type = i64, required = false, minimum = 0, maximum = 604_800, example = 3600)]
    grace_seconds: i64,
}

impl VaultKeyRotate {
    pub(crate) const FIELDS: [&str; 1] = ["grace_seconds"];

    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, BadParameter> {
        let mut fields = Fields::new(fields, &Self::FIELDS)?;
        let grace_seconds = fields.optional("grace_seconds", |param, value| {
            param::integer(param, value, GRACE_SECONDS_MAX)
        })?;
        let grace_seconds = grace_seconds.unwrap_or(GRACE_SECONDS_DEFAULT);
        Ok(Self { grace_seconds })
    }

    pub(super) fn grace_ms(&self) -> i64 {
        self.grace_seconds.saturating_mul(1000)
    }
}

/// `false` would stop nothing, so only `true` is taken.
fn resume(param: &str, value: &Value) -> Result<bool, BadParameter> {
    if param::boolean(param, value)? {
        return Ok(true);
    }
    let message = "resume is true or left out; to end a key, revoke it";
    Err(param::invalid(param, message))
}
