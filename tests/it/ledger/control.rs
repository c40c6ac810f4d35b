//! What operators do: issue, change, revoke, rotate, resolve, acknowledge; and the log of it.

use std::time::Duration;

use spendcap::domain::digest::Digest16;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::State;
use spendcap::domain::vault_key::{KeyStatus, VaultKey};
use spendcap::ledger::command::{
    Control, ControlDone, ControlError, ControlKey, ControlRequest, Resolution, Subject,
};
use spendcap::ledger::{FlagFilter, Ledger, Page, PinError};

use super::on_both;
use super::place::Place;
use super::scene::{
    amount, ask, check_sums, control, currency, issue, paid, refused, reserve, secret_hash, settle,
    used, vault_key,
};

on_both!(
    a_command_is_carried_out_once_under_its_key,
    a_key_is_stored_whole,
    a_revoked_key_moves_no_money,
    a_rotated_secret_ends_in_its_time,
    an_operator_resolves_what_is_held,
    a_flag_is_acknowledged,
    the_audit_log_is_a_chain,
    the_first_account_and_mode_are_pinned,
);

async fn repeatable(
    ledger: &Ledger,
    control: &Control,
    (key, fingerprint): (&str, &str),
) -> Result<ControlDone, ControlError> {
    let request = ControlRequest {
        control: control.clone(),
        actor: "ops".to_owned(),
        idempotency: Some(ControlKey {
            digest: Digest16::of("test", &[key]),
            fingerprint: Digest16::of("test", &[fingerprint]),
        }),
    };
    ledger.control(request).await.unwrap()
}

fn create(key: &VaultKey) -> Control {
    Control::CreateKey {
        key: Box::new(key.clone()),
        secret_hash: secret_hash(&key.id),
    }
}

