//! The charges that the feed names in the gap.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

use super::{GapError, Run, SKEW_MS};
use crate::domain::time::UnixMs;
use crate::stripe::answer::ChargeFacts;
use crate::stripe::event::{EventPage, EventQuery};
use crate::stripe::read::ReadError;

/// What tells that a charge was made. Later events carry the keys of later requests.
const TYPES: [&str; 2] = ["charge.succeeded", "charge.pending"];

/// How often a read is tried while Stripe is busy, each after a pause twice as long.
const TRIES_MAX: u32 = 6;

const PAUSE_FIRST: Duration = Duration::from_millis(250);

/// A charge that the feed names.
pub(super) struct Found {
    pub(super) charge_id: String,
    /// The key of the request that made it, where there was one.
    pub(super) key: Option<String>,
    pub(super) at: UnixMs,
}

impl Run<'_> {
    /// Every charge whose creation the feed tells, oldest first.
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
                let key = event.idempotency_key.clone();
                let entry = found.entry(charge_id.clone()).or_insert(Found {
                    charge_id,
                    key: None,
                    at: event.created,
                });
                // A debit that succeeds by itself later has no request behind it; the first event has.
                entry.key = entry.key.take().or(key);
                entry.at = entry.at.min(event.created);
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
