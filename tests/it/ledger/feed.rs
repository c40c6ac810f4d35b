//! What the event feed showed, rows that are given up, and ledgers from before either.

use spendcap::domain::flag::FlagKind;
use spendcap::domain::id::ReservationId;
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::State;
use spendcap::domain::time::UnixMs;
use spendcap::ledger::feed::{Bypass, FeedReport, Refund};
use spendcap::ledger::{FlagFilter, Ledger, Page};
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, PgConnection};

use super::on_both;
use super::place::{DEADLINE_MS, Database, Place};
use super::scene::{amount, ask, check_sums, issue, paid, reserve, settle, used, vault_key};

on_both!(
    a_stretch_counts_once_and_only_where_the_last_one_ended,
    a_charge_that_has_an_owner_by_now_went_nowhere,
    a_row_is_given_up_by_the_stores_clock,
    rows_and_flags_from_before_are_understood,
);

fn stretch(from: Option<i64>, to: i64) -> FeedReport {
    FeedReport {
        account: String::new(),
        from: from.map(UnixMs),
        to: UnixMs(to),
        refunds: Vec::new(),
        bypasses: Vec::new(),
    }
}

fn bypass(object_id: &str) -> Bypass {
    Bypass {
        object_id: object_id.to_owned(),
        customer: Some("cus_9".to_owned()),
    }
}

async fn bypasses(ledger: &Ledger) -> Vec<(Option<String>, i64)> {
    let filter = FlagFilter {
        kind: Some(FlagKind::Bypass),
        ..FlagFilter::default()
    };
    let flags = ledger.reads().flags(&filter, &Page::default()).await;
    let flags = flags.unwrap().data.into_iter();
    flags.map(|flag| (flag.object_id, flag.count)).collect()
}

async fn refunded(ledger: &Ledger, id: ReservationId) -> i64 {
    let row = ledger.reads().reservation(id).await.unwrap().unwrap();
    row.amount_refunded.get()
}