async fn a_command_is_carried_out_once_under_its_key(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let (key, second) = (vault_key(&[("usd", 1000)]), vault_key(&[("usd", 1000)]));
    let first = repeatable(ledger, &create(&key), ("k", "body"))
        .await
        .unwrap();
    assert!(!first.replayed);
    reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    // The handler makes a new id for each request; the repeat answers with the first one, as it is now.
    let again = repeatable(ledger, &create(&second), ("k", "body"))
        .await
        .unwrap();
    let Subject::VaultKey(found) = again.subject else {
        panic!("{again:?}")
    };
    assert!(again.replayed && found.id == key.id);
    assert_eq!(found.caps[0].reserved, amount(600));
    assert!(
        ledger
            .reads()
            .vault_key(&second.id)
            .await
            .unwrap()
            .is_none()
    );
    let other = repeatable(ledger, &create(&second), ("k", "another body")).await;
    assert_eq!(other, Err(ControlError::KeyReused));

    let held = reserve(ledger, ask(&key, "cus_2", 100, "b")).await;
    settle(ledger, &held, Outcome::Unknown).await;
    let resolve = Control::Resolve {
        reservation: Box::new(held.reservation().clone()),
        resolution: Resolution::Released,
        reason: "not in the dashboard".to_owned(),
    };
    let first = repeatable(ledger, &resolve, ("r", "body")).await.unwrap();
    let again = repeatable(ledger, &resolve, ("r", "body")).await.unwrap();
    assert!(again.replayed && again.subject == first.subject);
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_key_is_stored_whole(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let mut key = vault_key(&[("usd", 1000), ("jpy", 7)]);
    key.max_charge.insert(currency("usd"), amount(900));
    key.accounts = vec!["acct_1".to_owned(), "acct_\"2\"".to_owned()];
    key.metadata
        .insert("run".to_owned(), "Ümläut \\ 'quoted'".to_owned());
    key.starts_at = Some(spendcap::domain::time::UnixMs(5));
    key.require_customer = true;
    issue(ledger, &key).await;
    let stored = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
    key.created_at = stored.created_at;
    assert_eq!(stored, key);
    let by_secret = ledger
        .reads()
        .vault_key_by_secret(&secret_hash(&key.id))
        .await
        .unwrap();
    assert_eq!(by_secret, Some(key));
    assert_eq!(
        ledger.reads().vault_key_by_secret(&[0; 32]).await.unwrap(),
        None
    );
    opened.close().await;
}

async fn a_revoked_key_moves_no_money(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let revoke = Control::Revoke {
        id: key.id.clone(),
        reason: "leaked".to_owned(),
    };
    control(ledger, revoke).await.unwrap();
    let verdict = ledger.reserve(ask(&key, "cus_2", 1, "b")).await.unwrap();
    assert_eq!(refused(verdict), "VaultKeyRevoked");
    // What was under way is recorded all the same.
    settle(ledger, &ticket, paid("ch_1", 600)).await;
    assert_eq!(used(ledger, &key).await, (0, 600));
    let stored = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
    assert_eq!(stored.status, KeyStatus::Revoked);
    opened.close().await;
}

async fn a_rotated_secret_ends_in_its_time(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let rotate = |secret: u8, grace_ms| Control::Rotate {
        id: key.id.clone(),
        secret_hash: [secret; 32],
        secret_hint: format!("…{secret}"),
        grace_ms,
    };
    let opens = async |secret: [u8; 32]| {
        let found = ledger.reads().vault_key_by_secret(&secret).await.unwrap();
        found.is_some_and(|found| found.id == key.id)
    };
    control(ledger, rotate(1, 3_600_000)).await.unwrap();
    assert!(opens(secret_hash(&key.id)).await && opens([1; 32]).await);
    place.clock.advance(Duration::from_hours(1));
    assert!(!opens(secret_hash(&key.id)).await && opens([1; 32]).await);
    // A leak ends every older secret at once.
    control(ledger, rotate(2, 3_600_000)).await.unwrap();
    control(ledger, rotate(3, 0)).await.unwrap();
    assert!(!opens([1; 32]).await && !opens([2; 32]).await && opens([3; 32]).await);
    let stored = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
    assert_eq!(stored.secret_hint, "…3");
    opened.close().await;
}

async fn an_operator_resolves_what_is_held(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    let resolve = |resolution| Control::Resolve {
        reservation: Box::new(ticket.reservation().clone()),
        resolution,
        reason: "seen in the dashboard".to_owned(),
    };
    let settled = Resolution::Settled {
        amount: amount(600),
        object_id: "ch_1".to_owned(),
    };
    let early = control(ledger, resolve(settled.clone())).await;
    assert_eq!(early, Err(ControlError::NotResolvable(State::InFlight)));
    settle(ledger, &ticket, Outcome::Unknown).await;
    let done = control(ledger, resolve(settled)).await.unwrap();
    let Subject::Reservation(row) = done.subject else {
        panic!("{done:?}")
    };
    assert_eq!(
        (row.state, row.object_id.as_deref()),
        (State::Settled, Some("ch_1"))
    );
    assert_eq!(used(ledger, &key).await, (0, 600));
    let again = control(ledger, resolve(Resolution::Released)).await;
    assert_eq!(again, Err(ControlError::NotResolvable(State::Settled)));
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_flag_is_acknowledged(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &ticket, paid("ch_1", 600)).await;
    ledger.reserve(ask(&key, "cus_1", 600, "a")).await.unwrap();
    let open = FlagFilter {
        acknowledged: Some(false),
        ..FlagFilter::default()
    };
    let flags = ledger
        .reads()
        .flags(&open, &Page::default())
        .await
        .unwrap()
        .data;
    assert_eq!(
        (flags.len(), flags[0].customer.as_deref()),
        (1, Some("cus_1"))
    );
    assert_eq!(flags[0].vault_key, Some(key.id));
    let done = control(ledger, Control::Acknowledge { flag: flags[0].id })
        .await
        .unwrap();
    let Subject::Flag(flag) = done.subject else {
        panic!("{done:?}")
    };
    assert_eq!(flag.acknowledged_by.as_deref(), Some("ops"));
    assert!(
        ledger
            .reads()
            .flags(&open, &Page::default())
            .await
            .unwrap()
            .data
            .is_empty()
    );
    opened.close().await;
}

async fn the_audit_log_is_a_chain(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    // Many at once share commits, and still make one chain.
    let tasks = (0..20).map(|number| {
        let (ledger, id) = (ledger.clone(), key.id.clone());
        let update = Control::UpdateKey {
            id,
            expected_totals: vec![(currency("usd"), amount(1000 + number))],
            headroom: None,
            resume: false,
            reason: format!("INC-{number}"),
        };
        tokio::spawn(async move { control(&ledger, update).await.unwrap() })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(chain(ledger).await, Ok(21));
    place
        .sql(&["UPDATE audit_log SET reason = 'nothing' WHERE reason = 'INC-7'"])
        .await;
    assert!(chain(ledger).await.is_err(), "a changed entry shows");
    place
        .sql(&["DELETE FROM audit_log WHERE reason = 'nothing'"])
        .await;
    assert!(chain(ledger).await.is_err(), "a missing entry shows");
    opened.close().await;
}

/// The length of the chain, or the entry that breaks it.
async fn chain(ledger: &Ledger) -> Result<usize, String> {
    let mut entries = Vec::new();
    let mut page = Page {
        limit: 6,
        starting_after: None,
    };
    loop {
        let listed = ledger.reads().audit_log(&page).await.unwrap();
        page.starting_after = listed.data.last().map(|entry| entry.id);
        entries.extend(listed.data);
        if !listed.has_more {
            break;
        }
    }
    let mut previous = [0; 32];
    for entry in entries.iter().rev() {
        if entry.previous_hash != previous || !entry.is_intact() {
            return Err(entry.reason.clone());
        }
        previous = entry.hash;
    }
    Ok(entries.len())
}

async fn the_first_account_and_mode_are_pinned(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    ledger.pin(None, false).await.unwrap();
    ledger.pin(Some("acct_1"), false).await.unwrap();
    ledger.pin(Some("acct_1"), false).await.unwrap();
    ledger.pin(None, false).await.unwrap();
    let other = ledger.pin(Some("acct_2"), false).await.unwrap_err();
    assert!(matches!(&other, PinError::OtherAccount { pinned, .. } if pinned == "acct_1"));
    let live = ledger.pin(Some("acct_1"), true).await.unwrap_err();
    assert!(
        matches!(
            live,
            PinError::OtherMode {
                pinned: "test",
                given: "live"
            }
        ),
        "{live}"
    );
    opened.close().await;
    let opened = place.open().await;
    assert!(
        opened.ledger.pin(Some("acct_2"), false).await.is_err(),
        "for good"
    );
    opened.close().await;
}
