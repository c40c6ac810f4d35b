//! Reads Stripe's feed over a gap in which the ledger may have lost commits, and makes the reservations
//! again whose charges are there (`spendcap reconcile`).
//!
//! Whatever it does is compare-and-set in the ledger and audited, so it may be run again, and at any time.
//! It ends the refusal of money only where the whole gap was read and every charge in it has a reservation.

mod find;
mod rebuild;

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

use super::paced::Paced;
use crate::clock::Clock;
use crate::domain::id::VaultKeyId;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use crate::ledger::command::{Control, ControlError, ControlRequest, EndLost};
use crate::ledger::{Ledger, LedgerError, LostCommits};
use crate::stripe::read::{ReadError, StripeRead};

/// An operator waits for it, and Stripe takes a hundred reads a second in live mode (contract §7).
const READS_PER_SECOND: u32 = 20;

/// How far Stripe's clock may be from the store's, both ways.
const SKEW_MS: i64 = 60_000;

/// Charges without a reservation that are told by name; the rest is counted.
const UNATTRIBUTED_MAX: usize = 100;

/// What it works with. A cheap clone.
#[derive(Clone, Debug)]
pub struct GapReader {
    /// Where reservations are.
    pub ledger: Ledger,
    /// Reads from Stripe.
    pub stripe: Arc<dyn StripeRead>,
    /// Its clock.
    pub clock: Clock,
}

/// What an operator asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapOrder {
    /// Where the gap begins.
    pub since: UnixMs,
    /// Whose a charge is that may be of several vault keys.
    pub vault_key: Option<VaultKeyId>,
    /// Take money again although some charges have no reservation, for this reason.
    pub leave: Option<String>,
    /// Who asks, for the audit log.
    pub actor: String,
}

/// What was found and done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapReport {
    /// Up to when the feed was read.
    pub until: UnixMs,
    /// Charges that the feed named.
    pub charges: u64,
    /// Of those: some reservation had them.
    pub known: u64,
    /// Of those: a reservation had waited for them.
    pub settled: u64,
    /// Of those: made again now.
    pub rebuilt: u64,
    /// Of those: without an idempotency key, so not made through spendcap, or nothing moved.
    pub passed_over: u64,
    /// Of those: nobody can tell under which vault key.
    pub unattributed_count: u64,
    /// The first of them.
    pub unattributed: Vec<Unattributed>,
    /// What it means for the ledger.
    pub end: GapEnd,
}

/// A charge that may be of several vault keys, or of none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unattributed {
    /// Its id.
    pub charge: String,
    /// Its account; empty for the platform's own.
    pub account: String,
    /// Whom it bills.
    pub customer: Option<String>,
    /// What it took or may take.
    pub amount: AmountMinor,
    /// In which currency.
    pub currency: Currency,
    /// When it was made.
    pub created: UnixMs,
    /// Whose it may be.
    pub candidates: Vec<VaultKeyId>,
}

/// Whether money is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapEnd {
    /// Nothing was known to be lost: money was taken before, and is.
    NothingLost,
    /// Money is taken again.
    Ended,
    /// Charges without a reservation are left: money is refused.
    Unattributed,
    /// Requests that left before may become charges until then: money is refused, run it again.
    TooEarly(UnixMs),
    /// More was lost meanwhile: money is refused, run it again.
    LostMore,
}

/// The gap was not read to its end; what was found until then is in the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GapError {
    /// The newest reservation that is left is older than that.
    #[error(
        "the last reservation that is left is from {newest}, and what came after it may be lost: read \
         since then, or earlier"
    )]
    SinceTooLate {
        /// The latest moment to begin.
        newest: UnixMs,
    },
    /// A time to come.
    #[error("that is in the future")]
    SinceInFuture,
    /// No vault key of that id was valid in the gap.
    #[error("no vault key of that id was valid in that time")]
    UnknownVaultKey,
    /// Stripe does not show the feed of a connected account.
    #[error(
        "Stripe's feed of the account {account} was not read: {error}. Where it is not connected any more, \
         leave_unattributed takes money again without it"
    )]
    Account {
        /// Whose.
        account: String,
        /// Why not.
        error: ReadError,
    },
    /// Stripe does not show its feed.
    #[error("Stripe's feed was not read: {0}")]
    Stripe(#[from] ReadError),
    /// The ledger does not take part.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// One run.
struct Run<'a> {
    reader: &'a GapReader,
    order: &'a GapOrder,
    stripe: Paced,
    keys: Vec<VaultKey>,
    livemode: bool,
    /// Connected accounts that Stripe does not show any more.
    unread: Vec<String>,
    report: GapReport,
}