async fn a_stretch_counts_once_and_only_where_the_last_one_ended(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &ticket, paid("ch_1", 600)).await;
    let id = ticket.reservation().id;
    let refund = |minor| Refund {
        reservation: id,
        amount_refunded: amount(minor),
    };

    assert!(ledger.observe(stretch(None, 1000)).await.unwrap());
    assert!(!ledger.observe(stretch(None, 2000)).await.unwrap(), "known");
    let first = FeedReport {
        refunds: vec![refund(100)],
        bypasses: vec![bypass("ch_8"), bypass("ch_9")],
        ..stretch(Some(1000), 2000)
    };
    assert!(ledger.observe(first.clone()).await.unwrap());
    let late = FeedReport {
        refunds: vec![refund(0)],
        ..first
    };
    assert!(!ledger.observe(late).await.unwrap(), "another was first");
    assert_eq!(refunded(ledger, id).await, 100);
    let again = FeedReport {
        bypasses: vec![bypass("ch_9")],
        ..stretch(Some(2000), 3000)
    };
    assert!(ledger.observe(again).await.unwrap());
    let flags = [("ch_9", 1), ("ch_8", 1)].map(|(id, count)| (Some(id.to_owned()), count));
    assert_eq!(bypasses(ledger).await, flags);
    let cursor = ledger.reads().feed_cursor("").await.unwrap().unwrap();
    assert_eq!(cursor.read_until, UnixMs(3000));
    assert_eq!(ledger.reads().feed_cursor("acct_x").await.unwrap(), None);
    assert_eq!(used(ledger, &key).await, (0, 600), "a refund raises no cap");
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_charge_that_has_an_owner_by_now_went_nowhere(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    ledger.observe(stretch(None, 1000)).await.unwrap();
    let ticket = reserve(ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(ledger, &ticket, paid("ch_1", 600)).await;
    let report = FeedReport {
        bypasses: vec![bypass("ch_1")],
        ..stretch(Some(1000), 2000)
    };
    assert!(ledger.observe(report).await.unwrap());
    assert_eq!(bypasses(ledger).await, []);
    opened.close().await;
}

async fn a_row_is_given_up_by_the_stores_clock(place: Place) {
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let key = vault_key(&[("usd", 1000)]);
    issue(ledger, &key).await;
    let mut rows = Vec::new();
    for (customer, outcome) in [
        ("cus_1", Outcome::Unknown),
        ("cus_2", Outcome::ServerError),
        ("cus_3", Outcome::Unknown),
    ] {
        let ticket = reserve(ledger, ask(&key, customer, 100, customer)).await;
        settle(ledger, &ticket, outcome).await;
        let id = ticket.reservation().id;
        rows.push(ledger.reads().reservation(id).await.unwrap().unwrap());
    }
    let day_ms = 24 * 3_600_000;
    let soon_ms = u64::try_from(day_ms + DEADLINE_MS - 10_000).unwrap();
    place
        .clock
        .advance(std::time::Duration::from_millis(soon_ms));
    assert!(
        !ledger.write_off(rows[0].clone()).await.unwrap(),
        "too young"
    );
    place.clock.advance(std::time::Duration::from_mins(1));
    let mut other = rows[0].clone();
    other.send.sends += 1;
    assert!(!ledger.write_off(other).await.unwrap(), "sent again since");
    assert!(ledger.write_off(rows[0].clone()).await.unwrap());
    assert!(!ledger.write_off(rows[0].clone()).await.unwrap(), "once");
    assert!(!ledger.write_off(rows[1].clone()).await.unwrap(), "a 5xx");
    assert_eq!(used(ledger, &key).await, (200, 0));

    // What is proven afterwards is recorded.
    let row = ledger
        .reads()
        .reservation(rows[0].id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.state, State::WrittenOff);
    let found = ledger
        .reads()
        .by_upstream_key("", &row.send.upstream_key)
        .await;
    assert_eq!(found.unwrap(), std::slice::from_ref(&row));
    let report = spendcap::domain::settlement::Report {
        reservation: row,
        outcome: paid("ch_late", 100),
    };
    let settled = ledger.settle(report).await.stored().await.unwrap();
    assert_eq!(settled.flags, [FlagKind::LateSettlement]);
    assert_eq!(used(ledger, &key).await, (200, 100));
    check_sums(ledger).await;
    opened.close().await;
}

/// The schema as it was first, with a held row and a flag in it.
async fn rows_and_flags_from_before_are_understood(place: Place) {
    migrate_to_the_first(&place).await;
    place
        .sql(&[
            "INSERT INTO vault_keys VALUES ('vk_old', 'x', '2026-08', 'default', 'active', NULL,
                4000000000000, 1100000, 'replay', 'enforce', '[]', '{}', 402, '[]', false, '{}', 1)",
            "INSERT INTO caps VALUES ('vk_old', 'usd', 1000, 1000, 100, 0)",
            insert_row(&place),
            "INSERT INTO flags (kind, count, reservation, vault_key, customer, first_seen_at_ms,
                last_seen_at_ms) VALUES ('duplicate_operation', 3, 7, 'vk_old', 'cus_1', 5, 6)",
        ])
        .await;
    let opened = place.open().await;
    let ledger = &opened.ledger;
    let row = ledger.reads().reservation(ReservationId(7)).await;
    let row = row.unwrap().unwrap();
    assert_eq!(row.state, State::Held);
    assert!(row.server_error, "it is not known, so it counts as seen");
    assert_eq!(row.amount_refunded, amount(0));
    assert!(!ledger.write_off(row).await.unwrap());
    let (filter, page) = (FlagFilter::default(), Page::default());
    let flags = ledger.reads().flags(&filter, &page);
    let flag = flags.await.unwrap().data.remove(0);
    assert_eq!((flag.reservation, flag.count), (Some(ReservationId(7)), 3));
    assert_eq!(flag.object_id, None);

    ledger.observe(stretch(None, 1000)).await.unwrap();
    let report = FeedReport {
        bypasses: vec![bypass("ch_9")],
        ..stretch(Some(1000), 2000)
    };
    ledger.observe(report).await.unwrap();
    assert_eq!(bypasses(ledger).await.len(), 1);
    check_sums(ledger).await;
    opened.close().await;
}

fn insert_row(place: &Place) -> &'static str {
    match place.database {
        Database::Sqlite(_) => {
            "INSERT INTO reservations VALUES (7, 1, 'vk_old', '', 'default', '2026-08', 'cus_1', '',
                NULL, NULL, 1, 'charges.create', 'usd', 100, 100, 0, 'held', NULL,
                'charges.create', 'k', zeroblob(16), 1, 1, 5, 6, 7, 0, 0, 5, NULL)"
        }
        Database::Postgres { .. } => {
            "INSERT INTO reservations VALUES (7, 1, 'vk_old', '', 'default', '2026-08', 'cus_1', '',
                NULL, NULL, 'charges.create', 'usd', 100, 100, 0, 'held', NULL,
                'charges.create', 'k', decode(repeat('00', 16), 'hex'), 1, 1, 5, 6, 7, 0, false, 5,
                NULL)"
        }
    }
}

async fn migrate_to_the_first(place: &Place) {
    let (folder, name) = (tempfile::tempdir().unwrap(), "0001_ledger.sql");
    let kind = match place.database {
        Database::Sqlite(_) => "sqlite",
        Database::Postgres { .. } => "postgres",
    };
    let root = env!("CARGO_MANIFEST_DIR");
    let first = format!("{root}/migrations/{kind}/{name}");
    std::fs::copy(first, folder.path().join(name)).unwrap();
    let migrator = Migrator::new(folder.path()).await.unwrap();
    match &place.database {
        Database::Sqlite(_) => {
            std::fs::File::create(place.file()).unwrap();
            let mut connection = place.sqlite_connection().await;
            migrator
                .run_direct(None, &mut connection, false)
                .await
                .unwrap();
            connection.close().await.unwrap();
        }
        Database::Postgres { url } => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            migrator
                .run_direct(None, &mut connection, false)
                .await
                .unwrap();
            connection.close().await.unwrap();
        }
    }
}
