//! The database breaks: money is refused, nothing is lost, nothing is reserved twice.

use std::time::Duration;

use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::State;
use spendcap::domain::settlement::Report;
use spendcap::ledger::command::Verdict;
use spendcap::ledger::{Ledger, LedgerError, Page, ReservationFilter};
use sqlx::Connection as _;

use super::on_both;
use super::place::{Database, Place};
use super::scene::{ask, check_sums, issue, paid, refused, reserve, settle, used, vault_key};
use super::wire::{Fault, Wire};

on_both!(
    what_cannot_be_written_is_refused_and_settles_are_kept,
    one_bad_command_fails_alone
);

/// For what happens by itself soon.
const PATIENCE: Duration = Duration::from_secs(30);

async fn what_cannot_be_written_is_refused_and_settles_are_kept(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;

    place.sql(&["ALTER TABLE caps RENAME TO caps_away"]).await;
    let verdict = ledger.reserve(ask(&key, "cus_2", 1, "b")).await;
    assert_eq!(verdict.err(), Some(LedgerError::Unavailable));
    let report = Report {
        reservation: ticket.reservation().clone(),
        outcome: paid("ch_1", 600),
    };
    let settling = ledger.settle(report).await;
    assert_eq!(
        ledger.reads().vault_key(&key.id).await.err(),
        Some(LedgerError::Unavailable)
    );
    place.sql(&["ALTER TABLE caps_away RENAME TO caps"]).await;

    let settled = tokio::time::timeout(PATIENCE, settling.stored())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(settled.state, State::Settled);
    reserve(ledger, ask(&key, "cus_2", 1, "b")).await;
    assert_eq!(used(ledger, &key).await, (1, 600));
    check_sums(ledger).await;
    opened.close().await;
}

async fn one_bad_command_fails_alone(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("usd", 1000)]);
    issue(&opened.ledger, &key).await;
    // A secret that is in use cannot open a second key.
    let twin = vault_key(&[("usd", 1000)]);
    let create = spendcap::ledger::command::Control::CreateKey {
        key: Box::new(twin.clone()),
        secret_hash: super::scene::secret_hash(&key.id),
    };
    let bad = spendcap::ledger::command::ControlRequest {
        control: create,
        actor: "ops".to_owned(),
        idempotency: None,
    };
    let reserves = (0..10).map(|number| {
        let ask = ask(&key, &format!("cus_{number}"), 10, &format!("k{number}"));
        let ledger = opened.ledger.clone();
        tokio::spawn(async move { ledger.reserve(ask).await })
    });
    let reserves: Vec<_> = reserves.collect();
    assert!(opened.ledger.control(bad).await.is_err());
    for reserve in reserves {
        assert!(matches!(reserve.await.unwrap(), Ok(Verdict::Send(_))));
    }
    assert!(
        opened
            .ledger
            .reads()
            .vault_key(&twin.id)
            .await
            .unwrap()
            .is_none()
    );
    check_sums(&opened.ledger).await;
    opened.close().await;
}

#[tokio::test]
async fn a_locked_file_is_waited_for_then_refused() {
    let place = Place::sqlite();
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let mut thief = place.sqlite_connection().await;
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut thief)
        .await
        .unwrap();
    let verdict = ledger.reserve(ask(&key, "cus_1", 1, "a")).await;
    assert_eq!(verdict.err(), Some(LedgerError::Unavailable));
    assert!(
        ledger.reads().vault_key(&key.id).await.unwrap().is_some(),
        "reads go on"
    );
    sqlx::query("ROLLBACK").execute(&mut thief).await.unwrap();
    thief.close().await.unwrap();
    reserve(ledger, ask(&key, "cus_1", 1, "a")).await;
    assert_eq!(used(ledger, &key).await, (1, 0));
    opened.close().await;
}

