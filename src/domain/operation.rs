//! What a request does at Stripe, and the permission it takes.

use std::fmt;

/// An operation that can move money (contract §1.3, class A and B).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MoneyOperation {
    /// `POST /v1/charges`: amount and currency stand in the request.
    ChargesCreate,
    /// `POST /v1/charges/{id}/capture`: the amount lives in the charge.
    ChargesCapture,
}

impl MoneyOperation {
    /// Every one, in the order of their names.
    pub const ALL: [Self; 2] = [Self::ChargesCapture, Self::ChargesCreate];

    /// The name in the ledger and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChargesCreate => "charges.create",
            Self::ChargesCapture => "charges.capture",
        }
    }

    /// The operation of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str() == name)
    }

    /// True where it makes the object whose money it moves.
    pub const fn creates(self) -> bool {
        match self {
            Self::ChargesCreate => true,
            Self::ChargesCapture => false,
        }
    }
}

impl fmt::Display for MoneyOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a vault key may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Permission {
    /// Create and capture charges; includes reading them.
    ChargesWrite,
    /// Read charges.
    ChargesRead,
    /// Read customers.
    CustomersRead,
    /// Read payment methods.
    PaymentMethodsRead,
    /// Read balance transactions.
    BalanceTransactionsRead,
    /// Read events.
    EventsRead,
}

impl Permission {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::ChargesWrite,
        Self::ChargesRead,
        Self::CustomersRead,
        Self::PaymentMethodsRead,
        Self::BalanceTransactionsRead,
        Self::EventsRead,
    ];

    /// The name in settings and the admin API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChargesWrite => "charges:write",
            Self::ChargesRead => "charges:read",
            Self::CustomersRead => "customers:read",
            Self::PaymentMethodsRead => "payment_methods:read",
            Self::BalanceTransactionsRead => "balance_transactions:read",
            Self::EventsRead => "events:read",
        }
    }

    /// The permission of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.as_str() == name)
    }

    /// True where holding `self` also grants `wanted`.
    pub fn grants(self, wanted: Self) -> bool {
        self == wanted || (self == Self::ChargesWrite && wanted == Self::ChargesRead)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
