//! The reconciler: finds out at Stripe what became of reservations that are held or open (design §3.4).
//!
//! It only reads from Stripe, and only what a vault key's requests are about; what an object proves is
//! settled by the ledger as an answer would be, so any number of replicas may do this at once. One
//! [`Reconciler::pass`] is a plain async function over a ledger, a reader and a clock: it starts no task
//! and knows no other time.

mod agenda;
mod feed;
pub mod gap;
mod objects;
mod paced;
mod scan;
mod write_off;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::domain::evidence::is_sought;
use crate::domain::id::ReservationId;
use crate::domain::outcome::Outcome;
use crate::domain::reservation::{Reservation, State};
use crate::domain::settlement::Report;
use crate::ledger::{Ledger, LedgerError};
use crate::stripe::read::{ReadError, StripeRead};
use crate::telemetry::metrics::Metrics;

use agenda::Agenda;
use feed::Feeds;
use paced::Paced;
use scan::Scan;

/// Rows that one look into the ledger takes.
const ROWS_PER_LOOK: u32 = 500;

/// Looks into the ledger of one pass: what is left is looked at in the next.
const LOOKS_PER_PASS: u32 = 20;

/// Objects read in one pass, so that no kind of work waits long for the others.
const OBJECTS_PER_PASS: usize = 50;

/// Rows that share one scan of the feed; a bound of memory.
const ROWS_PER_SCAN: usize = 1000;

/// Pages of the feed read for held rows in one pass.
const PAGES_PER_PASS: usize = 20;

/// The longest rest while Stripe is busy.
const REST_MAX: Duration = Duration::from_mins(5);

/// How the reconciler behaves.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileSettings {
    /// How long it rests between two passes; also how soon a row is looked at again.
    pub interval: Duration,
    /// The most reads a second: Stripe counts them together with everybody else's (contract §7).
    pub reads_per_second: u32,
    /// How often the event feed is read on.
    pub feed_interval: Duration,
    /// Whether what left no trace in the feed is given up after a day.
    pub write_off: bool,
}

/// What it works with.
#[derive(Debug)]
pub struct ReconcileParts {
    /// Where reservations are.
    pub ledger: Ledger,
    /// Reads from Stripe.
    pub stripe: Arc<dyn StripeRead>,
    /// Its clock.
    pub clock: Clock,
    /// Where it counts what it finds.
    pub metrics: Arc<Metrics>,
    /// How it behaves.
    pub settings: ReconcileSettings,
}

/// Finds out what became of held and open reservations.
#[derive(Debug)]
pub struct Reconciler {
    ledger: Ledger,
    stripe: Paced,
    clock: Clock,
    metrics: Arc<Metrics>,
    settings: ReconcileSettings,
    agenda: Agenda,
    /// Where the next look into the ledger goes on.
    after: Option<ReservationId>,
    /// Scans of the feed under way, by account.
    scans: BTreeMap<String, Scan>,
    feeds: Feeds,
    rest: Duration,
}

/// Why a pass ended early; the next one goes on.
#[derive(Debug)]
enum Interrupted {
    /// Stripe is busy or away: rest longer.
    Stripe,
    /// The ledger cannot be read or written.
    Ledger,
}

impl From<LedgerError> for Interrupted {
    fn from(_: LedgerError) -> Self {
        Self::Ledger
    }
}

impl Reconciler {
    /// Puts the parts together.
    pub fn new(parts: ReconcileParts) -> Self {
        let ReconcileParts {
            ledger,
            stripe,
            clock,
            metrics,
            settings,
        } = parts;
        Self {
            ledger,
            stripe: Paced::new(stripe, clock.clone(), settings.reads_per_second),
            clock,
            metrics,
            agenda: Agenda::new(settings.interval),
            after: None,
            scans: BTreeMap::new(),
            feeds: Feeds::default(),
            rest: settings.interval,
            settings,
        }
    }