/// A ledger whose PostgreSQL is behind a wire.
async fn wired() -> (Place, Wire) {
    let direct = Place::postgres().await;
    let Database::Postgres { url } = &direct.database else {
        unreachable!()
    };
    let (login, rest) = url.rsplit_once('@').unwrap();
    let (server, name) = rest.split_once('/').unwrap();
    let wire = Wire::to(server).await;
    let url = format!("{login}@{}/{name}", wire.address());
    (
        Place {
            database: Database::Postgres { url },
            clock: direct.clock,
        },
        wire,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_found_again() {
    let (place, wire) = wired().await;
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;

    // A connection that died while nothing happened on it costs nobody anything.
    wire.cut();
    reserve(ledger, ask(&key, "cus_2", 1, "b")).await;

    wire.set(Fault::Down);
    wire.cut();
    let verdict = ledger.reserve(ask(&key, "cus_3", 1, "c")).await;
    assert_eq!(verdict.err(), Some(LedgerError::Unavailable));
    assert_eq!(
        ledger.reads().ready().await.err(),
        Some(LedgerError::Unavailable)
    );
    let report = Report {
        reservation: ticket.reservation().clone(),
        outcome: paid("ch_1", 600),
    };
    let settling = ledger.settle(report).await;
    wire.set(Fault::None);
    let settled = tokio::time::timeout(PATIENCE, settling.stored())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(settled.state, State::Settled);
    reserve(ledger, ask(&key, "cus_3", 1, "c")).await;
    ledger.reads().ready().await.unwrap();
    assert_eq!(used(ledger, &key).await, (2, 600));
    check_sums(ledger).await;
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_backend_is_replaced() {
    let place = Place::postgres().await;
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    for round in 0..5 {
        place
            .sql(&["SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()"])
            .await;
        reserve(
            ledger,
            ask(&key, &format!("cus_{round}"), 1, &format!("k{round}")),
        )
        .await;
    }
    assert_eq!(used(ledger, &key).await, (5, 0));
    check_sums(ledger).await;
    opened.close().await;
}

/// The sweep commits too, every second: a fault may strike it instead of what a test is about.
const ROUNDS: i64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_made_and_not_confirmed_is_found() {
    let (place, wire) = wired().await;
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    for round in 0..ROUNDS {
        wire.set(Fault::LoseConfirmation);
        let ask = ask(&key, &format!("cus_{round}"), 10, &format!("k{round}"));
        let ticket = reserve(ledger, ask).await;
        assert_eq!(used(ledger, &key).await, (10, 10 * round), "reserved once");
        wire.set(Fault::LoseConfirmation);
        // Nothing tells whether a settle is stored, so it is made again, which changes nothing.
        let settled = settle(ledger, &ticket, paid(&format!("ch_{round}"), 10)).await;
        assert_eq!(settled.state, State::Settled);
        assert_eq!(used(ledger, &key).await, (0, 10 + 10 * round));
    }
    assert!(i64::from(wire.broken()) >= ROUNDS);
    check_sums(ledger).await;
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_not_made_is_refused() {
    let (place, wire) = wired().await;
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let (mut reserved, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        // The next commit is the first on its connection.
        wire.cut();
        wire.set(Fault::LoseCommit);
        let ask = ask(&key, &format!("cus_{round}"), 10, &format!("k{round}"));
        match ledger.reserve(ask.clone()).await {
            Ok(Verdict::Send(_)) => {}
            Err(LedgerError::Unavailable) => {
                refused += 1;
                assert_eq!(used(ledger, &key).await, (reserved, 0));
                wire.set(Fault::None);
                reserve(ledger, ask).await;
            }
            other => panic!("{other:?}"),
        }
        reserved += 10;
        assert_eq!(used(ledger, &key).await, (reserved, 0));
    }
    assert!(refused > 0);
    check_sums(ledger).await;
    opened.close().await;
}

/// Whatever the network does, nothing is lost and nothing is reserved that nobody sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_network_loses_nothing() {
    let (place, wire) = wired().await;
    let opened = place.open().await;
    let key = vault_key(&[("usd", 100_000)]);
    issue(&opened.ledger, &key).await;
    let mut charged = 0;
    for round in 0..12 {
        match round % 4 {
            0 => wire.set(Fault::LoseConfirmation),
            1 => wire.cut(),
            2 => wire.set(Fault::LoseCommit),
            _ => {}
        }
        let tasks = (0..8).map(|number| charge(&opened.ledger, &key, round * 8 + number));
        for task in tasks.collect::<Vec<_>>() {
            charged += task.await.unwrap();
        }
    }
    // What was given up while the network was bad goes back by itself.
    let idle = async {
        while used(&opened.ledger, &key).await.0 > 0 {
            opened.ledger.sweep().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, idle).await.unwrap();
    assert_eq!(used(&opened.ledger, &key).await, (0, charged));
    let settled = ReservationFilter {
        state: Some(State::Settled),
        ..Default::default()
    };
    let page = Page {
        limit: 100,
        starting_after: None,
    };
    let rows = opened
        .ledger
        .reads()
        .reservations(&settled, &page)
        .await
        .unwrap()
        .data;
    assert_eq!(i64::try_from(rows.len()).unwrap() * 10, charged);
    check_sums(&opened.ledger).await;
    opened.close().await;
}

/// One client that asks until it is told something; returns what was charged.
fn charge(
    ledger: &Ledger,
    key: &spendcap::domain::vault_key::VaultKey,
    number: i64,
) -> tokio::task::JoinHandle<i64> {
    let (ledger, key) = (ledger.clone(), key.clone());
    tokio::spawn(async move {
        loop {
            let ask = ask(&key, &format!("cus_{number}"), 10, &format!("k{number}"));
            match ledger.reserve(ask).await {
                Ok(Verdict::Send(ticket)) => {
                    settle(&ledger, &ticket, paid(&format!("ch_{number}"), 10)).await;
                    return 10;
                }
                Ok(Verdict::Wait(_)) | Err(LedgerError::Unavailable) => {
                    // What was reserved and given up is on its way back.
                    tokio::task::yield_now().await;
                }
                Ok(other) => panic!("{}", refused(other)),
                Err(error) => panic!("{error}"),
            }
        }
    })
}

#[tokio::test]
async fn a_settle_that_is_dropped_is_stored() {
    let place = Place::sqlite();
    let opened = place.open().await;
    let key = vault_key(&[("usd", 1000)]);
    issue(&opened.ledger, &key).await;
    let ticket = reserve(&opened.ledger, ask(&key, "cus_1", 600, "a")).await;
    let report = Report {
        reservation: ticket.reservation().clone(),
        outcome: Outcome::Unknown,
    };
    drop(opened.ledger.settle(report).await);
    opened.close().await;
    let opened = place.open().await;
    let row = opened
        .ledger
        .reads()
        .reservation(ticket.reservation().id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.state, State::Held);
    opened.close().await;
}
