//! What becomes of one charge: settled, released, held, sent again, late, double, lost.

use std::time::Duration;

use spendcap::domain::flag::FlagKind;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::{Reservation, State};
use spendcap::domain::settlement::Report;
use spendcap::domain::vault_key::KeyStatus;
use spendcap::ledger::command::Verdict;
use spendcap::ledger::{FlagFilter, Ledger, Page};

use super::on_both;
use super::place::{DEADLINE_MS, Place};
use super::scene::{ask, check_sums, issue, paid, refused, reserve, settle, used, vault_key};

on_both!(
    a_charge_is_reserved_then_settled,
    what_is_unknown_is_held_and_sent_again,
    a_decline_frees_the_slot,
    money_that_moved_late_is_recorded,
    a_place_that_is_billed_stays_taken,
    a_second_object_is_a_row_of_its_own,
    a_lost_row_is_rebuilt,
    more_than_reserved_stops_the_key,
    a_capture_uses_the_reservation_of_its_charge,
);

async fn a_charge_is_reserved_then_settled(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;

    let first = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    assert_eq!(first.remaining().get(), 400);
    assert_eq!(used(ledger, &key).await, (600, 0));
    let settled = settle(ledger, &first, paid("ch_1", 600)).await;
    assert_eq!(
        (settled.state, settled.remaining.get()),
        (State::Settled, 400)
    );
    assert_eq!(used(ledger, &key).await, (0, 600));

    let second = reserve(ledger, ask(&key, "cus_2", 300, "b")).await;
    let released = settle(ledger, &second, Outcome::NotSent).await;
    assert_eq!(
        (released.state, released.remaining.get()),
        (State::Released, 400)
    );
    let over = ledger.reserve(ask(&key, "cus_3", 401, "c")).await.unwrap();
    assert_eq!(refused(over), "SpendCapReached");

    let stored = row(ledger, first.reservation()).await;
    let expected = Reservation {
        version: 2,
        state: State::Settled,
        object_id: Some("ch_1".to_owned()),
        amount_reserved: stored.amount_reserved,
        amount_settled: stored.amount,
        outcome_stored: true,
        resolved_at: stored.resolved_at,
        send: stored.send.clone(),
        ..first.reservation().clone()
    };
    assert_eq!(stored, expected);
    assert!(stored.amount_reserved.is_zero() && stored.resolved_at.is_some());
    check_sums(ledger).await;
    opened.close().await;
}

async fn what_is_unknown_is_held_and_sent_again(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;

    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let held = settle(ledger, &ticket, Outcome::Unknown).await;
    assert_eq!(held.state, State::Held);
    let again = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    assert_eq!(again.reservation().id, ticket.reservation().id);
    assert_eq!(again.reservation().send.sends, 2);
    assert_eq!(used(ledger, &key).await, (600, 0));

    // Nothing that the second send says of itself speaks of the first.
    let refused = settle(ledger, &again, Outcome::RefusedThisSend).await;
    assert_eq!(refused.state, State::Held);

    let third = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    place
        .clock
        .advance(Duration::from_millis(DEADLINE_MS.unsigned_abs()));
    ledger.sweep().await.unwrap();
    assert_eq!(row(ledger, third.reservation()).await.state, State::Held);
    // The proof comes after the deadline all the same.
    let settled = settle(ledger, &third, paid("ch_1", 600)).await;
    assert_eq!(settled.state, State::Settled);
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_decline_frees_the_slot(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let declined = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &declined, Outcome::StoredRefusal).await;
    let next = reserve(ledger, ask(&key, "cus_1", 600, "b")).await;
    assert_ne!(next.reservation().id, declined.reservation().id);
    assert!(next.flags().is_empty(), "a declined charge is no duplicate");
    assert_eq!(used(ledger, &key).await, (600, 0));
    check_sums(ledger).await;
    opened.close().await;
}

async fn money_that_moved_late_is_recorded(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &ticket, Outcome::NotSent).await;
    // The slot and the headroom have gone to somebody else.
    let other = reserve(ledger, ask(&key, "cus_1", 600, "b")).await;
    let late = settle(ledger, &ticket, paid("ch_late", 600)).await;
    assert_eq!(late.state, State::Settled);
    assert_eq!(late.flags, [FlagKind::LateSettlement]);
    assert_eq!(
        used(ledger, &key).await,
        (600, 600),
        "over the cap, and recorded"
    );
    let stored = row(ledger, ticket.reservation()).await;
    assert_eq!((stored.slot_claim, stored.intent_claim), (None, None));
    let stopped = ledger.reserve(ask(&key, "cus_2", 1, "c")).await.unwrap();
    assert_eq!(refused(stopped), "VaultKeyStopped");
    settle(ledger, &other, paid("ch_2", 600)).await;
    check_sums(ledger).await;
    opened.close().await;
}

