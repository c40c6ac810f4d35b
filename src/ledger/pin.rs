//! The account and mode a ledger belongs to: the first is stored, another is refused.

use thiserror::Error;

use super::handle::{Ledger, LedgerError};

/// The real key is not for this ledger.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PinError {
    /// Another account's key.
    #[error(
        "this ledger belongs to the Stripe account {pinned}, and the key is for {given}: use a key of \
         {pinned}, or another ledger"
    )]
    OtherAccount {
        /// Whose it is.
        pinned: String,
        /// Whose key was given.
        given: String,
    },
    /// A live key on a test ledger, or the reverse.
    #[error(
        "this ledger holds {pinned} money, and the key is for {given} mode: use a {pinned} key, or \
         another ledger"
    )]
    OtherMode {
        /// `live` or `test`.
        pinned: &'static str,
        /// `live` or `test`.
        given: &'static str,
    },
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Ledger {
    /// Pins the ledger to the account and mode of the real key, or refuses a key of another. An account
    /// that is not known pins, and is held against, nothing. Returns the account that is pinned now.
    pub async fn pin(
        &self,
        account_id: Option<&str>,
        livemode: bool,
    ) -> Result<Option<String>, PinError> {
        let given = mode(livemode);
        let pinned = self.reads().pin_fact("mode", given).await?;
        if pinned != given {
            let pinned = mode(pinned == mode(true));
            return Err(PinError::OtherMode { pinned, given });
        }
        let Some(given) = account_id else {
            return Ok(self.reads().fact("account").await?);
        };
        let pinned = self.reads().pin_fact("account", given).await?;
        if pinned == given {
            return Ok(Some(pinned));
        }
        let given = given.to_owned();
        Err(PinError::OtherAccount { pinned, given })
    }
}

const fn mode(livemode: bool) -> &'static str {
    if livemode { "live" } else { "test" }
}
