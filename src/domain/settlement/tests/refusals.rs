//! What proves that nothing moved, and what does not.

use super::*;

#[test]
fn an_unknown_outcome_holds_what_this_send_left_in_flight() {
    let unknown = Outcome::Unknown;
    let in_flight = row(State::InFlight, None);
    let held = (State::Held, 100, 0);
    check(
        "in flight",
        &in_flight,
        &current(&in_flight, &unknown),
        &FACTS,
        held,
        &[],
    );
    unchanged("an older send's", &in_flight, &older(&in_flight, &unknown));
    for state in State::ALL
        .into_iter()
        .filter(|state| *state != State::InFlight)
    {
        let row = row(state, object_of(state));
        unchanged(state.as_str(), &row, &current(&row, &unknown));
    }
}

#[test]
fn a_server_error_is_kept_in_mind_until_something_is_proven() {
    let error = Outcome::ServerError;
    let in_flight = row(State::InFlight, None);
    let report = current(&in_flight, &error);
    let held = (State::Held, 100, 0);
    let after = check("in flight", &in_flight, &report, &FACTS, held, &[]).row;
    assert!(after.server_error);
    let report = older(&in_flight, &error);
    let late = settle(&in_flight, &report, &FACTS).row;
    assert!(
        late.server_error && late.state == State::InFlight,
        "an older send's"
    );
    let report = current(&after, &Outcome::StoredRefusal);
    assert!(!settle(&after, &report, &FACTS).row.server_error);
    for state in [
        State::Open,
        State::Settled,
        State::Released,
        State::WrittenOff,
    ] {
        let row = row(state, object_of(state));
        unchanged(state.as_str(), &row, &current(&row, &error));
    }
}

#[test]
fn a_send_that_did_nothing_gives_back_only_where_it_was_the_only_one() {
    for outcome in [Outcome::NotSent, Outcome::RefusedThisSend] {
        for state in [State::InFlight, State::Held] {
            let only = sent_once(state);
            let released = (State::Released, 0, 0);
            let report = current(&only, &outcome);
            let row_after = check("the only send", &only, &report, &FACTS, released, &[]).row;
            assert!(!row_after.outcome_stored && row_after.resolved_at == Some(NOW));
            let twice = row(state, None);
            let held = (State::Held, 100, 0);
            check(
                "the second send",
                &twice,
                &current(&twice, &outcome),
                &FACTS,
                held,
                &[],
            );
            unchanged("the first of two", &twice, &older(&twice, &outcome));
        }
        for state in RESOLVED.into_iter().chain([State::Open]) {
            let row = row(state, object_of(state));
            unchanged(state.as_str(), &row, &current(&row, &outcome));
        }
    }
}

/// Every send after an unknown one may be refused: none of them says what became of the first.
#[test]
fn no_number_of_refusals_gives_back_an_unknown_send() {
    let mut row = sent_once(State::Held);
    for sends in 2..6 {
        row.state = State::InFlight;
        row.send.sends = sends;
        row.send.unproven += 1;
        let report = current(&row, &Outcome::RefusedThisSend);
        for _ in 0..3 {
            row = settle(&row, &report, &FACTS).row;
            assert_eq!(row.state, State::Held);
        }
    }
    assert_eq!(row.send.first_unproven_at, Some(SENT));
}

#[test]
fn a_stored_refusal_speaks_for_every_send_under_its_key() {
    let stored = Outcome::StoredRefusal;
    let released = (State::Released, 0, 0);
    for state in [State::InFlight, State::Held] {
        let row = row(state, None);
        for report in [current(&row, &stored), older(&row, &stored)] {
            let after = check(state.as_str(), &row, &report, &FACTS, released, &[]).row;
            assert!(after.outcome_stored && after.send.first_unproven_at.is_none());
        }
        let mut other_key = current(&row, &stored);
        other_key.reservation.send.upstream_key = "other".to_owned();
        unchanged("another key", &row, &other_key);
    }
    for state in RESOLVED.into_iter().chain([State::Open]) {
        let row = row(state, object_of(state));
        unchanged(state.as_str(), &row, &current(&row, &stored));
    }
}

#[test]
fn a_refused_operation_leaves_its_object_open() {
    let open = (State::Open, 100, 0);
    for state in [State::InFlight, State::Held] {
        for outcome in [
            Outcome::NotSent,
            Outcome::RefusedThisSend,
            Outcome::StoredRefusal,
        ] {
            let row = capturing(state, 1);
            check(
                "the only send",
                &row,
                &current(&row, &outcome),
                &FACTS,
                open,
                &[],
            );
        }
        let row = capturing(state, 2);
        let held = (State::Held, 130, 0);
        let refused = current(&row, &Outcome::RefusedThisSend);
        check("the second send", &row, &refused, &FACTS, held, &[]);
    }
    let mut adopted = capturing(State::InFlight, 1);
    adopted.operation = MoneyOperation::ChargesCapture;
    let released = (State::Released, 0, 0);
    let refused = current(&adopted, &Outcome::RefusedThisSend);
    check(
        "of nobody's object",
        &adopted,
        &refused,
        &FACTS,
        released,
        &[],
    );
}

#[test]
fn what_an_operator_gives_back_keeps_its_stored_answer() {
    for stored in [true, false] {
        let mut open = row(State::Open, Some("ch_1"));
        open.outcome_stored = stored;
        let after = release(&open, NOW);
        assert_eq!(
            (after.state, after.outcome_stored),
            (State::Released, stored)
        );
        assert_eq!(
            (after.amount_reserved, after.resolved_at),
            (AmountMinor::ZERO, Some(NOW))
        );
    }
}
