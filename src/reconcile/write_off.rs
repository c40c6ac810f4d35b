//! Giving up what the feed does not show, where the operator has switched that on (design §3.4).
//!
//! That the feed shows nothing of a row counts only where it was read without a gap, and shows settled
//! charges of this ledger both before and after the row: then it was there to be shown.

use std::collections::VecDeque;

use super::{Interrupted, Reconciler};
use crate::domain::evidence::{Window, window_of};
use crate::domain::reservation::{Reservation, State};
use crate::domain::settlement::write_off;
use crate::domain::time::UnixMs;
use crate::stripe::event::Event;

/// How far around a row its neighbours are looked for.
const NEIGHBOURS_MS: i64 = 3_600_000;

/// How many of them on each side are held against the ledger.
const NEIGHBOURS_MAX: usize = 20;

/// The charges that the feed shows next to a row.
#[derive(Debug)]
pub(super) struct Neighbours {
    window: Window,
    before: Vec<String>,
    after: VecDeque<String>,
}

impl Neighbours {
    /// `None` where the row is not to be given up whatever the feed shows.
    pub(super) fn of(row: &Reservation, now: UnixMs) -> Option<Self> {
        write_off(row, now)?;
        Some(Self {
            window: window_of(row),
            before: Vec::new(),
            after: VecDeque::new(),
        })
    }

    /// Where they are looked for.
    pub(super) fn window(&self) -> Window {
        Window {
            from: self.window.from.plus_ms(-NEIGHBOURS_MS),
            to: self.window.to.plus_ms(NEIGHBOURS_MS),
        }
    }

    /// Takes the next event; they come newest first.
    pub(super) fn take(&mut self, event: &Event) {
        let Some(charge_id) = &event.charge_id else {
            return;
        };
        if event.created > self.window.to {
            if self.after.len() == NEIGHBOURS_MAX {
                self.after.pop_front();
            }
            self.after.push_back(charge_id.clone());
        } else if event.created < self.window.from && self.before.len() < NEIGHBOURS_MAX {
            self.before.push(charge_id.clone());
        }
    }
}

impl Reconciler {
    /// Gives a row up of which the whole feed around it showed nothing.
    pub(super) async fn give_up(
        &mut self,
        row: &Reservation,
        neighbours: &Neighbours,
    ) -> Result<(), Interrupted> {
        let before = self.any_settled(&row.account, neighbours.before.iter());
        if !before.await? {
            return Ok(());
        }
        let after = self.any_settled(&row.account, neighbours.after.iter());
        if !after.await? {
            return Ok(());
        }
        if self.ledger.write_off(row.clone()).await? {
            tracing::warn!(
                reservation.id = %row.id,
                amount_minor = row.amount.get(),
                "A reservation is written off: its send left no trace at Stripe"
            );
            self.metrics.reconciled(State::WrittenOff);
        }
        Ok(())
    }

    async fn any_settled<'a>(
        &self,
        account: &str,
        charges: impl Iterator<Item = &'a String>,
    ) -> Result<bool, Interrupted> {
        for charge in charges {
            let owner = self.ledger.reads().object_owner(account, charge).await?;
            if owner.is_some_and(|owner| owner.state == State::Settled) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::tests::held;

    fn event(charge: &str, created: UnixMs) -> Event {
        Event {
            id: format!("evt_{charge}"),
            kind: "charge.succeeded".to_owned(),
            created,
            idempotency_key: None,
            charge_id: Some(charge.to_owned()),
            charge: None,
        }
    }

    #[test]
    fn the_nearest_on_both_sides_are_kept() {
        let row = held();
        let now = row.send.deadline.plus_ms(25 * 3_600_000);
        let mut neighbours = Neighbours::of(&row, now).unwrap();
        let window = neighbours.window;
        for n in (1..=30).rev() {
            neighbours.take(&event(&format!("after_{n}"), window.to.plus_ms(n * 1000)));
        }
        neighbours.take(&event("within", window.to));
        for n in 1..=30 {
            neighbours.take(&event(
                &format!("before_{n}"),
                window.from.plus_ms(n * -1000),
            ));
        }
        assert_eq!(neighbours.after.len(), NEIGHBOURS_MAX);
        assert_eq!(neighbours.after.back().unwrap(), "after_1");
        assert_eq!(neighbours.before.len(), NEIGHBOURS_MAX);
        assert_eq!(neighbours.before[0], "before_1");
        assert!(Neighbours::of(&row, row.send.deadline).is_none());
    }
}
