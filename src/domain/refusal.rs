//! Why a request is not carried out. One closed list; `stripe::envelope` turns it into an answer.

use super::money::{AmountMinor, Currency};
use super::operation::Permission;
use super::time::UnixMs;
use super::vault_key::RefusalStatus;

/// A refusal of the data plane (design §4). Nothing was reserved and nothing was sent on its
/// account, except where a variant says otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No credential, or not one of ours.
    VaultKeyInvalid,
    /// The key was revoked.
    VaultKeyRevoked,
    /// The key's time is over.
    VaultKeyExpired {
        /// Since when.
        expired_at: UnixMs,
    },
    /// The key's time has not come.
    VaultKeyNotYetValid {
        /// From when it may be used.
        starts_at: UnixMs,
    },
    /// An excess was recorded under this key.
    VaultKeyStopped,
    /// Unknown path or method, or one this key may not use.
    OperationNotPermitted {
        /// The permission it takes, where the operation is known.
        missing: Option<Permission>,
    },
    /// The key may not act on that account.
    AccountNotPermitted,
    /// A parameter or header that is malformed or can be read in two ways.
    BadParameter(BadParameter),
    /// The key has no cap in that currency.
    CurrencyNotAllowed {
        /// What was asked for.
        currency: Currency,
    },
    /// The key takes creates with a customer only.
    CustomerRequired,
    /// The cap does not hold that much more.
    SpendCapReached(CapReached),
    /// Larger than the key's largest single charge.
    ChargeLimitExceeded {
        /// The bound.
        max_charge: AmountMinor,
        /// What was asked for.
        asked: AmountMinor,
        /// In which currency.
        currency: Currency,
        /// The status this key answers with.
        status: RefusalStatus,
    },
    /// The customer is billed already in this period, and the key rejects duplicates.
    DuplicateCustomerPeriod {
        /// What the first request made: an object id, or a reservation where there is none.
        existing: String,
    },
    /// The idempotency key came with other parameters before.
    IdempotencyKeyReused {
        /// The key as the client sent it.
        key: String,
    },
    /// The first request of this intent has not ended in time.
    IdempotencyKeyInUse,
    /// What an earlier attempt did is not known.
    OutcomeUnknown {
        /// True while the answer may come by itself.
        retryable: bool,
    },
    /// The charge is captured already (Stripe's own `charge_already_captured`).
    ChargeAlreadyCaptured {
        /// Its id.
        charge: String,
    },
    /// Stripe has no such charge (its own `resource_missing`).
    NoSuchCharge {
        /// The id asked for.
        charge: String,
    },
    /// The body is over the limit.
    RequestTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The ledger cannot be read or written: money is refused.
    LedgerUnavailable,
    /// The ledger may have lost commits: money is refused until what Stripe made since is read.
    LedgerLostCommits,
    /// Too much is queued.
    Overloaded,
    /// The breaker is open, or Stripe has not told yet whose the real key is.
    UpstreamUnhealthy,
    /// No connection to Stripe could be opened; nothing was sent.
    UpstreamUnreachable,
    /// Stripe did not answer a request that moves no money, or answered what cannot be passed on.
    UpstreamFailed,
    /// Sent, and no usable answer came back: the reservation is held.
    NoAnswer,
}

/// A parameter or header that was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadParameter {
    /// Stripe's own code for the case.
    pub code: ParameterCode,
    /// The name as the client wrote it, where one is to blame.
    pub param: Option<String>,
    /// What is wrong and what to send instead.
    pub message: String,
}

/// Stripe's codes for what is wrong with a parameter (docs.stripe.com/error-codes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterCode {
    /// The value holds characters that the field does not take.
    InvalidCharacters,
    /// A required value is empty.
    InvalidEmpty,
    /// A value that must be an integer is not.
    InvalidInteger,
    /// A value that is not allowed for the charge.
    ChargeInvalid,
    /// A required value is absent.
    Missing,
    /// A name that is not taken here.
    Unknown,
    /// Two values where one is allowed.
    Exclusive,
}

impl ParameterCode {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::InvalidCharacters,
        Self::InvalidEmpty,
        Self::InvalidInteger,
        Self::ChargeInvalid,
        Self::Missing,
        Self::Unknown,
        Self::Exclusive,
    ];

    /// The code as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidCharacters => "invalid_characters",
            Self::InvalidEmpty => "parameter_invalid_empty",
            Self::InvalidInteger => "parameter_invalid_integer",
            Self::ChargeInvalid => "charge_invalid_parameter",
            Self::Missing => "parameter_missing",
            Self::Unknown => "parameter_unknown",
            Self::Exclusive => "parameters_exclusive",
        }
    }
}

impl From<BadParameter> for Refusal {
    fn from(bad: BadParameter) -> Self {
        Self::BadParameter(bad)
    }
}

/// The numbers behind `spend_cap_reached`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapReached {
    /// The cap.
    pub max_amount: AmountMinor,
    /// Reserved and settled together.
    pub used: AmountMinor,
    /// What was asked for.
    pub asked: AmountMinor,
    /// In which currency.
    pub currency: Currency,
    /// The status this key answers with.
    pub status: RefusalStatus,
}
