//! Rows whose object is known: the object says where it stands.

use super::{Interrupted, Reconciler, is_news, unless_busy};
use crate::domain::reservation::Reservation;

impl Reconciler {
    /// Reads the row's object and records what it proves.
    pub(super) async fn look_at_object(&mut self, row: &Reservation) -> Result<(), Interrupted> {
        let Some(object_id) = &row.object_id else {
            return Ok(());
        };
        let found = self.stripe.charge(&row.account, object_id).await;
        // Also where that failed: one object that always fails must not stand before the others.
        self.agenda.looked(row, self.clock.now());
        match found {
            Ok(facts) if facts.currency == row.currency => {
                let outcome = facts.outcome();
                if is_news(row, &outcome) {
                    self.report(row, outcome).await?;
                }
            }
            Ok(_) => {
                let id = row.id;
                tracing::warn!(reservation.id = %id, "The reservation's object is in another currency");
            }
            Err(error) => unless_busy(error)?,
        }
        Ok(())
    }
}
