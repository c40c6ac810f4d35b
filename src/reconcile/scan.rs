//! Rows whose object is unknown: the feed around their sends may name it. One scan serves every such row
//! of an account.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::write_off::Neighbours;
use super::{Interrupted, PAGES_PER_PASS, Reconciler, is_news, unless_busy};
use crate::domain::evidence::{Candidate, Window, check_made_by, merged, window_of};
use crate::domain::reservation::Reservation;
use crate::domain::time::UnixMs;
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
    /// Rows to be given up where the feed shows nothing of them, with what it shows beside them.
    to_give_up: BTreeMap<usize, Neighbours>,
}

impl Scan {
    /// `give_up` is now, where rows may be given up.
    pub(super) fn of(rows: Vec<Reservation>, give_up: Option<UnixMs>) -> Self {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let key = row.send.upstream_key.clone();
            by_key.entry(key).or_default().push(index);
        }
        let to_give_up: BTreeMap<usize, Neighbours> = give_up
            .into_iter()
            .flat_map(|now| {
                let rows = rows.iter().enumerate();
                rows.filter_map(move |(n, row)| Some((n, Neighbours::of(row, now)?)))
            })
            .collect();
        let wider = to_give_up.values().map(Neighbours::window);
        let windows = rows.iter().map(window_of).chain(wider);
        Self {
            windows: merged(windows).into(),
            rows,
            by_key,
            after: None,
            seen: HashSet::new(),
            to_give_up,
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
            for neighbours in self.to_give_up.values_mut() {
                neighbours.take(event);
            }
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
            // Whatever it is, it is a trace.
            self.to_give_up.remove(index);
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
            for (index, neighbours) in &scan.to_give_up {
                if let Some(row) = scan.rows.get(*index) {
                    self.give_up(row, neighbours).await?;
                }
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
                // It was not read whole.
                scan.to_give_up.clear();
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
    pub(super) async fn follow(
        &mut self,
        row: &Reservation,
        charge_id: &str,
    ) -> Result<(), Interrupted> {
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

pub(super) fn candidate(facts: &ChargeFacts) -> Candidate<'_> {
    Candidate {
        amount: facts.amount,
        currency: facts.currency,
        customer: facts.customer.as_deref(),
        created: facts.created,
    }
}
