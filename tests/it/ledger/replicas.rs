//! Several processes on one PostgreSQL database: two ledgers in one test are no less apart.

use std::collections::BTreeSet;

use spendcap::ledger::command::{Control, Verdict};

use super::place::{Opened, Place};
use super::scene::{
    ask, check_sums, control, issue, paid, refused, reserve, settle, used, vault_key,
};

async fn two() -> (Place, Opened, Opened) {
    let place = Place::postgres().await;
    let (one, two) = (place.open().await, place.open().await);
    (place, one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_slot_is_billed_once_whoever_asks() {
    let (_place, one, two) = two().await;
    let key = vault_key(&[("usd", 1_000_000)]);
    issue(&one.ledger, &key).await;
    for round in 0..20 {
        // Vault keys differ, so that no lock orders the two and the index decides.
        let other = vault_key(&[("usd", 1_000_000)]);
        issue(&two.ledger, &other).await;
        let customer = format!("cus_{round}");
        let first = one
            .ledger
            .reserve(ask(&key, &customer, 600, &format!("a{round}")));
        let second = two
            .ledger
            .reserve(ask(&other, &customer, 600, &format!("b{round}")));
        let (first, second) = tokio::join!(first, second);
        let verdicts = [first.unwrap(), second.unwrap()];
        let sent = verdicts
            .iter()
            .filter(|it| matches!(it, Verdict::Send(_)))
            .count();
        let waiting = verdicts
            .iter()
            .filter(|it| matches!(it, Verdict::Wait(_)))
            .count();
        assert_eq!((sent, waiting), (1, 1), "{verdicts:?}");
    }
    check_sums(&one.ledger).await;
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_idempotency_key_is_sent_once_whoever_asks() {
    let (_place, one, two) = two().await;
    let key = vault_key(&[("usd", 1_000_000)]);
    issue(&one.ledger, &key).await;
    for round in 0..20 {
        // No customer, so no slot: only the key tells that it is the same request.
        let mut asked = ask(&key, "", 600, &format!("a{round}"));
        asked.customer = None;
        let (first, second) =
            tokio::join!(one.ledger.reserve(asked.clone()), two.ledger.reserve(asked));
        let verdicts = [first.unwrap(), second.unwrap()];
        let sent = verdicts
            .iter()
            .filter(|it| matches!(it, Verdict::Send(_)))
            .count();
        assert_eq!(sent, 1, "{verdicts:?}");
    }
    check_sums(&one.ledger).await;
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_one_over_all_processes() {
    let (_place, one, two) = two().await;
    let key = vault_key(&[("usd", 100_000)]);
    issue(&one.ledger, &key).await;
    let tasks = (0..200).map(|number| {
        let ledger = if number % 2 == 0 {
            &one.ledger
        } else {
            &two.ledger
        }
        .clone();
        let ask = ask(&key, &format!("cus_{number}"), 999, &format!("k{number}"));
        tokio::spawn(async move {
            match ledger.reserve(ask).await.unwrap() {
                Verdict::Send(ticket) => {
                    let object_id = format!("ch_{number}");
                    settle(&ledger, &ticket, paid(&object_id, 999)).await;
                    Some(ticket.reservation().id)
                }
                other => {
                    assert_eq!(refused(other), "SpendCapReached");
                    None
                }
            }
        })
    });
    let mut ids = BTreeSet::new();
    for task in tasks.collect::<Vec<_>>() {
        if let Some(id) = task.await.unwrap() {
            assert!(ids.insert(id), "an id was given out twice");
        }
    }
    assert_eq!(ids.len(), 100);
    assert_eq!(used(&one.ledger, &key).await, (0, 99_900));
    check_sums(&two.ledger).await;
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_holds_everywhere_at_once() {
    let (_place, one, two) = two().await;
    let key = vault_key(&[("usd", 1000)]);
    issue(&one.ledger, &key).await;
    reserve(&two.ledger, ask(&key, "cus_1", 1, "a")).await;
    let revoke = Control::Revoke {
        id: key.id.clone(),
        reason: "leaked".to_owned(),
    };
    control(&one.ledger, revoke).await.unwrap();
    let verdict = two
        .ledger
        .reserve(ask(&key, "cus_2", 1, "b"))
        .await
        .unwrap();
    assert_eq!(refused(verdict), "VaultKeyRevoked");
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_on_two_processes_make_one_audit_log() {
    let (_place, one, two) = two().await;
    let tasks = (0..20).map(|number| {
        let ledger = if number % 2 == 0 {
            &one.ledger
        } else {
            &two.ledger
        }
        .clone();
        tokio::spawn(async move { issue(&ledger, &vault_key(&[("usd", 1)])).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let page = spendcap::ledger::Page {
        limit: 100,
        starting_after: None,
    };
    let mut entries = one.ledger.reads().audit_log(&page).await.unwrap().data;
    entries.reverse();
    assert_eq!(entries.len(), 20);
    let mut previous = [0; 32];
    for entry in &entries {
        assert!(entry.is_intact() && entry.previous_hash == previous);
        previous = entry.hash;
    }
    one.close().await;
    two.close().await;
}
