//! What a new vault key is asked for, and the key it becomes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::json::Fields;
use super::super::openapi::time_schema;
use super::super::param;
use crate::admin::error::BadParameter;
use crate::config::DefaultsConfig;
use crate::domain::cap::{Cap, Headroom};
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::operation::Permission;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::{Enforcement, KeyStatus, OnDuplicate, RefusalStatus, VaultKey};

/// A key for one billing run needs weeks. A longer life is a mistake, often milliseconds for seconds.
const LIFE_DAYS_MAX: i64 = 400;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

const NAMESPACE_DEFAULT: &str = "default";

/// A new vault key.
#[derive(Debug, ToSchema)]
pub(crate) struct VaultKeyCreate {
    /// The operator's name for the run: 1 to 64 letters, digits, `.`, `_` or `-`.
    #[schema(example = "2026-08")]
    billing_period: String,
    /// Which billing job it is; `default` by default.
    #[schema(value_type = String, required = false)]
    namespace: Option<String>,
    /// What the run is expected to bill, in minor units, with `currency`. `0` blocks everything.
    #[schema(value_type = i64, required = false, minimum = 0, example = 4_950_000)]
    expected_total: Option<AmountMinor>,
    /// The currency of `expected_total`.
    #[schema(value_type = String, required = false, example = "usd")]
    currency: Option<Currency>,
    /// What the run is expected to bill by currency, in place of `expected_total` and `currency`.
    #[schema(value_type = BTreeMap<String, i64>, required = false)]
    expected_totals: Option<BTreeMap<Currency, AmountMinor>>,
    /// The factor between an expected total and its cap: a decimal in a string.
    #[schema(value_type = String, required = false, example = "1.10")]
    headroom: Option<Headroom>,
    /// From when the key may be used: as `expires_at`.
    #[schema(schema_with = time_schema, required = false)]
    starts_at: Option<UnixMs>,
    /// Until when, exclusive: unix seconds, or RFC 3339 with an offset; at most 400 days ahead.
    #[schema(schema_with = time_schema)]
    expires_at: UnixMs,
    /// What happens to a create whose customer and period are billed already: `replay`, `reject` or
    /// `flag`.
    #[schema(value_type = String, required = false, example = "replay")]
    on_duplicate: Option<OnDuplicate>,
    /// `enforce` (the default), or `observe`: record what would have been refused, and forward it.
    #[schema(value_type = String, required = false, example = "enforce")]
    enforcement: Option<Enforcement>,
    /// What the key may do, such as `charges:write`.
    #[schema(value_type = Vec<String>, required = false, example = json!(["charges:write"]))]
    permissions: Option<Vec<Permission>>,
    /// The largest single charge by currency, in minor units.
    #[schema(value_type = BTreeMap<String, i64>, required = false)]
    max_charge: Option<BTreeMap<Currency, AmountMinor>>,
    /// The status of cap refusals: 402 (the default) or 403, for SDKs that take any 402 for a decline.
    #[schema(value_type = i32, required = false, example = 402)]
    refusal_status: Option<RefusalStatus>,
    /// Connected accounts whose money the key may move, besides the platform's own: `acct_…`.
    #[schema(nullable = false)]
    accounts: Option<Vec<String>>,
    /// Refuse creates that name no customer; `false` by default.
    #[schema(nullable = false)]
    require_customer: Option<bool>,
    /// The operator's own notes: at most 50 keys of 40 characters, values of 500.
    #[schema(nullable = false)]
    metadata: Option<BTreeMap<String, String>>,
}

impl VaultKeyCreate {
    pub(crate) const FIELDS: [&str; 16] = [
        "billing_period",
        "namespace",
        "expected_total",
        "currency",
        "expected_totals",
        "headroom",
        "starts_at",
        "expires_at",
        "on_duplicate",
        "enforcement",
        "permissions",
        "max_charge",
        "refusal_status",
        "accounts",
        "require_customer",
        "metadata",
    ];

    pub(super) fn read(fields: Map<String, Value>, now: UnixMs) -> Result<Self, BadParameter> {
        let mut fields = Fields::new(fields, &Self::FIELDS)?;
        let asked = Self {
            billing_period: fields.required("billing_period", param::label)?,
            namespace: fields.optional("namespace", param::label)?,
            expected_total: fields.optional("expected_total", param::amount)?,
            currency: fields.optional("currency", param::currency)?,
            expected_totals: fields.optional("expected_totals", param::amounts)?,
            headroom: fields.optional("headroom", param::headroom)?,
            starts_at: fields.optional("starts_at", param::time)?,
            expires_at: fields.required("expires_at", param::time)?,
            on_duplicate: fields.optional("on_duplicate", on_duplicate)?,
            enforcement: fields.optional("enforcement", enforcement)?,
            permissions: fields.optional("permissions", permissions)?,
            max_charge: fields.optional("max_charge", param::amounts)?,
            refusal_status: fields.optional("refusal_status", refusal_status)?,
            accounts: fields.optional("accounts", |param, value| {
                param::list(param, value, param::account)
            })?,
            require_customer: fields.optional("require_customer", param::boolean)?,
            metadata: fields.optional("metadata", param::metadata)?,
        };
        check_life(asked.starts_at, asked.expires_at, now)?;
        Ok(asked)
    }

