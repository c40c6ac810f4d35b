//! An object exists: what moved, what may still move, and whose it is.

use super::*;

#[test]
fn money_that_moved_is_recorded_in_every_state() {
    let moved = settled("ch_1", 100);
    let late = &[FlagKind::LateSettlement][..];
    for (state, flags) in [
        (State::InFlight, &[][..]),
        (State::Open, &[]),
        (State::Held, &[]),
        (State::Settled, &[]),
        (State::Released, late),
        (State::WrittenOff, late),
    ] {
        let row = row(state, object_of(state));
        for report in [current(&row, &moved), older(&row, &moved)] {
            let total = (State::Settled, 0, 100);
            let settlement = check(state.as_str(), &row, &report, &FACTS, total, flags);
            assert!(
                !settlement.stop_key,
                "the book stops it where the cap is passed"
            );
            assert_eq!(settlement.row.object_id.as_deref(), Some("ch_1"));
        }
    }
    let less = (State::Settled, 0, 60);
    let row = row(State::Open, Some("ch_1"));
    check(
        "less frees the rest",
        &row,
        &current(&row, &settled("ch_1", 60)),
        &FACTS,
        less,
        &[],
    );
}

#[test]
fn an_object_that_is_open_stays_reserved() {
    let exists = open("ch_1", 100);
    let late = &[FlagKind::LateSettlement][..];
    for (state, flags) in [
        (State::InFlight, &[][..]),
        (State::Open, &[]),
        (State::Held, &[]),
        (State::Released, late),
        (State::WrittenOff, late),
    ] {
        let row = row(state, object_of(state));
        for report in [current(&row, &exists), older(&row, &exists)] {
            check(
                state.as_str(),
                &row,
                &report,
                &FACTS,
                (State::Open, 100, 0),
                flags,
            );
        }
    }
    let row = row(State::Settled, Some("ch_1"));
    unchanged("old news of a settled one", &row, &current(&row, &exists));
}

/// The create's answer says nothing about a capture that was sent after it.
#[test]
fn an_older_answer_does_not_end_a_later_operation() {
    let exists = open("ch_1", 100);
    for state in [State::InFlight, State::Held] {
        let row = capturing(state, 1);
        let mut report = older(&row, &exists);
        report.reservation.send.upstream_key = "client-key-1".to_owned();
        unchanged(state.as_str(), &row, &report);
        let still_open = (State::Open, 130, 0);
        let report = current(&row, &exists);
        check(
            "what it may yet take stays reserved",
            &row,
            &report,
            &FACTS,
            still_open,
            &[],
        );
        let moved = older(&row, &settled("ch_1", 130));
        check(
            "but money is money",
            &row,
            &moved,
            &FACTS,
            (State::Settled, 0, 130),
            &[],
        );
    }
}

/// A capture of a charge that no reservation had made answers for what it captures, not for the charge.
#[test]
fn an_adopted_object_counts_for_what_was_asked_of_it() {
    for state in [State::InFlight, State::Held] {
        let mut adopted = capturing(state, 1);
        adopted.operation = MoneyOperation::ChargesCapture;
        (adopted.amount, adopted.amount_reserved) = (minor(50), minor(50));
        let still_open = (State::Open, 50, 0);
        let report = current(&adopted, &open("ch_1", 100));
        check(state.as_str(), &adopted, &report, &FACTS, still_open, &[]);
        let report = current(&adopted, &settled("ch_1", 50));
        check(
            state.as_str(),
            &adopted,
            &report,
            &FACTS,
            (State::Settled, 0, 50),
            &[],
        );
    }
}

/// The first capture may still arrive: a refusal of the next one must not give its reservation back.
#[test]
fn an_open_object_proves_nothing_of_the_captures_sent_on_it() {
    let held = capturing(State::Held, 1);
    let open_again = settle(&held, &current(&held, &open("ch_1", 100)), &FACTS).row;
    assert_eq!(
        (open_again.state, open_again.send.unproven),
        (State::Open, 1)
    );
    let next = Reservation {
        state: State::InFlight,
        send: SendState {
            upstream_key: "second-capture".to_owned(),
            sends: 3,
            unproven: 2,
            ..open_again.send.clone()
        },
        ..open_again
    };
    for outcome in [
        Outcome::RefusedThisSend,
        Outcome::StoredRefusal,
        Outcome::NotSent,
    ] {
        let report = current(&next, &outcome);
        check(
            "the second one",
            &next,
            &report,
            &FACTS,
            (State::Held, 130, 0),
            &[],
        );
    }
}