/// Two rows of one statement exchange their claims: the one that gives them up comes first.
async fn a_place_that_is_billed_stays_taken(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let first = reserve(ledger, ask(&key, "cus_1", 300, "a")).await;
    settle(ledger, &first, Outcome::NotSent).await;
    let second = reserve(ledger, ask(&key, "cus_1", 300, "a")).await;
    settle(ledger, &first, paid("ch_1", 300)).await;
    let replayed = settle(ledger, &second, paid("ch_1", 300)).await;
    assert_eq!(replayed.state, State::Released);
    assert_eq!(replayed.flags, [FlagKind::ForeignReplay]);
    let billed = row(ledger, first.reservation()).await;
    let claims = (billed.slot_claim, billed.intent_claim);
    let reserved = first.reservation();
    assert_eq!(claims, (reserved.slot_claim, reserved.intent_claim));
    assert_eq!(used(ledger, &key).await, (0, 300));
    let again = ledger.reserve(ask(&key, "cus_1", 300, "b")).await.unwrap();
    assert!(matches!(again, Verdict::Read(existing) if existing.object_id == "ch_1"));
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_second_object_is_a_row_of_its_own(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &ticket, paid("ch_1", 600)).await;
    settle(ledger, &ticket, paid("ch_2", 600)).await;
    settle(ledger, &ticket, paid("ch_2", 600)).await;
    assert_eq!(
        used(ledger, &key).await,
        (0, 1200),
        "recorded once, over the cap"
    );
    let second = ledger
        .reads()
        .object_owner("", "ch_2")
        .await
        .unwrap()
        .unwrap();
    assert_ne!(second.id, ticket.reservation().id);
    let reads = ledger.reads();
    let flags = reads.flags(&FlagFilter::default(), &Page::default()).await;
    let flags = flags.unwrap().data;
    let double: Vec<_> = flags
        .iter()
        .filter(|it| it.kind == FlagKind::DoubleCharge)
        .collect();
    assert_eq!(double.len(), 1);
    assert_eq!(double[0].reservation, Some(second.id));
    let stored = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
    assert_eq!(stored.status, KeyStatus::Stopped);
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_lost_row_is_rebuilt(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    // The database was set back to a state before the reserve.
    place
        .sql(&[
            "DELETE FROM requests",
            "DELETE FROM reservations",
            "UPDATE caps SET reserved = 0",
        ])
        .await;
    let settled = settle(ledger, &ticket, paid("ch_1", 600)).await;
    assert_eq!(settled.state, State::Settled);
    assert_eq!(used(ledger, &key).await, (0, 600));
    let again = ledger.reserve(ask(&key, "cus_1", 600, "b")).await.unwrap();
    assert!(
        matches!(again, Verdict::Read(_)),
        "the slot is taken again: {again:?}"
    );
    check_sums(ledger).await;
    opened.close().await;
}

async fn more_than_reserved_stops_the_key(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let settled = settle(ledger, &ticket, paid("ch_1", 601)).await;
    assert_eq!(settled.flags, [FlagKind::SettledAboveReserved]);
    let stopped = ledger.reserve(ask(&key, "cus_2", 1, "b")).await.unwrap();
    assert_eq!(refused(stopped), "VaultKeyStopped");
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_capture_uses_the_reservation_of_its_charge(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let create = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let open = Outcome::Open {
        object_id: "ch_1".to_owned(),
        ceiling: create.reservation().amount,
    };
    assert_eq!(settle(ledger, &create, open).await.state, State::Open);

    // Whoever looked before the charge was known looks again.
    let unseen = super::scene::capture(&key, "ch_1", None, 500, "b");
    let capture = super::scene::capture(&key, "ch_1", Some(create.reservation()), 500, "b");
    let other = vault_key(&[("usd", 1000)]);
    issue(ledger, &other).await;
    let stranger = spendcap::domain::decision::Ask {
        vault_key: other.id.clone(),
        ..unseen
    };
    let verdict = ledger.reserve(stranger).await.unwrap();
    assert!(matches!(verdict, Verdict::LookAgain), "{verdict:?}");

    let ticket = reserve(ledger, capture).await;
    assert_eq!(ticket.reservation().id, create.reservation().id);
    assert_eq!(
        used(ledger, &key).await,
        (600, 0),
        "nothing more is reserved"
    );
    let settled = settle(ledger, &ticket, paid("ch_1", 500)).await;
    assert_eq!(
        (settled.state, settled.remaining.get()),
        (State::Settled, 500)
    );
    check_sums(ledger).await;
    opened.close().await;
}

async fn row(ledger: &Ledger, reservation: &Reservation) -> Reservation {
    ledger
        .reads()
        .reservation(reservation.id)
        .await
        .unwrap()
        .unwrap()
}

/// The ledger takes a report of a reservation it never gave out only if it proves something.
#[tokio::test]
async fn a_report_that_proves_nothing_leaves_nothing() {
    let place = Place::sqlite();
    let opened = place.open().await;
    let key = vault_key(&[("usd", 1000)]);
    issue(&opened.ledger, &key).await;
    let ticket = reserve(&opened.ledger, ask(&key, "cus_1", 600, "a")).await;
    place
        .sql(&[
            "DELETE FROM requests",
            "DELETE FROM reservations",
            "UPDATE caps SET reserved = 0",
        ])
        .await;
    let report = Report {
        reservation: ticket.reservation().clone(),
        outcome: Outcome::NotSent,
    };
    let settled = opened.ledger.settle(report).await.stored().await.unwrap();
    assert_eq!(settled.state, State::Released);
    assert_eq!(used(&opened.ledger, &key).await, (0, 0));
    opened.close().await;
}