    /// The key that was asked for, with `defaults` where nothing was said.
    pub(super) fn into_key(
        self,
        id: VaultKeyId,
        secret_hint: String,
        defaults: &DefaultsConfig,
        now: UnixMs,
    ) -> Result<VaultKey, BadParameter> {
        let headroom = self.headroom.unwrap_or(defaults.headroom);
        let totals = Totals::of(self.expected_total, self.currency, self.expected_totals)?;
        let totals = totals.ok_or_else(|| param::missing("expected_total"))?;
        let caps = totals.caps(headroom)?;
        let permissions = self.permissions;
        Ok(VaultKey {
            id,
            secret_hint,
            billing_period: self.billing_period,
            namespace: self
                .namespace
                .unwrap_or_else(|| NAMESPACE_DEFAULT.to_owned()),
            status: KeyStatus::Active,
            starts_at: self.starts_at,
            expires_at: self.expires_at,
            headroom,
            on_duplicate: self.on_duplicate.unwrap_or(defaults.on_duplicate),
            enforcement: self.enforcement.unwrap_or(Enforcement::Enforce),
            permissions: permissions.unwrap_or_else(|| defaults.permissions.clone()),
            max_charge: self.max_charge.unwrap_or_default(),
            refusal_status: self
                .refusal_status
                .unwrap_or(RefusalStatus::PaymentRequired),
            accounts: self.accounts.unwrap_or_default(),
            require_customer: self.require_customer.unwrap_or(false),
            metadata: self.metadata.unwrap_or_default(),
            caps,
            created_at: now,
        })
    }
}

/// Expected totals, and how they were written: errors name what the caller wrote.
pub(super) struct Totals {
    pub(super) by_currency: BTreeMap<Currency, AmountMinor>,
    single: bool,
}

impl Totals {
    /// `expected_totals`, or `expected_total` with `currency`; `None` where neither is there.
    pub(super) fn of(
        total: Option<AmountMinor>,
        currency: Option<Currency>,
        totals: Option<BTreeMap<Currency, AmountMinor>>,
    ) -> Result<Option<Self>, BadParameter> {
        let by_currency = match (total, currency, totals) {
            (None, None, None) => return Ok(None),
            (Some(total), Some(currency), None) => {
                let by_currency = BTreeMap::from([(currency, total)]);
                let single = true;
                return Ok(Some(Self {
                    by_currency,
                    single,
                }));
            }
            (None, None, Some(totals)) => totals,
            (Some(_), None, None) => return Err(param::missing("currency")),
            (None, Some(_), None) => return Err(param::missing("expected_total")),
            (_, _, Some(_)) => {
                let message = "send expected_totals, or expected_total and currency, not both";
                return Err(param::exclusive("expected_totals", message));
            }
        };
        if by_currency.is_empty() {
            let message = "expected_totals names at least one currency";
            return Err(param::invalid("expected_totals", message));
        }
        let single = false;
        Ok(Some(Self {
            by_currency,
            single,
        }))
    }

    /// One cap for each, of which nothing is used.
    fn caps(&self, headroom: Headroom) -> Result<Vec<Cap>, BadParameter> {
        let caps = self.by_currency.iter().map(|(currency, total)| {
            let max_amount = headroom.max_amount(*total).ok_or_else(|| {
                let param = if self.single {
                    "expected_total".to_owned()
                } else {
                    format!("expected_totals[{currency}]")
                };
                let message = format!(
                    "{param} times headroom {headroom} is larger than {}",
                    i64::MAX
                );
                param::invalid_integer(&param, message)
            })?;
            Ok(Cap::fresh(*currency, *total, max_amount))
        });
        caps.collect()
    }
}

fn check_life(
    starts_at: Option<UnixMs>,
    expires_at: UnixMs,
    now: UnixMs,
) -> Result<(), BadParameter> {
    if expires_at <= now {
        let message = format!("expires_at lies in the past: now is {}", now.unix_seconds());
        return Err(param::invalid("expires_at", message));
    }
    if expires_at > now.plus_ms(LIFE_DAYS_MAX * DAY_MS) {
        let message = format!(
            "expires_at is at most {LIFE_DAYS_MAX} days ahead, in seconds, not milliseconds"
        );
        return Err(param::invalid("expires_at", message));
    }
    match starts_at {
        Some(starts_at) if starts_at >= expires_at => Err(param::invalid(
            "starts_at",
            "starts_at lies before expires_at",
        )),
        _ => Ok(()),
    }
}

fn on_duplicate(param: &str, value: &Value) -> Result<OnDuplicate, BadParameter> {
    let names = OnDuplicate::ALL.map(OnDuplicate::as_str);
    param::choice(param, value, OnDuplicate::parse, &names)
}

fn enforcement(param: &str, value: &Value) -> Result<Enforcement, BadParameter> {
    let names = Enforcement::ALL.map(Enforcement::as_str);
    param::choice(param, value, Enforcement::parse, &names)
}

fn permissions(param: &str, value: &Value) -> Result<Vec<Permission>, BadParameter> {
    let names = Permission::ALL.map(Permission::as_str);
    let permissions = param::list(param, value, |param, value| {
        param::choice(param, value, Permission::parse, &names)
    })?;
    if permissions.is_empty() {
        let message = format!("{param} names at least one of {}", names.join(", "));
        return Err(param::invalid(param, message));
    }
    Ok(permissions)
}

fn refusal_status(param: &str, value: &Value) -> Result<RefusalStatus, BadParameter> {
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(RefusalStatus::from_u16);
    status.ok_or_else(|| param::invalid(param, format!("{param} is 402 or 403")))
}

#[cfg(test)]
mod tests;