#[test]
fn more_than_was_reserved_is_recorded_and_stops_the_key() {
    let above = &[FlagKind::SettledAboveReserved];
    for (name, row, outcome, expected) in [
        (
            "in flight",
            row(State::InFlight, None),
            settled("ch_1", 101),
            (State::Settled, 0, 101),
        ),
        (
            "held",
            row(State::Held, None),
            settled("ch_1", 101),
            (State::Settled, 0, 101),
        ),
        (
            "open",
            row(State::Open, Some("ch_1")),
            settled("ch_1", 101),
            (State::Settled, 0, 101),
        ),
        (
            "settled",
            row(State::Settled, Some("ch_1")),
            settled("ch_1", 101),
            (State::Settled, 0, 101),
        ),
        (
            "a larger ceiling",
            row(State::InFlight, None),
            open("ch_1", 101),
            (State::Open, 101, 0),
        ),
    ] {
        let settlement = check(
            name,
            &row,
            &current(&row, &outcome),
            &FACTS,
            expected,
            above,
        );
        assert!(settlement.stop_key, "{name}");
    }
}

#[test]
fn a_dead_object_gives_back_what_was_reserved_for_it() {
    let released = (State::Released, 0, 0);
    for state in [State::InFlight, State::Open, State::Held] {
        let row = row(state, object_of(state));
        for report in [current(&row, &dead("ch_1")), older(&row, &dead("ch_1"))] {
            let after = check(state.as_str(), &row, &report, &FACTS, released, &[]).row;
            assert!(after.outcome_stored);
            assert_eq!(after.object_id.as_deref(), Some("ch_1"));
        }
    }
    let open = row(State::Open, Some("ch_1"));
    unchanged("another object", &open, &current(&open, &dead("ch_2")));
    for state in RESOLVED {
        let row = row(state, object_of(state));
        unchanged(state.as_str(), &row, &current(&row, &dead("ch_1")));
    }
}

/// The key was used in another period: Stripe gives the object that is counted there.
#[test]
fn an_object_that_another_row_owns_is_counted_once() {
    let foreign = &[FlagKind::ForeignReplay][..];
    let released = (State::Released, 0, 0);
    let outcome = settled("ch_2", 100);
    for row in [
        sent_once(State::InFlight),
        row(State::InFlight, None),
        row(State::Held, None),
    ] {
        let report = current(&row, &outcome);
        let settlement = check("unresolved", &row, &report, &FOREIGN, released, foreign);
        assert!(settlement.row.object_id.is_none() && settlement.row.outcome_stored);
    }
    for state in [State::Released, State::WrittenOff] {
        let row = row(state, None);
        let after = settle(&row, &current(&row, &outcome), &FOREIGN);
        assert_eq!((after.row, after.flags), (row, vec![]));
    }
    let row = sent_once(State::InFlight);
    let found_open = open("ch_2", 100);
    let still_open = (State::Open, 100, 0);
    check(
        "nobody owns it",
        &row,
        &current(&row, &found_open),
        &FACTS,
        still_open,
        &[],
    );
}

#[test]
fn another_object_than_the_rows_own_is_a_double_charge() {
    for (state, after) in [
        (State::InFlight, (State::Held, 100, 0)),
        (State::Open, (State::Open, 100, 0)),
        (State::Held, (State::Held, 100, 0)),
        (State::Settled, (State::Settled, 0, 100)),
    ] {
        let row = row(state, Some("ch_1"));
        let report = current(&row, &settled("ch_2", 70));
        let settlement = check(state.as_str(), &row, &report, &FACTS, after, &[]);
        let double = settlement.double_charge.unwrap();
        assert_eq!(
            (double.object_id.as_str(), double.settled.get()),
            ("ch_2", 70)
        );
        assert!(settlement.stop_key);
        let report = current(&row, &open("ch_2", 70));
        let double = settle(&row, &report, &FACTS).double_charge.unwrap();
        assert_eq!((double.settled.get(), double.reserved.get()), (0, 70));
        let known = settle(&row, &report, &FOREIGN);
        assert!(
            known.double_charge.is_none() && !known.stop_key,
            "recorded before"
        );
    }
}

#[test]
fn a_row_that_comes_back_takes_only_claims_that_are_free() {
    let row = row(State::Released, None);
    for (slot_taken, intent_taken) in [(false, false), (true, false), (false, true), (true, true)] {
        let facts = Facts {
            slot_taken,
            intent_taken,
            ..FACTS
        };
        let after = settle(&row, &current(&row, &settled("ch_1", 100)), &facts).row;
        assert_eq!(after.slot_claim, Some(CLAIMS.0).filter(|_| !slot_taken));
        assert_eq!(after.intent_claim, Some(CLAIMS.1).filter(|_| !intent_taken));
    }
}
