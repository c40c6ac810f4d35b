//! The advisory pass: reads an account's event feed from end to end, once, and records what it tells of
//! refunds and of charges that no reservation knows (design §3.4). It also hurries rows it is news to.
//!
//! The feed is read up to some minutes ago, so that events that come late or out of order are in their
//! place, and a charge's own request had its time. The cursor is in the ledger and moves by
//! compare-and-set together with what was observed: replicas share the work and count nothing twice.

use std::collections::BTreeMap;

use super::{Interrupted, Reconciler, is_news, unless_busy};
use crate::domain::evidence::{Window, check_made_by};
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, State};
use crate::domain::time::UnixMs;
use crate::ledger::feed::{Bypass, FeedReport, Refund};
use crate::stripe::answer::ChargeFacts;
use crate::stripe::event::{Event, EventQuery};

/// How old an event is before it counts.
const SETTLE_MS: i64 = 5 * 60_000;

/// Stripe keeps events for 30 days (contract §6).
const RETENTION_MS: i64 = 30 * 86_400_000;

/// The longest and the shortest stretch read at once; Stripe counts in seconds.
const STRETCH_MAX_MS: i64 = 3_600_000;
const SECOND_MS: i64 = 1000;

/// Pages of one stretch; where there are more, a shorter one is read.
const PAGES_MAX: usize = 10;

/// Pages of a single second, at which no shorter stretch can be read.
const PAGES_OF_A_SECOND_MAX: usize = 200;

/// What tells of a charge or of money that went back.
const TYPES: [&str; 10] = [
    "charge.succeeded",
    "charge.pending",
    "charge.failed",
    "charge.captured",
    "charge.expired",
    "charge.refunded",
    "charge.refund.updated",
    "refund.created",
    "refund.updated",
    "refund.failed",
];

/// What is kept in mind of the feeds between two passes.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    /// The connected account that was followed last.
    last: String,
    /// How long a stretch of an account's feed fits into the pages.
    stretches_ms: BTreeMap<String, i64>,
    /// How far each was read.
    read_until: BTreeMap<String, UnixMs>,
}

/// What the events of a stretch tell of one charge.
#[derive(Debug, Default)]
struct Told {
    key: Option<String>,
    facts: Option<ChargeFacts>,
    refund: bool,
}

impl Reconciler {
    /// Follows the platform's own feed, and one connected account's after the other.
    pub(super) async fn follow_feeds(&mut self) -> Result<(), Interrupted> {
        if self.ledger.reads().lost().await?.is_some() {
            // A charge that no reservation knows may be one that was lost: it is about to be made again.
            return Ok(());
        }
        self.follow_feed("").await?;
        let next = self.ledger.reads().next_account(&self.feeds.last).await?;
        match next {
            Some(account) => {
                self.feeds.last.clone_from(&account);
                self.follow_feed(&account).await?;
            }
            None => self.feeds.last.clear(),
        }
        let now = self.clock.now();
        let behind = self.feeds.read_until.values().min();
        let lag_ms = behind.map_or(0, |read_until| now.ms_since(*read_until));
        self.metrics.feed_lag(lag_ms / 1000);
        Ok(())
    }

    async fn follow_feed(&mut self, account: &str) -> Result<(), Interrupted> {
        let now = self.clock.now();
        let to = whole_second(now.plus_ms(-SETTLE_MS));
        let Some(cursor) = self.ledger.reads().feed_cursor(account).await? else {
            return self.begin_feed(account, to).await;
        };
        let read_until = cursor.read_until;
        self.feeds.read_until.insert(account.to_owned(), read_until);
        let interval_ms = millis(self.settings.feed_interval);
        let behind = to.ms_since(read_until) > interval_ms.saturating_mul(2);
        let due = now.ms_since(cursor.read_at) >= interval_ms;
        if to <= read_until || !(due || behind) {
            return Ok(());
        }
        let oldest = whole_second(now.plus_ms(-RETENTION_MS));
        if read_until < oldest {
            tracing::warn!(
                account,
                "The event feed was not read for so long that some of it is gone"
            );
        }
        let stretch_ms = self.feeds.stretches_ms.get(account);
        let stretch_ms = stretch_ms.copied().unwrap_or(STRETCH_MAX_MS);
        let from = read_until.max(oldest);
        let to = to.min(from.plus_ms(stretch_ms));
        let Some(events) = self.read_stretch(account, from, to).await? else {
            return Ok(());
        };
        let mut report = FeedReport {
            account: account.to_owned(),
            from: Some(read_until),
            to,
            refunds: Vec::new(),
            bypasses: Vec::new(),
        };
        self.judge(&events, &mut report).await?;
        if self.ledger.observe(report).await? {
            self.feeds.read_until.insert(account.to_owned(), to);
        }
        Ok(())
    }

    /// What was before is not looked at: the ledger does not know that time.
    async fn begin_feed(&mut self, account: &str, to: UnixMs) -> Result<(), Interrupted> {
        let begin = FeedReport {
            account: account.to_owned(),
            from: None,
            to,
            refunds: Vec::new(),
            bypasses: Vec::new(),
        };
        self.ledger.observe(begin).await?;
        Ok(())
    }

