//! Single steps that random histories reach too rarely, or cannot: lost rows, false answers, races.

use super::*;

fn store(max: i64) -> MemoryStore {
    MemoryStore::new(START, [vault_key("vk_one", max, OnDuplicate::Replay)])
}

#[track_caller]
pub(super) fn sent(verdict: Verdict) -> Ticket {
    match verdict {
        Verdict::Send(ticket) => ticket,
        other => panic!("not sent: {other:?}"),
    }
}

/// A create of `amount` for `cus_1` that was sent.
pub(super) fn send(store: &mut MemoryStore, amount: i64, key: &str) -> Reservation {
    let ask = create("vk_one", "cus_1", amount, given(key));
    sent(store.reserve(&ask)).reservation().clone()
}

pub(super) fn settled(object_id: &str, amount: i64) -> Outcome {
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

/// Reserved, settled and status of the first key.
#[track_caller]
pub(super) fn books(store: &MemoryStore, expected: (i64, i64, KeyStatus)) {
    let key = &store.keys[&id("vk_one")];
    let cap = &key.caps[0];
    let found = (cap.reserved.get(), cap.settled.get(), key.status);
    assert_eq!(found, expected);
}

const ACTIVE: KeyStatus = KeyStatus::Active;
const STOPPED: KeyStatus = KeyStatus::Stopped;

#[test]
fn of_two_equal_requests_in_one_batch_one_is_sent() {
    let mut store = store(1000);
    let asks = ["a", "b"].map(|key| create("vk_one", "cus_1", 100, given(key)));
    let batch = asks.map(|ask| Work::Reserve(Box::new(ask)));
    let answers = store.run(&batch);
    assert!(
        matches!(
            answers[..],
            [
                Answer::Verdict(Verdict::Send(_)),
                Answer::Verdict(Verdict::Wait(_))
            ]
        ),
        "{answers:?}"
    );
    books(&store, (100, 0, ACTIVE));
    assert!(store.has_flag(FlagKind::DuplicateCustomerPeriod));
}

#[test]
fn the_sweep_holds_from_the_deadline_on() {
    let mut store = store(1000);
    let row = send(&mut store, 100, "a");
    for (ms, state) in [(119_999, State::InFlight), (120_000, State::Held)] {
        store.now = START.plus_ms(ms);
        store.run(&[Work::Sweep]);
        assert_eq!(store.rows[&row.id].state, state);
    }
    books(&store, (100, 0, ACTIVE));
}

#[test]
fn a_declined_key_points_at_its_next_reservation() {
    let mut store = store(1000);
    let first = send(&mut store, 100, "a");
    store.settle(&first, Outcome::StoredRefusal);
    let second = send(&mut store, 100, "a");
    let request = &store.requests[&SCOPE.given("a")];
    assert_eq!(request.reservation, second.id);
    assert_ne!(first.id, second.id);
    store.settle(&second, settled("ch_1", 100));
    let again = store.reserve(&create("vk_one", "cus_1", 100, given("a")));
    assert!(matches!(again, Verdict::Read(existing) if existing.object_id == "ch_1"));
    books(&store, (0, 100, ACTIVE));
}

#[test]
fn a_second_object_is_a_row_of_its_own_over_the_cap_once() {
    let mut store = store(100);
    let row = send(&mut store, 100, "a");
    store.settle(&row, settled("ch_1", 100));
    for _ in 0..2 {
        store.settle(&row, settled("ch_2", 100));
        books(&store, (0, 200, STOPPED));
        assert_eq!(store.rows.len(), 2);
        assert_eq!(
            store.flags.get(&(ReservationId(3), FlagKind::DoubleCharge)),
            Some(&1)
        );
    }
    let refused = store.reserve(&create("vk_one", "cus_2", 1, given("b")));
    assert!(
        matches!(refused, Verdict::Refuse(refused) if refused.refusal == Refusal::VaultKeyStopped)
    );
}

/// Nothing true leads here: a row is released on proof alone.
#[test]
fn money_that_moved_late_stops_the_key_only_where_it_passes_the_cap() {
    for (max, status) in [(200, ACTIVE), (199, STOPPED)] {
        let mut store = store(max);
        let first = send(&mut store, 100, "a");
        store.settle(&first, Outcome::RefusedThisSend);
        let second = send(&mut store, 100, "b");
        store.settle(&second, settled("ch_2", 100));
        store.settle(&first, settled("ch_1", 100));
        books(&store, (0, 200, status));
        assert!(store.has_flag(FlagKind::LateSettlement));
        let late = &store.rows[&first.id];
        assert_eq!(
            (late.slot_claim, late.intent_claim),
            (None, None),
            "the slot is taken"
        );
    }
}

/// An operator gave the first row back in error and puts that right while its key is on its way again:
/// Stripe answers both with one charge, and its place must not look free.
#[test]
fn a_place_that_is_billed_stays_taken_when_its_second_row_made_nothing() {
    for proof in [settled("ch_1", 100), open("ch_1", 100)] {
        let mut store = store(1000);
        let first = send(&mut store, 100, "a");
        let claims = (first.slot_claim, first.intent_claim);
        store.settle(&first, Outcome::NotSent);
        let second = send(&mut store, 100, "a");
        store.settle(&first, proof.clone());
        assert_eq!(store.rows[&first.id].slot_claim, None);
        store.settle(&second, proof);
        assert_eq!(store.rows[&second.id].state, State::Released);
        let billed = &store.rows[&first.id];
        assert_eq!((billed.slot_claim, billed.intent_claim), claims);
        let again = store.reserve(&create("vk_one", "cus_1", 100, given("b")));
        assert!(matches!(again, Verdict::Read(existing) if existing.object_id == "ch_1"));
    }
}

/// The charge of another period under one key leaves this period free.
#[test]
fn a_foreign_charge_takes_no_place_but_its_own() {
    let mut store = MemoryStore::new(
        START,
        [
            vault_key("vk_one", 1000, OnDuplicate::Replay),
            vault_key("vk_two", 1000, OnDuplicate::Replay),
        ],
    );
    let july = Ask {
        billing_period: "2026-07".to_owned(),
        ..create("vk_two", "cus_1", 100, given("a"))
    };
    let billed = sent(store.reserve(&july)).reservation().clone();
    store.settle(&billed, settled("ch_1", 100));
    let claims = store.rows[&billed.id].slot_claim;
    let august = send(&mut store, 100, "b");
    store.settle(&august, settled("ch_1", 100));
    assert_eq!(store.rows[&august.id].state, State::Released);
    assert_eq!(store.rows[&billed.id].slot_claim, claims);
    sent(store.reserve(&create("vk_one", "cus_1", 100, given("c"))));
}

#[test]
fn a_lost_row_is_rebuilt_unless_there_is_nothing_to_remember() {
    let dead = Outcome::Dead {
        object_id: "ch_1".to_owned(),
    };
    for (outcome, rebuilt) in [
        (settled("ch_1", 100), Some((0, 100, State::Settled))),
        (open("ch_1", 100), Some((100, 0, State::Open))),
        (Outcome::Unknown, Some((100, 0, State::Held))),
        (dead, None),
        (Outcome::StoredRefusal, None),
        (Outcome::RefusedThisSend, None),
        (Outcome::NotSent, None),
    ] {
        let row = send(&mut store(1000), 100, "a");
        let mut restored = store(1000);
        for _ in 0..2 {
            restored.settle(&row, outcome.clone());
            let found = restored.rows.get(&row.id).map(|row| {
                (
                    row.amount_reserved.get(),
                    row.amount_settled.get(),
                    row.state,
                )
            });
            assert_eq!(found, rebuilt, "{outcome:?}");
        }
    }
}

#[test]
fn a_lost_open_charge_is_rebuilt_by_its_refused_capture() {
    let mut before = store(1000);
    let row = send(&mut before, 100, "a");
    before.settle(&row, open("ch_1", 100));
    let ticket = sent(before.reserve(&capture("vk_one", "ch_1", 100, given("b"))));
    for outcome in [
        Outcome::RefusedThisSend,
        Outcome::NotSent,
        Outcome::StoredRefusal,
    ] {
        let mut restored = store(1000);
        restored.settle(ticket.reservation(), outcome);
        assert_eq!(restored.rows[&row.id].state, State::Open);
        books(&restored, (100, 0, ACTIVE));
    }
}

#[test]
fn a_rebuilt_row_takes_only_what_is_free_and_stops_the_key_it_overdraws() {
    for (max, status) in [(200, ACTIVE), (199, STOPPED)] {
        for outcome in [settled("ch_1", 100), Outcome::Unknown] {
            let mut row = send(&mut store(1000), 100, "a");
            row.id = ReservationId(99);
            let mut restored = store(max);
            let taken = send(&mut restored, 100, "b");
            restored.settle(&taken, settled("ch_2", 100));
            restored.settle(&row, outcome);
            assert_eq!(restored.keys[&id("vk_one")].status, status);
            let rebuilt = &restored.rows[&row.id];
            assert_eq!((rebuilt.slot_claim, rebuilt.intent_claim), (None, None));
        }
    }
}

/// The client captured a charge whose create nobody heard of: it counts twice until somebody looks, and
/// it holds its slot.
#[test]
fn an_adopted_charge_still_belongs_to_the_create_that_made_it() {
    let mut store = store(1000);
    let made = send(&mut store, 100, "a");
    store.settle(&made, Outcome::Unknown);
    let ticket = sent(store.reserve(&capture("vk_one", "ch_1", 100, given("b"))));
    store.settle(ticket.reservation(), settled("ch_1", 100));
    store.settle(&made, settled("ch_1", 100));
    books(&store, (0, 200, ACTIVE));
    let again = store.reserve(&create("vk_one", "cus_1", 100, given("c")));
    assert!(matches!(again, Verdict::Read(_)), "{again:?}");
}

#[test]
fn the_owner_of_an_object_is_looked_up_with_its_key() {
    let keys = ["vk_one", "vk_two"].map(|name| vault_key(name, 1000, OnDuplicate::Replay));
    let mut store = MemoryStore::new(START, keys);
    let row = send(&mut store, 100, "a");
    store.settle(&row, open("ch_1", 100));
    let mut ask = capture("vk_two", "ch_1", 130, given("b"));
    assert!(matches!(store.reserve(&ask), Verdict::LookAgain));
    let owner = (row.id, id("vk_one"));
    ask.target.as_mut().unwrap().owner = Some(owner);
    let ticket = sent(store.reserve(&ask));
    assert_eq!(ticket.remaining(), minor(870));
    books(&store, (130, 0, ACTIVE));
    store.settle(ticket.reservation(), Outcome::RefusedThisSend);
    books(&store, (100, 0, ACTIVE));
    store.settle(
        &row,
        Outcome::Dead {
            object_id: "ch_1".to_owned(),
        },
    );
    ask.target.as_mut().unwrap().owner = None;
    let adopted = sent(store.reserve(&ask));
    assert_eq!(
        adopted.reservation().vault_key,
        id("vk_two"),
        "a dead owner is no owner"
    );
    books(&store, (0, 0, ACTIVE));
}

#[test]
fn an_observing_key_gets_a_cap_of_nothing_for_a_currency_without_one() {
    let mut key = vault_key("vk_one", 1000, OnDuplicate::Replay);
    key.enforcement = Enforcement::Observe;
    let mut store = MemoryStore::new(START, [key]);
    let mut ask = create("vk_one", "cus_1", 70, given("a"));
    ask.money.currency = Currency::parse("eur").unwrap();
    sent(store.reserve(&ask));
    let key = &store.keys[&id("vk_one")];
    let eur = key.cap(ask.money.currency).unwrap();
    assert_eq!(
        (eur.max_amount, eur.reserved),
        (AmountMinor::ZERO, minor(70))
    );
    assert!(store.has_flag(FlagKind::WouldRefuseCurrency));
}

#[test]
fn an_outcome_never_moves_the_row_that_got_its_id_after_a_restore() {
    for (outcome, moved) in [
        (settled("ch_1", 100), 100),
        (Outcome::NotSent, 0),
        (Outcome::RefusedThisSend, 0),
        (Outcome::StoredRefusal, 0),
    ] {
        let lost = send(&mut store(1000), 100, "a");
        let mut restored = store(1000);
        let ask = create("vk_one", "cus_2", 200, given("b"));
        let other = sent(restored.reserve(&ask)).reservation().clone();
        assert_eq!(other.id, lost.id);
        restored.settle(&lost, outcome);
        assert_eq!(restored.rows[&other.id], other);
        books(&restored, (200, moved, ACTIVE));
    }
}
