//! The same key again, another key for the same intent, and waiting for the first.

use std::time::Duration;

use spendcap::domain::flag::FlagKind;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::vault_key::{OnDuplicate, VaultKey};
use spendcap::ledger::command::Verdict;
use spendcap::ledger::{FlagFilter, Page};

use super::on_both;
use super::place::Place;
use super::scene::{
    ask, check_sums, existing, issue, paid, refused, reserve, settle, used, vault_key, waiting,
};

on_both!(
    a_repeat_waits_is_woken_and_reads,
    many_keys_of_one_intent_make_one_charge,
    a_slot_is_one_across_vault_keys,
    another_amount_is_a_charge_of_its_own,
    a_key_is_bound_to_what_it_asked,
    a_rejecting_key_names_the_first_charge,
);

/// Longer than any commit takes, shorter than the test's patience.
const PATIENCE: Duration = Duration::from_secs(20);

async fn a_repeat_waits_is_woken_and_reads(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let first = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;

    let mut repeat = waiting(ledger.reserve(ask(&key, "cus_1", 600, "a")).await.unwrap());
    assert_eq!(repeat.reservation, first.reservation().id);
    assert_eq!(repeat.flags, [FlagKind::IdempotencyKeyRepeated]);
    settle(ledger, &first, paid("ch_1", 600)).await;
    tokio::time::timeout(PATIENCE, repeat.woken())
        .await
        .unwrap();

    let read = existing(ledger.reserve(ask(&key, "cus_1", 600, "a")).await.unwrap());
    assert_eq!(
        (read.object_id.as_str(), read.upstream_key.as_str()),
        ("ch_1", "a")
    );
    assert_eq!(used(ledger, &key).await, (0, 600));
    let flags = ledger
        .reads()
        .flags(&FlagFilter::default(), &Page::default())
        .await
        .unwrap();
    assert_eq!(flags.data.len(), 1);
    assert_eq!(flags.data[0].count, 2);
    check_sums(ledger).await;
    opened.close().await;
}

async fn many_keys_of_one_intent_make_one_charge(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("usd", 100_000)]);
    issue(&opened.ledger, &key).await;
    let tasks = (0..64).map(|number| {
        let (ledger, key) = (opened.ledger.clone(), key.clone());
        tokio::spawn(async move {
            loop {
                let ask = ask(&key, "cus_1", 600, &format!("uuid-{number}"));
                match ledger.reserve(ask).await.unwrap() {
                    Verdict::Send(ticket) => {
                        settle(&ledger, &ticket, paid("ch_1", 600)).await;
                        return true;
                    }
                    Verdict::Read(read) => {
                        assert_eq!(read.object_id, "ch_1");
                        return false;
                    }
                    Verdict::Wait(mut waiting) => {
                        tokio::time::timeout(PATIENCE, waiting.woken())
                            .await
                            .unwrap();
                    }
                    other => panic!("{other:?}"),
                }
            }
        })
    });
    let mut sent = 0;
    for task in tasks.collect::<Vec<_>>() {
        sent += u32::from(task.await.unwrap());
    }
    assert_eq!(sent, 1);
    assert_eq!(used(&opened.ledger, &key).await, (0, 600));
    let owner = opened
        .ledger
        .reads()
        .object_owner("", "ch_1")
        .await
        .unwrap()
        .unwrap();
    let requests = opened.ledger.reads().requests(owner.id).await.unwrap();
    assert_eq!(
        requests.len(),
        64,
        "every key is known as one of that reservation"
    );
    check_sums(&opened.ledger).await;
    opened.close().await;
}

async fn a_slot_is_one_across_vault_keys(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let (one, two) = (vault_key(&[("usd", 1000)]), vault_key(&[("usd", 1000)]));
    issue(ledger, &one).await;
    issue(ledger, &two).await;
    let first = reserve(ledger, ask(&one, "cus_1", 600, "a")).await;
    let other = waiting(ledger.reserve(ask(&two, "cus_1", 600, "b")).await.unwrap());
    assert_eq!(other.flags, [FlagKind::DuplicateCustomerPeriod]);
    settle(ledger, &first, Outcome::Unknown).await;
    // Bodies are equal, so either may send it again; the cap it uses stays the first's.
    let again = reserve(ledger, ask(&two, "cus_1", 600, "b")).await;
    assert_eq!(again.reservation().vault_key, one.id);
    assert_eq!(again.reservation().send.upstream_key, "a");
    settle(ledger, &again, paid("ch_1", 600)).await;
    assert_eq!(used(ledger, &one).await, (0, 600));
    assert_eq!(used(ledger, &two).await, (0, 0));
    let read = existing(ledger.reserve(ask(&two, "cus_1", 600, "c")).await.unwrap());
    assert_eq!(read.object_id, "ch_1");
    check_sums(ledger).await;
    opened.close().await;
}

async fn another_amount_is_a_charge_of_its_own(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let first = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &first, paid("ch_1", 600)).await;
    let second = reserve(ledger, ask(&key, "cus_1", 100, "b")).await;
    assert_eq!(second.flags(), [FlagKind::DuplicateCustomerPeriod]);
    settle(ledger, &second, paid("ch_2", 100)).await;
    // Its repeat under a new key finds it, not the first.
    let read = existing(ledger.reserve(ask(&key, "cus_1", 100, "c")).await.unwrap());
    assert_eq!(read.object_id, "ch_2");
    assert_eq!(used(ledger, &key).await, (0, 700));
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_key_is_bound_to_what_it_asked(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let first = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let reused = ledger.reserve(ask(&key, "cus_2", 600, "a")).await.unwrap();
    assert_eq!(refused(reused), "IdempotencyKeyReused");
    // Stripe never heard of it, so the key is free, and its row moves to the new reservation.
    settle(ledger, &first, Outcome::NotSent).await;
    let second = reserve(ledger, ask(&key, "cus_2", 600, "a")).await;
    assert_ne!(second.reservation().id, first.reservation().id);
    let requests = ledger
        .reads()
        .requests(second.reservation().id)
        .await
        .unwrap();
    assert_eq!(requests.len(), 1);
    assert!(
        ledger
            .reads()
            .requests(first.reservation().id)
            .await
            .unwrap()
            .is_empty()
    );
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_rejecting_key_names_the_first_charge(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = VaultKey {
        on_duplicate: OnDuplicate::Reject,
        ..vault_key(&[("usd", 1000)])
    };
    issue(ledger, &key).await;
    let first = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &first, paid("ch_1", 600)).await;
    let second = ledger.reserve(ask(&key, "cus_1", 100, "b")).await.unwrap();
    let Verdict::Refuse(second) = second else {
        panic!("{second:?}")
    };
    assert!(
        format!("{:?}", second.refusal).contains("ch_1"),
        "{second:?}"
    );
    check_sums(ledger).await;
    opened.close().await;
}
