//! Every outcome in every state (design §3.2), and the ways in which an answer may come late or twice.

mod objects;
mod refusals;

use super::*;
use crate::domain::digest::Digest16;
use crate::domain::idempotency::Fingerprint;
use crate::domain::money::Currency;
use crate::domain::operation::MoneyOperation;
use crate::domain::reservation::SendState;

const NOW: UnixMs = UnixMs(1_785_600_000_000);
const SENT: UnixMs = UnixMs(NOW.0 - 5000);
const ROW: ReservationId = ReservationId(7);
const OTHER_ROW: ReservationId = ReservationId(8);

const CLAIMS: (Digest16, Digest16) = (Digest16([1; 16]), Digest16([2; 16]));

fn minor(amount: i64) -> AmountMinor {
    AmountMinor::new(amount).unwrap()
}

/// A create of 100 in `state`, sent twice under one key; `object_id` where Stripe is known to have it.
fn row(state: State, object_id: Option<&str>) -> Reservation {
    let reserved = if state.is_reserved() { 100 } else { 0 };
    let settled = if state == State::Settled { 100 } else { 0 };
    let unproven = match state {
        State::InFlight | State::Held => 2,
        _ => 0,
    };
    Reservation {
        id: ROW,
        version: 3,
        vault_key: "vk_one".parse().unwrap(),
        account: String::new(),
        namespace: "default".to_owned(),
        billing_period: "2026-08".to_owned(),
        customer: Some("cus_1".to_owned()),
        reference: String::new(),
        slot_claim: Some(CLAIMS.0),
        intent_claim: Some(CLAIMS.1),
        operation: MoneyOperation::ChargesCreate,
        currency: Currency::parse("usd").unwrap(),
        amount: minor(100),
        amount_reserved: minor(reserved),
        amount_settled: minor(settled),
        state,
        object_id: object_id.map(str::to_owned),
        send: SendState {
            operation: MoneyOperation::ChargesCreate,
            upstream_key: "client-key-1".to_owned(),
            fingerprint: Fingerprint(CLAIMS.0),
            sends: 2,
            unproven,
            first_unproven_at: (unproven > 0).then_some(SENT),
            forward_by: NOW,
            deadline: NOW,
        },
        attempt: 0,
        outcome_stored: false,
        server_error: false,
        amount_refunded: AmountMinor::ZERO,
        created_at: SENT,
        resolved_at: None,
    }
}

/// A create in `state` as its only send left it.
fn sent_once(state: State) -> Reservation {
    let mut row = row(state, None);
    row.send.sends = 1;
    row.send.unproven = row.send.unproven.min(1);
    row
}

/// An open charge of 100 with a capture of 130 sent on it `unproven` times.
fn capturing(state: State, unproven: u32) -> Reservation {
    let mut row = row(state, Some("ch_1"));
    row.amount_reserved = minor(130);
    row.send.operation = MoneyOperation::ChargesCapture;
    row.send.upstream_key = "capture-key".to_owned();
    row.send.sends = unproven + 1;
    row.send.unproven = unproven;
    row
}

fn settled(object_id: &str, amount: i64) -> Outcome {
    Outcome::Settled {
        object_id: object_id.to_owned(),
        amount: minor(amount),
    }
}

fn open(object_id: &str, ceiling: i64) -> Outcome {
    Outcome::Open {
        object_id: object_id.to_owned(),
        ceiling: minor(ceiling),
    }
}

fn dead(object_id: &str) -> Outcome {
    Outcome::Dead {
        object_id: object_id.to_owned(),
    }
}

const FACTS: Facts = Facts {
    now: NOW,
    object_owner: None,
    slot_taken: false,
    intent_taken: false,
};

const FOREIGN: Facts = Facts {
    object_owner: Some(OTHER_ROW),
    ..FACTS
};

fn by(reservation: Reservation, outcome: &Outcome) -> Report {
    Report {
        reservation,
        outcome: outcome.clone(),
    }
}

/// The report of the row's current send.
fn current(row: &Reservation, outcome: &Outcome) -> Report {
    by(row.clone(), outcome)
}

/// The report of the send before, under the same key.
fn older(row: &Reservation, outcome: &Outcome) -> Report {
    let mut sent = row.clone();
    sent.send.sends -= 1;
    by(sent, outcome)
}

/// State, reserved and settled after `report`; a second recording of it must change nothing more.
#[track_caller]
fn check(
    name: &str,
    row: &Reservation,
    report: &Report,
    facts: &Facts,
    (state, reserved, total): (State, i64, i64),
    flags: &[FlagKind],
) -> Settlement {
    let settlement = settle(row, report, facts);
    let after = &settlement.row;
    let amounts = (after.amount_reserved.get(), after.amount_settled.get());
    assert_eq!((after.state, amounts), (state, (reserved, total)), "{name}");
    assert_eq!(settlement.flags, flags, "{name}");
    let known_now = Facts {
        object_owner: facts
            .object_owner
            .or_else(|| after.object_id.as_ref().map(|_| ROW)),
        ..*facts
    };
    if settlement.double_charge.is_none() {
        let twice = settle(after, report, &known_now);
        assert_eq!(&twice.row, after, "{name}: recorded twice");
        assert_eq!((twice.flags, twice.double_charge), (vec![], None), "{name}");
    }
    settlement
}

#[track_caller]
fn unchanged(name: &str, row: &Reservation, report: &Report) {
    let settlement = settle(row, report, &FACTS);
    assert_eq!(&settlement.row, row, "{name}");
    let quiet = settlement.flags.is_empty() && !settlement.stop_key;
    assert!(quiet && settlement.double_charge.is_none(), "{name}");
}

const RESOLVED: [State; 3] = [State::Settled, State::Released, State::WrittenOff];

fn object_of(state: State) -> Option<&'static str> {
    matches!(state, State::Settled | State::Open).then_some("ch_1")
}
