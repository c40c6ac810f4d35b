//! When a row is looked at again: soon after its send, then ever more rarely.

use std::collections::HashMap;
use std::time::Duration;

use crate::domain::id::ReservationId;
use crate::domain::reservation::Reservation;
use crate::domain::time::UnixMs;

/// The longest a row waits for its next look: an authorisation lasts for days.
const NEXT_LOOK_MAX_MS: i64 = 6 * 3_600_000;

#[derive(Debug)]
pub(super) struct Agenda {
    interval_ms: i64,
    looks: HashMap<ReservationId, Look>,
}

#[derive(Debug)]
struct Look {
    /// Another send makes the row new.
    sends: u32,
    next: UnixMs,
    /// Met in this round through the unresolved rows; what is not met any more is forgotten.
    met: bool,
}

impl Agenda {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval_ms: i64::try_from(interval.as_millis()).unwrap_or(NEXT_LOOK_MAX_MS),
            looks: HashMap::new(),
        }
    }

    /// True where it is time to look at the row.
    pub(super) fn is_due(&mut self, row: &Reservation, now: UnixMs) -> bool {
        match self.looks.get_mut(&row.id) {
            Some(look) => {
                look.met = true;
                look.sends != row.send.sends || look.next <= now
            }
            None => true,
        }
    }

    /// The row was looked at and stays as it is. The next look comes when it is twice as old, so that
    /// reads do not add up: some twenty for an authorisation that lasts a week.
    pub(super) fn looked(&mut self, row: &Reservation, now: UnixMs) {
        let sent = row.send.first_unproven_at.unwrap_or(row.created_at);
        let age_ms = now.ms_since(sent);
        let longest = NEXT_LOOK_MAX_MS.max(self.interval_ms);
        let pause_ms = age_ms.clamp(self.interval_ms, longest);
        let look = Look {
            sends: row.send.sends,
            next: now.plus_ms(pause_ms),
            met: true,
        };
        self.looks.insert(row.id, look);
    }

    /// Something happened to the row's object: look at it in this round.
    pub(super) fn hurry(&mut self, row: &Reservation) {
        self.looks.remove(&row.id);
    }

    /// Every unresolved row was met once: forgets the others.
    pub(super) fn end_round(&mut self) {
        self.looks.retain(|_, look| std::mem::take(&mut look.met));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::tests::held;

    #[test]
    fn a_row_is_looked_at_ever_more_rarely_and_at_once_after_another_send() {
        let mut agenda = Agenda::new(Duration::from_secs(10));
        let row = held();
        let sent = row.created_at;
        assert!(agenda.is_due(&row, sent));
        let mut looks = Vec::new();
        for second in 0..(3 * 86_400) {
            let now = sent.plus_ms(second * 1000);
            if agenda.is_due(&row, now) {
                agenda.looked(&row, now);
                looks.push(second);
            }
        }
        assert_eq!(looks[..6], [0, 10, 20, 40, 80, 160]);
        assert!(looks.len() < 30, "{looks:?}");
        let last = looks.windows(2).last().map(|pair| pair[1] - pair[0]);
        assert_eq!(last, Some(6 * 3600));

        let mut sent_again = row.clone();
        sent_again.send.sends = 2;
        assert!(agenda.is_due(&sent_again, sent));
    }

    #[test]
    fn what_is_resolved_is_forgotten() {
        let mut agenda = Agenda::new(Duration::from_secs(10));
        let row = held();
        agenda.looked(&row, row.created_at);
        agenda.end_round();
        assert!(!agenda.is_due(&row, row.created_at), "met in this round");
        agenda.end_round();
        agenda.end_round();
        assert!(agenda.looks.is_empty());
    }
}
