//! A vault key: the credential a billing service holds, and what it may do.

use std::collections::BTreeMap;

use super::cap::{Cap, Headroom};
use super::id::VaultKeyId;
use super::money::{AmountMinor, Currency};
use super::operation::Permission;
use super::refusal::Refusal;
use super::time::UnixMs;

/// What happens to a create whose customer and period are billed already (design §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnDuplicate {
    /// The caller gets the charge that exists.
    Replay,
    /// The caller gets an error that names it.
    Reject,
    /// A second charge is made and flagged.
    Flag,
}

impl OnDuplicate {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Replay, Self::Reject, Self::Flag];

    /// The name in settings and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Reject => "reject",
            Self::Flag => "flag",
        }
    }

    /// The policy of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}

/// Whether refusals are made or only recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Enforcement {
    /// Refuse.
    Enforce,
    /// Reserve, forward, and flag what would have been refused: the way to adopt.
    Observe,
}

impl Enforcement {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Enforce, Self::Observe];

    /// The name in the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }

    /// The enforcement of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|enforcement| enforcement.as_str() == name)
    }
}

/// What an operator did to a key; expiry is told by the clock, not stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyStatus {
    /// In use.
    Active,
    /// An excess was recorded; no money until an operator resumes it.
    Stopped,
    /// Ended for good.
    Revoked,
}

impl KeyStatus {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Active, Self::Stopped, Self::Revoked];

    /// The name in the ledger and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stopped => "stopped",
            Self::Revoked => "revoked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// The status a vault key answers a cap refusal with: SDKs that go by status raise a card exception
/// on any 402 (contract §3.3), so a key may choose 403.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefusalStatus {
    /// 402, the default.
    PaymentRequired,
    /// 403.
    Forbidden,
}

impl RefusalStatus {
    /// The HTTP status.
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::PaymentRequired => 402,
            Self::Forbidden => 403,
        }
    }

    /// 402 or 403.
    pub const fn from_u16(status: u16) -> Option<Self> {
        match status {
            402 => Some(Self::PaymentRequired),
            403 => Some(Self::Forbidden),
            _ => None,
        }
    }
}

/// Everything about a vault key but its secret, which is stored as a SHA-256 beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VaultKey {
    /// Its public id.
    pub id: VaultKeyId,
    /// The end of the current secret, for people: `…a1b2`.
    pub secret_hint: String,
    /// The operator's name for the run.
    pub billing_period: String,
    /// Which billing job it is.
    pub namespace: String,
    /// What an operator did to it.
    pub status: KeyStatus,
    /// From when it may be used.
    pub starts_at: Option<UnixMs>,
    /// Until when, exclusive.
    pub expires_at: UnixMs,
    /// The factor between an expected total and its cap.
    pub headroom: Headroom,
    /// The duplicate policy.
    pub on_duplicate: OnDuplicate,
    /// Refuse, or only record.
    pub enforcement: Enforcement,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// The largest single charge, by currency.
    pub max_charge: BTreeMap<Currency, AmountMinor>,
    /// The status of cap refusals.
    pub refusal_status: RefusalStatus,
    /// Connected accounts whose money it may move, besides the platform's own.
    pub accounts: Vec<String>,
    /// Refuse creates that name no customer.
    pub require_customer: bool,
    /// The operator's own notes.
    pub metadata: BTreeMap<String, String>,
    /// One cap per currency, in the order of their codes.
    pub caps: Vec<Cap>,
    /// When it was issued.
    pub created_at: UnixMs,
}

impl VaultKey {
    /// Whether the key may be used at `now` at all; money also needs [`VaultKey::check_money`].
    pub fn check_usable(&self, now: UnixMs) -> Result<(), Refusal> {
        if self.status == KeyStatus::Revoked {
            return Err(Refusal::VaultKeyRevoked);
        }
        if now >= self.expires_at {
            return Err(Refusal::VaultKeyExpired {
                expired_at: self.expires_at,
            });
        }
        match self.starts_at {
            Some(starts_at) if now < starts_at => Err(Refusal::VaultKeyNotYetValid { starts_at }),
            _ => Ok(()),
        }
    }

    /// Whether the key may move money at `now`.
    pub fn check_money(&self, now: UnixMs) -> Result<(), Refusal> {
        self.check_usable(now)?;
        if self.status == KeyStatus::Stopped {
            Err(Refusal::VaultKeyStopped)
        } else {
            Ok(())
        }
    }

    /// True where one of its permissions grants `wanted`.
    pub fn may(&self, wanted: Permission) -> bool {
        self.permissions.iter().any(|held| held.grants(wanted))
    }

    /// Its cap in `currency`.
    pub fn cap(&self, currency: Currency) -> Option<&Cap> {
        self.caps.iter().find(|cap| cap.currency == currency)
    }

    /// Its cap in `currency`, to be changed.
    pub fn cap_mut(&mut self, currency: Currency) -> Option<&mut Cap> {
        self.caps.iter_mut().find(|cap| cap.currency == currency)
    }

    /// True for a key that records instead of refusing.
    pub fn observes(&self) -> bool {
        self.enforcement == Enforcement::Observe
    }
}