    /// Every event of a stretch, oldest first; `None` where there are too many, and the next stretch is
    /// shorter, or where the feed cannot be read.
    async fn read_stretch(
        &mut self,
        account: &str,
        from: UnixMs,
        to: UnixMs,
    ) -> Result<Option<Vec<Event>>, Interrupted> {
        let window = Window {
            from,
            to: to.plus_ms(-SECOND_MS),
        };
        let stretch_ms = to.ms_since(from);
        let pages_max = if stretch_ms <= SECOND_MS {
            PAGES_OF_A_SECOND_MAX
        } else {
            PAGES_MAX
        };
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..pages_max {
            let query = EventQuery {
                types: &TYPES,
                from: window.from,
                to: window.to,
                starting_after: events.last().map(|event| event.id.as_str()),
            };
            let page = match self.stripe.events(account, &query).await {
                Ok(page) => page,
                Err(error) => return unless_busy(error).map(|()| None),
            };
            let more = page.has_more && !page.events.is_empty();
            events.extend(page.events);
            if !more {
                events.reverse();
                let next_ms = stretch_ms
                    .saturating_mul(2)
                    .clamp(SECOND_MS, STRETCH_MAX_MS);
                self.feeds.stretches_ms.insert(account.to_owned(), next_ms);
                return Ok(Some(events));
            }
        }
        let next_ms = (stretch_ms / 4).max(SECOND_MS);
        self.feeds.stretches_ms.insert(account.to_owned(), next_ms);
        Ok(None)
    }

    async fn judge(
        &mut self,
        events: &[Event],
        report: &mut FeedReport,
    ) -> Result<(), Interrupted> {
        for (charge_id, told) in told_of(events) {
            let owner = self
                .ledger
                .reads()
                .object_owner(&report.account, &charge_id);
            match owner.await? {
                Some(owner) => self.judge_known(&owner, &charge_id, &told, report).await?,
                None => self.judge_stray(&charge_id, &told, report).await?,
            }
        }
        Ok(())
    }

    /// A charge that a reservation owns: what went back of it, and whether it is news to the row.
    async fn judge_known(
        &mut self,
        owner: &Reservation,
        charge_id: &str,
        told: &Told,
        report: &mut FeedReport,
    ) -> Result<(), Interrupted> {
        if owner.state.is_reserved() {
            self.agenda.hurry(owner);
        }
        let late = told
            .facts
            .as_ref()
            .is_some_and(|facts| !owner.state.is_reserved() && is_news(owner, &facts.outcome()));
        if !told.refund && !late {
            return Ok(());
        }
        let facts = match self.stripe.charge(&owner.account, charge_id).await {
            Ok(facts) => facts,
            Err(error) => return unless_busy(error),
        };
        if late && is_news(owner, &facts.outcome()) && facts.currency == owner.currency {
            self.report(owner, facts.outcome()).await?;
        }
        if told.refund && facts.amount_given_back != owner.amount_refunded {
            report.refunds.push(Refund {
                reservation: owner.id,
                amount_refunded: facts.amount_given_back,
            });
        }
        Ok(())
    }

    /// A charge that no reservation owns: a row's after all, by its key, or one that went around.
    async fn judge_stray(
        &mut self,
        charge_id: &str,
        told: &Told,
        report: &mut FeedReport,
    ) -> Result<(), Interrupted> {
        let Some(facts) = &told.facts else {
            return Ok(());
        };
        if !matches!(
            facts.outcome(),
            Outcome::Settled { .. } | Outcome::Open { .. }
        ) {
            return Ok(());
        }
        let rows = match &told.key {
            Some(key) => {
                self.ledger
                    .reads()
                    .by_upstream_key(&report.account, key)
                    .await?
            }
            None => Vec::new(),
        };
        if rows.iter().any(|row| row.state == State::InFlight) {
            // Its answer says whose the charge is. A row given back before it, under the same key, did not
            // make it.
            return Ok(());
        }
        for row in &rows {
            let sought = row.object_id.is_none() && row.operation.creates();
            if sought && check_made_by(row, &super::scan::candidate(facts)).is_ok() {
                return self.follow(row, charge_id).await;
            }
        }
        if rows.iter().any(|row| row.state.is_reserved()) {
            return Ok(());
        }
        tracing::warn!(
            object.id = charge_id,
            account = report.account,
            amount_minor = facts.amount.get(),
            currency = %facts.currency,
            "A charge went around: no reservation knows it"
        );
        report.bypasses.push(Bypass {
            object_id: charge_id.to_owned(),
            customer: facts.customer.clone(),
        });
        Ok(())
    }
}

/// What the events, oldest first, tell of each charge.
fn told_of(events: &[Event]) -> BTreeMap<String, Told> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    for event in events {
        let Some(charge_id) = &event.charge_id else {
            continue;
        };
        let charge = told.entry(charge_id.clone()).or_default();
        charge.refund |= event.kind.contains("refund");
        // A capture's or a refund's key is not the one the charge was made under.
        if event.kind != "charge.captured" && !event.kind.contains("refund") {
            let key = event.idempotency_key.clone();
            charge.key = charge.key.take().or(key);
        }
        charge.facts = event.charge.clone().or_else(|| charge.facts.take());
    }
    told
}

fn whole_second(moment: UnixMs) -> UnixMs {
    UnixMs::from_unix_seconds(moment.unix_seconds())
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
