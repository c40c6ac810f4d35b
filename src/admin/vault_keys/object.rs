//! A vault key as the control plane shows it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::cap::Cap;
use crate::domain::operation::Permission;
use crate::domain::secret::VaultSecret;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::{KeyStatus, VaultKey};

/// A vault key. Amounts are in minor units, times in unix seconds.
#[derive(Serialize, ToSchema)]
#[schema(as = VaultKey)]
pub(crate) struct VaultKeyObject {
    /// Its public id.
    #[schema(example = "vk_019a2b6c7d8e7f90a1b2c3d4e5f60718")]
    id: String,
    /// Always `vault_key`.
    #[schema(example = "vault_key")]
    object: &'static str,
    /// The secret, in the answers that create or rotate it, and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// The end of the secret.
    #[schema(example = "…a1b2")]
    secret_hint: String,
    /// The operator's name for the run.
    billing_period: String,
    /// Which billing job it is.
    namespace: String,
    /// Whether it may be used now.
    status: KeyStatusName,
    /// One for each currency, in the order of their codes.
    caps: Vec<CapObject>,
    /// The factor between an expected total and its cap.
    #[schema(example = "1.10")]
    headroom: String,
    /// `replay`, `reject` or `flag`.
    on_duplicate: &'static str,
    /// `enforce` or `observe`.
    enforcement: &'static str,
    /// What it may do.
    permissions: Vec<&'static str>,
    /// The largest single charge by currency.
    max_charge: BTreeMap<String, i64>,
    /// The status of cap refusals, 402 or 403.
    #[schema(value_type = i32)]
    refusal_status: u16,
    /// Connected accounts whose money it may move, besides the platform's own.
    accounts: Vec<String>,
    /// Creates that name no customer are refused.
    require_customer: bool,
    /// The operator's own notes.
    metadata: BTreeMap<String, String>,
    /// When it was issued.
    created: i64,
    /// From when it may be used; `null` for at once.
    starts_at: Option<i64>,
    /// Until when, exclusive.
    expires_at: i64,
}

/// Whether a vault key may be used now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = VaultKeyStatus)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyStatusName {
    /// It may.
    Active,
    /// An excess was recorded: it reads, and moves no money until it is resumed.
    Stopped,
    /// It was ended for good.
    Revoked,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
}

/// One currency's cap and what is used of it, in minor units.
#[derive(Serialize, ToSchema)]
#[schema(as = Cap)]
pub(crate) struct CapObject {
    /// The currency's code in lower case.
    #[schema(example = "usd")]
    currency: String,
    /// What the run is expected to bill.
    expected_total: i64,
    /// The cap: `floor(expected_total × headroom)`.
    max_amount: i64,
    /// Sent to Stripe, outcome not known yet.
    reserved: i64,
    /// Taken by Stripe.
    settled: i64,
    /// What may still be reserved; 0 where usage passes the cap.
    remaining: i64,
}

impl VaultKeyObject {
    /// `key` as it stands at `now`, without its secret.
    pub(super) fn of(key: &VaultKey, now: UnixMs) -> Self {
        let max_charge = key.max_charge.iter();
        let max_charge = max_charge.map(|(currency, amount)| (currency.to_string(), amount.get()));
        Self {
            id: key.id.to_string(),
            object: "vault_key",
            secret: None,
            secret_hint: key.secret_hint.clone(),
            billing_period: key.billing_period.clone(),
            namespace: key.namespace.clone(),
            status: KeyStatusName::of(key, now),
            caps: key.caps.iter().map(CapObject::of).collect(),
            headroom: key.headroom.to_string(),
            on_duplicate: key.on_duplicate.as_str(),
            enforcement: key.enforcement.as_str(),
            permissions: key
                .permissions
                .iter()
                .map(|held| Permission::as_str(*held))
                .collect(),
            max_charge: max_charge.collect(),
            refusal_status: key.refusal_status.as_u16(),
            accounts: key.accounts.clone(),
            require_customer: key.require_customer,
            metadata: key.metadata.clone(),
            created: key.created_at.unix_seconds(),
            starts_at: key.starts_at.map(UnixMs::unix_seconds),
            expires_at: key.expires_at.unix_seconds(),
        }
    }

    /// The same with its secret, for the one answer that shows it.
    pub(super) fn showing(self, secret: &VaultSecret) -> Self {
        let secret = Some(secret.reveal().to_owned());
        Self { secret, ..self }
    }
}

impl fmt::Debug for VaultKeyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VaultKeyObject({})", self.id)
    }
}

impl KeyStatusName {
    /// The first that is so: what ended it for good, then its time, then a stop.
    fn of(key: &VaultKey, now: UnixMs) -> Self {
        match key.status {
            KeyStatus::Revoked => Self::Revoked,
            _ if now >= key.expires_at => Self::Expired,
            _ if key.starts_at.is_some_and(|starts_at| now < starts_at) => Self::NotYetValid,
            KeyStatus::Stopped => Self::Stopped,
            KeyStatus::Active => Self::Active,
        }
    }
}

impl CapObject {
    fn of(cap: &Cap) -> Self {
        Self {
            currency: cap.currency.to_string(),
            expected_total: cap.expected_total.get(),
            max_amount: cap.max_amount.get(),
            reserved: cap.reserved.get(),
            settled: cap.settled.get(),
            remaining: cap.remaining().get(),
        }
    }
}
