//! Lists, pages and sums.

use spendcap::domain::id::VaultKeyId;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::State;
use spendcap::domain::vault_key::VaultKey;
use spendcap::ledger::{Ledger, Page, ReservationFilter, VaultKeyFilter};

use super::on_both;
use super::place::Place;
use super::scene::{amount, ask, issue, paid, reserve, settle, vault_key};

on_both!(
    vault_keys_are_listed_newest_first,
    vault_keys_are_found_by_what_they_are,
    reservations_are_found_by_what_they_are,
    a_period_is_summed_up,
);

async fn vault_keys_are_listed_newest_first(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let keys = issue_seven(ledger).await;
    let (mut seen, mut page) = (
        Vec::new(),
        Page {
            limit: 3,
            starting_after: None,
        },
    );
    loop {
        let listed = ledger
            .reads()
            .vault_keys(&VaultKeyFilter::default(), &page)
            .await
            .unwrap();
        assert!(listed.data.iter().all(|key| key.caps.len() == 2));
        seen.extend(
            listed
                .data
                .iter()
                .map(|key| (key.created_at, key.id.clone())),
        );
        page.starting_after = listed.data.last().map(|key| key.id.clone());
        if !listed.has_more {
            break;
        }
    }
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
    assert_eq!(seen.len(), keys.len());

    opened.close().await;
}

/// Every other one of another namespace.
async fn issue_seven(ledger: &Ledger) -> Vec<VaultKeyId> {
    let mut keys = Vec::new();
    for number in 0..7 {
        let namespace = if number % 2 == 0 { "even" } else { "odd" }.to_owned();
        let key = VaultKey {
            namespace,
            ..vault_key(&[("eur", 5), ("usd", 7)])
        };
        issue(ledger, &key).await;
        keys.push(key.id);
    }
    keys
}

async fn vault_keys_are_found_by_what_they_are(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    issue_seven(ledger).await;
    let filter = VaultKeyFilter {
        billing_period: Some("2026-08".to_owned()),
        namespace: Some("odd".to_owned()),
    };
    let listed = ledger
        .reads()
        .vault_keys(&filter, &Page::default())
        .await
        .unwrap();
    assert_eq!((listed.data.len(), listed.has_more), (3, false));
    let other = VaultKeyFilter {
        billing_period: Some("2026-09".to_owned()),
        ..filter
    };
    assert!(
        ledger
            .reads()
            .vault_keys(&other, &Page::default())
            .await
            .unwrap()
            .data
            .is_empty()
    );
    opened.close().await;
}

/// Three charges under each of two keys of two periods; returns the first key.
async fn charge_six(ledger: &Ledger) -> VaultKey {
    let (one, two) = (vault_key(&[("usd", 1000)]), vault_key(&[("usd", 1000)]));
    let two = VaultKey {
        billing_period: "2026-09".to_owned(),
        ..two
    };
    for key in [&one, &two] {
        issue(ledger, key).await;
        for number in 0..3 {
            let customer = format!("cus_{number}");
            let ticket = reserve(ledger, ask(key, &customer, 10, &customer)).await;
            let outcome = if number == 0 {
                Outcome::Unknown
            } else {
                paid(&customer, 10)
            };
            let object_is_taken = number > 0 && key.id == two.id;
            let outcome = if object_is_taken {
                Outcome::NotSent
            } else {
                outcome
            };
            settle(ledger, &ticket, outcome).await;
        }
    }
    one
}

async fn reservations_are_found_by_what_they_are(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let one = charge_six(ledger).await;
    let count = async |filter: ReservationFilter| {
        let listed = ledger
            .reads()
            .reservations(&filter, &Page::default())
            .await
            .unwrap();
        assert!(listed.data.is_sorted_by(|newer, older| newer.id > older.id));
        listed.data.len()
    };
    let all = ReservationFilter::default;
    assert_eq!(count(all()).await, 6);
    let state = |state| ReservationFilter {
        state: Some(state),
        ..all()
    };
    assert_eq!(count(state(State::Held)).await, 2);
    assert_eq!(count(state(State::Released)).await, 2);
    let of_one = ReservationFilter {
        vault_key: Some(one.id.clone()),
        ..all()
    };
    assert_eq!(count(of_one.clone()).await, 3);
    assert_eq!(
        count(ReservationFilter {
            state: Some(State::Settled),
            ..of_one
        })
        .await,
        2
    );
    let customer = ReservationFilter {
        customer: Some("cus_1".to_owned()),
        ..all()
    };
    assert_eq!(count(customer.clone()).await, 2);
    let period = Some("2026-09".to_owned());
    assert_eq!(
        count(ReservationFilter {
            billing_period: period,
            ..customer
        })
        .await,
        1
    );
    opened.close().await;
}

async fn a_period_is_summed_up(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    issue(ledger, &vault_key(&[("jpy", 70), ("usd", 500)])).await;
    let first = reserve(ledger, ask(&key, "cus_1", 100, "a")).await;
    settle(ledger, &first, paid("ch_1", 100)).await;
    reserve(ledger, ask(&key, "cus_2", 200, "b")).await;
    ledger.reserve(ask(&key, "cus_1", 100, "a")).await.unwrap();

    let period = ledger.reads().period("2026-08").await.unwrap();
    assert_eq!((period.vault_keys, period.open_flags), (2, 1));
    let caps: Vec<_> = period
        .caps
        .iter()
        .map(|cap| {
            (
                cap.currency.as_str(),
                cap.max_amount.get(),
                cap.reserved,
                cap.settled,
            )
        })
        .collect();
    let nothing = amount(0);
    assert_eq!(
        caps,
        [
            ("jpy", 70, nothing, nothing),
            ("usd", 1500, amount(200), amount(100))
        ]
    );
    let states: Vec<_> = period
        .reservations
        .iter()
        .map(|sums| (sums.state, sums.count, sums.amount.get()))
        .collect();
    assert_eq!(
        states,
        [(State::InFlight, 1, 200), (State::Settled, 1, 100)]
    );
    let none = ledger.reads().period("2026-09").await.unwrap();
    assert_eq!(
        (none.vault_keys, none.caps.len(), none.reservations.len()),
        (0, 0, 0)
    );
    opened.close().await;
}