impl GapReader {
    /// Reads the gap and makes again what was lost.
    ///
    /// # Errors
    /// Where it was not read to its end.
    pub async fn read(&self, order: &GapOrder) -> Result<GapReport, GapError> {
        let reads = self.ledger.reads();
        let now = reads.time().await?;
        if order.since > now {
            return Err(GapError::SinceInFuture);
        }
        let lost = reads.lost().await?;
        let newest = lost.as_ref().and_then(|lost| lost.newest_row);
        if let Some(newest) = newest.filter(|newest| order.since > *newest) {
            return Err(GapError::SinceTooLate { newest });
        }
        let from = order.since.plus_ms(-SKEW_MS);
        let keys = reads.vault_keys_between(from, now).await?;
        let named = |id: &VaultKeyId| keys.iter().any(|key| key.id == *id);
        if !order.vault_key.as_ref().is_none_or(named) {
            return Err(GapError::UnknownVaultKey);
        }
        let mut run = Run {
            reader: self,
            order,
            stripe: Paced::new(
                Arc::clone(&self.stripe),
                self.clock.clone(),
                READS_PER_SECOND,
            ),
            keys,
            livemode: reads.livemode().await?.unwrap_or_default(),
            unread: Vec::new(),
            report: GapReport::empty(now),
        };
        for account in run.accounts() {
            let found = match run.feed(&account, from, now).await {
                Ok(found) => found,
                Err(error) => {
                    run.leave_unread(account, error)?;
                    continue;
                }
            };
            for found in found {
                run.take(&account, found).await?;
            }
        }
        run.report.end = run.end(lost).await?;
        Ok(run.report)
    }
}

impl Run<'_> {
    /// The platform's own, and every one that a vault key may act on.
    fn accounts(&self) -> BTreeSet<String> {
        let named = self.keys.iter().flat_map(|key| key.accounts.clone());
        named.chain([String::new()]).collect()
    }

    /// A connected account may be gone for good, and money is not refused for good with it: like a charge
    /// it may be left.
    fn leave_unread(&mut self, account: String, error: GapError) -> Result<(), GapError> {
        match error {
            GapError::Stripe(error @ ReadError::Forbidden) if !account.is_empty() => {
                if self.order.leave.is_none() {
                    return Err(GapError::Account { account, error });
                }
                tracing::warn!(account, "The feed of a connected account was left unread");
                self.unread.push(account);
                Ok(())
            }
            error => Err(error),
        }
    }

    async fn end(&self, lost: Option<LostCommits>) -> Result<GapEnd, GapError> {
        let Some(lost) = lost else {
            return Ok(GapEnd::NothingLost);
        };
        let left = self.report.unattributed_count;
        if left > 0 && self.order.leave.is_none() {
            return Ok(GapEnd::Unattributed);
        }
        let report = &self.report;
        let mut detail = format!(
            "read since {}: {} charges, {} known, {} settled, {} rebuilt, {left} left without a \
             reservation",
            self.order.since.unix_seconds(),
            report.charges,
            report.known,
            report.settled,
            report.rebuilt,
        );
        if !self.unread.is_empty() {
            detail.push_str("; accounts not read: ");
            detail.push_str(&self.unread.join(", "));
        }
        let reason = self.order.leave.clone().unwrap_or_default();
        let end = EndLost {
            lost,
            read_at: report.until,
            reason,
            detail,
        };
        match self.control(Control::EndLost(Box::new(end))).await? {
            Ok(()) => Ok(GapEnd::Ended),
            Err(ControlError::TooEarly(until)) => Ok(GapEnd::TooEarly(until)),
            Err(_) => Ok(GapEnd::LostMore),
        }
    }

    async fn control(&self, control: Control) -> Result<Result<(), ControlError>, LedgerError> {
        let request = ControlRequest {
            control,
            actor: self.order.actor.clone(),
            idempotency: None,
        };
        let done = self.reader.ledger.control(request).await?;
        Ok(done.map(|_| ()))
    }
}

impl GapReport {
    const fn empty(until: UnixMs) -> Self {
        Self {
            until,
            charges: 0,
            known: 0,
            settled: 0,
            rebuilt: 0,
            passed_over: 0,
            unattributed_count: 0,
            unattributed: Vec::new(),
            end: GapEnd::NothingLost,
        }
    }
}