    /// Runs for ever; may be dropped at any point.
    pub async fn run(mut self) {
        loop {
            let rest = self.pass().await;
            tokio::time::sleep(rest).await;
        }
    }

    /// One pass: a bounded number of reads at a bounded rate. Returns how long to rest before the next.
    pub async fn pass(&mut self) -> Duration {
        self.rest = match self.try_pass().await {
            Ok(()) | Err(Interrupted::Ledger) => self.settings.interval,
            Err(Interrupted::Stripe) => self.rest.saturating_mul(2).min(REST_MAX),
        };
        self.rest
    }

    async fn try_pass(&mut self) -> Result<(), Interrupted> {
        let mut sought: BTreeMap<String, Vec<Reservation>> = BTreeMap::new();
        let mut known = Vec::new();
        for _ in 0..LOOKS_PER_PASS {
            let rows = self.ledger.reads().unresolved(self.after, ROWS_PER_LOOK);
            let rows = rows.await?;
            let last = rows.last().map(|row| row.id);
            for row in rows {
                if known.len() >= OBJECTS_PER_PASS {
                    break;
                }
                self.after = Some(row.id);
                self.sort(row, &mut known, &mut sought);
            }
            if last.is_none() {
                self.after = None;
                self.agenda.end_round();
                break;
            }
            if known.len() >= OBJECTS_PER_PASS {
                break;
            }
        }
        for (account, rows) in sought {
            let give_up = self.settings.write_off.then(|| self.clock.now());
            let scan = || Scan::of(rows, give_up);
            self.scans.entry(account).or_insert_with(scan);
        }
        for row in known {
            self.look_at_object(&row).await?;
        }
        self.go_on_scanning().await?;
        let followed = self.follow_feeds().await;
        self.metrics
            .reconcile_forbidden(self.stripe.is_anything_forbidden());
        followed
    }

    /// What is to be done about a row now, if anything.
    fn sort(
        &mut self,
        row: Reservation,
        known: &mut Vec<Reservation>,
        sought: &mut BTreeMap<String, Vec<Reservation>>,
    ) {
        if !self.agenda.is_due(&row, self.clock.now()) {
            return;
        }
        if row.object_id.is_some() {
            known.push(row);
        } else if is_sought(&row) && !self.scans.contains_key(&row.account) {
            let rows = sought.entry(row.account.clone()).or_default();
            if rows.len() < ROWS_PER_SCAN {
                rows.push(row);
            }
        }
    }

    /// Hands to the ledger what an object proves about a row.
    async fn report(&mut self, row: &Reservation, outcome: Outcome) -> Result<(), Interrupted> {
        let object_id = outcome.object_id().map(str::to_owned);
        let report = Report {
            reservation: row.clone(),
            outcome,
        };
        let settled = self.ledger.settle(report).await.stored().await?;
        if settled.state != row.state {
            self.metrics.reconciled(settled.state);
            tracing::info!(
                reservation.id = %row.id,
                from = row.state.as_str(),
                state = settled.state.as_str(),
                object.id = object_id,
                "Stripe told what became of a reservation"
            );
        }
        Ok(())
    }
}

/// Whether what the object proves may say something new about the row. That a known object is open does
/// not: a held operation on it may still be under way. Of a row that was given back, only money is news.
fn is_news(row: &Reservation, outcome: &Outcome) -> bool {
    let open = matches!(outcome, Outcome::Open { .. });
    let money = open || matches!(outcome, Outcome::Settled { .. });
    match row.state {
        State::Held | State::Open => !(open && row.object_id.is_some()),
        State::Released | State::WrittenOff => money,
        State::InFlight | State::Settled => false,
    }
}

/// A read that failed ends the pass only where every other would fail as well.
fn unless_busy(error: ReadError) -> Result<(), Interrupted> {
    match error {
        ReadError::Busy => Err(Interrupted::Stripe),
        ReadError::Missing | ReadError::Forbidden | ReadError::Unreadable => Ok(()),
    }
}
