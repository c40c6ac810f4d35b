//! Giving a reservation up: it frees headroom and nothing else (design §3.4).

use super::super::evidence::is_sought;
use super::super::money::AmountMinor;
use super::super::reservation::{Reservation, State};
use super::super::time::UnixMs;

/// How long after its last send nothing more is to be expected of a reservation: Stripe forgets the key
/// from then on (contract §2.1).
const WRITE_OFF_AFTER_MS: i64 = 24 * 3_600_000;

/// The row given up; `None` where something may still be found out about it, or a 5xx may still be
/// rolled forward. That the feed does not show it is for the caller to see to.
///
/// Its slot stays taken and it answers nobody: that its money moved may still turn out.
pub fn write_off(row: &Reservation, now: UnixMs) -> Option<Reservation> {
    let old_enough = row.send.deadline.plus_ms(WRITE_OFF_AFTER_MS) <= now;
    (is_sought(row) && old_enough && !row.server_error).then(|| Reservation {
        state: State::WrittenOff,
        amount_reserved: AmountMinor::ZERO,
        resolved_at: Some(now),
        ..row.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::evidence::tests::held;

    #[test]
    fn every_precondition_counts() {
        let row = held();
        let then = row.send.deadline.plus_ms(24 * 3_600_000);
        let given_up = write_off(&row, then).unwrap();
        assert_eq!(given_up.state, State::WrittenOff);
        assert_eq!(given_up.amount_reserved, AmountMinor::ZERO);
        assert!(given_up.holds_claims(), "the slot stays");
        assert_eq!(given_up.send, row.send);

        assert_eq!(write_off(&row, then.plus_ms(-1)), None, "too young");
        for other in [
            Reservation {
                server_error: true,
                ..held()
            },
            Reservation {
                object_id: Some("ch_1".to_owned()),
                ..held()
            },
            Reservation {
                state: State::InFlight,
                ..held()
            },
            Reservation {
                state: State::Open,
                ..held()
            },
        ] {
            assert_eq!(write_off(&other, then), None, "{other:?}");
        }
    }
}
