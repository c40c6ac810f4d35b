//! Flags: recorded observations, one row per reservation (or unknown charge) and kind
//! with a count.

/// What was observed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlagKind {
    /// A known idempotency key came again with the same parameters.
    IdempotencyKeyRepeated,
    /// A known idempotency key came with other parameters.
    IdempotencyKeyReused,
    /// The customer is billed already in this period.
    DuplicateCustomerPeriod,
    /// An operation came to an object that is captured already, or has another one under way.
    DuplicateOperation,
    /// A create named no customer.
    Unattributed,
    /// Stripe answered with an object that another reservation owns.
    ForeignReplay,
    /// One intent turned out to have two objects.
    DoubleCharge,
    /// Stripe took more than was reserved.
    SettledAboveReserved,
    /// Money moved after the reservation had been given back.
    LateSettlement,
    /// A charge in the account that no reservation knows.
    Bypass,
    /// The reservation was lost with the ledger's last commits and made again from what Stripe has.
    Rebuilt,
    /// Observed only: the cap would have refused it.
    WouldRefuseSpendCap,
    /// Observed only: too large a single charge.
    WouldRefuseChargeLimit,
    /// Observed only: the currency has no cap.
    WouldRefuseCurrency,
    /// Observed only: no customer was named.
    WouldRefuseCustomerRequired,
    /// Observed only: the duplicate would have been replayed or rejected.
    WouldStopDuplicate,
}

impl FlagKind {
    /// Every one.
    pub const ALL: [Self; 16] = [
        Self::IdempotencyKeyRepeated,
        Self::IdempotencyKeyReused,
        Self::DuplicateCustomerPeriod,
        Self::DuplicateOperation,
        Self::Unattributed,
        Self::ForeignReplay,
        Self::DoubleCharge,
        Self::SettledAboveReserved,
        Self::LateSettlement,
        Self::Bypass,
        Self::Rebuilt,
        Self::WouldRefuseSpendCap,
        Self::WouldRefuseChargeLimit,
        Self::WouldRefuseCurrency,
        Self::WouldRefuseCustomerRequired,
        Self::WouldStopDuplicate,
    ];

    /// The name in the ledger, headers and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdempotencyKeyRepeated => "idempotency_key_repeated",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::DuplicateCustomerPeriod => "duplicate_customer_period",
            Self::DuplicateOperation => "duplicate_operation",
            Self::Unattributed => "unattributed",
            Self::ForeignReplay => "foreign_replay",
            Self::DoubleCharge => "double_charge",
            Self::SettledAboveReserved => "settled_above_reserved",
            Self::LateSettlement => "late_settlement",
            Self::Bypass => "bypass",
            Self::Rebuilt => "rebuilt",
            Self::WouldRefuseSpendCap => "would_refuse_spend_cap_reached",
            Self::WouldRefuseChargeLimit => "would_refuse_charge_limit_exceeded",
            Self::WouldRefuseCurrency => "would_refuse_currency_not_allowed",
            Self::WouldRefuseCustomerRequired => "would_refuse_customer_required",
            Self::WouldStopDuplicate => "would_stop_duplicate",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}
