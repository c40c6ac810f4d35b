//! Rows whose object is unknown: the feed around their sends may name it. One scan serves every such row
//! of an account.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Interrupted, PAGES_PER_PASS, Reconciler, is_news, unless_busy};
use crate::domain::evidence::{Candidate, Window, check_made_by, merged, window_of};
use crate::domain::reservation::Reservation;
use crate::stripe::answer::ChargeFacts;
use crate::stripe::event::{CHARGE_TYPES, Event, EventPage, EventQuery};

/// A scan of one account's feed, page by page, over as many passes as it takes.
#[derive(Debug)]
pub(super) struct Scan {
    rows: Vec<Reservation>,
    /// The rows by the key Stripe saw.
    by_key: HashMap<String, Vec<usize>>,
    /// What is still to be read, newest first.
    windows: VecDeque<Window>,
    /// The last event of the page before.
    after: Option<String>,
    /// Rows and objects that were put together already: a charge has several events.
    seen: HashSet<(usize, String)>,
}

impl Scan {
    pub(super) fn of(rows: Vec<Reservation>) -> Self {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let key = row.send.upstream_key.clone();
            by_key.entry(key).or_default().push(index);
        }
        Self {
            windows: merged(rows.iter().map(window_of)).into(),
            rows,
            by_key,
            after: None,
            seen: HashSet::new(),
        }
    }

    /// What to read next; `None` at the end.
    fn query(&self) -> Option<EventQuery<'_>> {
        let window = self.windows.front()?;
        Some(EventQuery {
            types: &CHARGE_TYPES,
            from: window.from,
            to: window.to,
            starting_after: self.after.as_deref(),
        })
    }

    /// Takes a page: which rows and objects belong together by their keys, not seen before.
    fn take(&mut self, page: &EventPage) -> Vec<(Reservation, String)> {
        let mut found = Vec::new();
        for event in &page.events {
            self.take_event(event, &mut found);
        }
        match page.events.last() {
            // A page that ends where the one before did would go on for ever.
            Some(last) if page.has_more && self.after.as_ref() != Some(&last.id) => {
                self.after = Some(last.id.clone());
            }
            _ => {
                self.windows.pop_front();
                self.after = None;
            }
        }
        found
    }

    fn take_event(&mut self, event: &Event, found: &mut Vec<(Reservation, String)>) {
        let (Some(key), Some(charge_id)) = (&event.idempotency_key, &event.charge_id) else {
            return;
        };
        for index in self.by_key.get(key).into_iter().flatten() {
            if self.seen.insert((*index, charge_id.clone()))
                && let Some(row) = self.rows.get(*index)
            {
                found.push((row.clone(), charge_id.clone()));
            }
        }
    }
}

impl Reconciler {
    /// Reads on in the scans that are under way, a bounded number of pages.
    pub(super) async fn go_on_scanning(&mut self) -> Result<(), Interrupted> {
        let mut pages = 0;
        while let Some((account, mut scan)) = self.scans.pop_first() {
            let mut ended = false;
            while pages < PAGES_PER_PASS && !ended {
                pages += 1;
                ended = match self.read_page(&account, &mut scan).await {
                    Ok(ended) => ended,
                    Err(interrupted) => {
                        self.scans.insert(account, scan);
                        return Err(interrupted);
                    }
                };
            }
            if !ended {
                self.scans.insert(account, scan);
                break;
            }
            let now = self.clock.now();
            for row in &scan.rows {
                self.agenda.looked(row, now);
            }
        }
        Ok(())
    }

    /// Reads one page and follows its pointers; true at the end.
    async fn read_page(&mut self, account: &str, scan: &mut Scan) -> Result<bool, Interrupted> {
        let Some(query) = scan.query() else {
            return Ok(true);
        };
        let page = match self.stripe.events(account, &query).await {
            Ok(page) => page,
            Err(error) => {
                unless_busy(error)?;
                return Ok(true);
            }
        };
        for (row, charge_id) in scan.take(&page) {
            self.follow(&row, &charge_id).await?;
        }
        Ok(scan.windows.is_empty())
    }

    /// Reads the object that the feed names under the row's key, and records what it proves if it is
    /// what the row asked for.
    async fn follow(&mut self, row: &Reservation, charge_id: &str) -> Result<(), Interrupted> {
        let facts = match self.stripe.charge(&row.account, charge_id).await {
            Ok(facts) => facts,
            Err(error) => return unless_busy(error),
        };
        if let Err(mismatch) = check_made_by(row, &candidate(&facts)) {
            tracing::warn!(
                reservation.id = %row.id,
                object.id = charge_id,
                %mismatch,
                "Another charge was made under the reservation's key: it is not taken for the \
                 reservation's"
            );
            return Ok(());
        }
        let outcome = facts.outcome();
        if is_news(row, &outcome) {
            self.report(row, outcome).await?;
        }
        Ok(())
    }
}

fn candidate(facts: &ChargeFacts) -> Candidate<'_> {
    Candidate {
        amount: facts.amount,
        currency: facts.currency,
        customer: facts.customer.as_deref(),
        created: facts.created,
    }
}
