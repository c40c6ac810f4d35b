//! What an answer of Stripe proves about one send (design §3.2).

use super::money::AmountMinor;

/// The proof an answer carries. `stripe::answer` makes it; `domain::settlement` spends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The money moved.
    Settled {
        /// The object that moved it.
        object_id: String,
        /// How much, in minor units.
        amount: AmountMinor,
    },
    /// The object exists and its money may still move.
    Open {
        /// The object.
        object_id: String,
        /// The most it can move, in minor units.
        ceiling: AmountMinor,
    },
    /// The object exists and its money can no longer move: a voided authorisation, a failed charge.
    Dead {
        /// The object.
        object_id: String,
    },
    /// Stripe stored a refusal under the key: the outcome of every send so far.
    StoredRefusal,
    /// This send did nothing; earlier sends are not spoken of.
    RefusedThisSend,
    /// No byte of this send left: no connection, or its time was over.
    NotSent,
    /// Stripe answered with a server error: nothing is proven, and it may still be rolled forward.
    ServerError,
    /// Nothing is proven, and Stripe said nothing.
    Unknown,
}

impl Outcome {
    /// True where nobody knows after it what the send did.
    pub const fn proves_nothing(&self) -> bool {
        matches!(self, Self::Unknown | Self::ServerError)
    }

    /// The object it names.
    pub fn object_id(&self) -> Option<&str> {
        match self {
            Self::Settled { object_id, .. }
            | Self::Open { object_id, .. }
            | Self::Dead { object_id } => Some(object_id),
            Self::StoredRefusal
            | Self::RefusedThisSend
            | Self::NotSent
            | Self::ServerError
            | Self::Unknown => None,
        }
    }
}
