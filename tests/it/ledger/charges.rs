//! Reserve, settle, release, hold, re-send, sweep.

use std::time::Duration;

use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::State;
use spendcap::ledger::command::Verdict;

use super::on_both;
use super::place::{DEADLINE_MS, Place};
use super::scene::{ask, check_sums, issue, paid, reserve, sent, settle, used, vault_key};

on_both!(
    a_charge_is_reserved_then_settled,
    what_is_unknown_is_held_and_sent_again
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
    assert!(matches!(over, Verdict::Refuse(_)), "{over:?}");

    let stored = ledger
        .reads()
        .reservation(first.reservation().id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.object_id.as_deref(), Some("ch_1"));
    assert_eq!(stored.version, 2);
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

    place
        .clock
        .advance(Duration::from_millis(DEADLINE_MS.unsigned_abs()));
    ledger.sweep().await.unwrap();
    let row = ledger
        .reads()
        .reservation(ticket.reservation().id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.state, State::Held);
    let third = sent(ledger.reserve(ask(&key, "cus_1", 600, "a")).await.unwrap());
    let settled = settle(ledger, &third, paid("ch_1", 600)).await;
    assert_eq!(settled.state, State::Settled);
    check_sums(ledger).await;
    opened.close().await;
}
