//! The charges that the feed names in the gap.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use tokio::time::sleep;

use super::{GapError, Run, SKEW_MS};
use crate::domain::operation::MoneyOperation;
use crate::domain::time::UnixMs;
use crate::stripe::answer::ChargeFacts;
use crate::stripe::event::{Event, EventPage, EventQuery};
use crate::stripe::read::ReadError;

/// What tells that money moves: a charge was made, or one of before was captured.
const TYPES: [&str; 3] = ["charge.succeeded", "charge.pending", CAPTURED];

const CAPTURED: &str = "charge.captured";

/// How often a read is tried while Stripe is busy, each after a pause twice as long.
const TRIES_MAX: u32 = 6;

const PAUSE_FIRST: Duration = Duration::from_millis(250);

/// A charge that the feed names.
pub(super) struct Found {
    pub(super) charge_id: String,
    /// What was done: its creation, or its capture alone where it was made before.
    pub(super) operation: MoneyOperation,
    /// The key of the request that did it, where there was one.
    pub(super) key: Option<String>,
    pub(super) at: UnixMs,
}

impl Found {
    fn by(charge_id: String, event: &Event) -> Self {
        let operation = if event.kind == CAPTURED {
            MoneyOperation::ChargesCapture
        } else {
            MoneyOperation::ChargesCreate
        };
        Self {
            charge_id,
            operation,
            key: event.idempotency_key.clone(),
            at: event.created,
        }
    }

    /// Takes in what another event tells. Events of different operations carry the keys of different
    /// requests, and a creation stands for all that came of it.
    fn join(&mut self, other: Self) {
        match (self.operation.creates(), other.operation.creates()) {
            (true, false) => {}
            (false, true) => *self = other,
            // A debit that succeeds by itself later has no request behind it; the first event has.
            (true, true) | (false, false) => {
                self.key = self.key.take().or(other.key);
                self.at = self.at.min(other.at);
            }
        }
    }
}

impl Run<'_> {
    /// Every charge whose creation or capture the feed tells, oldest first.
    pub(super) async fn feed(
        &mut self,
        account: &str,
        from: UnixMs,
        now: UnixMs,
    ) -> Result<Vec<Found>, GapError> {
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        let mut after: Option<String> = None;
        loop {
            let query = EventQuery {
                types: &TYPES,
                from,
                to: now.plus_ms(SKEW_MS),
                starting_after: after.as_deref(),
            };
            let page = self.page(account, &query).await?;
            for event in &page.events {
                let Some(charge_id) = event.charge_id.clone() else {
                    continue;
                };
                let told = Found::by(charge_id.clone(), event);
                match found.entry(charge_id) {
                    Entry::Occupied(known) => known.into_mut().join(told),
                    Entry::Vacant(unknown) => {
                        unknown.insert(told);
                    }
                }
            }
            let last = page.events.last().map(|event| event.id.clone());
            match last {
                // A page that ends where the one before did would go on for ever.
                Some(last) if page.has_more && after.as_ref() != Some(&last) => after = Some(last),
                Some(_) if page.has_more => return Err(ReadError::Unreadable.into()),
                _ => break,
            }
        }
        let mut found: Vec<Found> = found.into_values().collect();
        found.sort_by_key(|found| found.at);
        Ok(found)
    }

    async fn page(
        &mut self,
        account: &str,
        query: &EventQuery<'_>,
    ) -> Result<EventPage, ReadError> {
        let mut pause = PAUSE_FIRST;
        for _ in 1..TRIES_MAX {
            match self.stripe.events(account, query).await {
                Err(ReadError::Busy) => sleep(pause).await,
                read => return read,
            }
            pause *= 2;
        }
        self.stripe.events(account, query).await
    }

    pub(super) async fn charge(
        &mut self,
        account: &str,
        id: &str,
    ) -> Result<ChargeFacts, ReadError> {
        let mut pause = PAUSE_FIRST;
        for _ in 1..TRIES_MAX {
            match self.stripe.charge(account, id).await {
                Err(ReadError::Busy) => sleep(pause).await,
                read => return read,
            }
            pause *= 2;
        }
        self.stripe.charge(account, id).await
    }
}
