//! Opening: what a restart remembers, and which databases are refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use spendcap::domain::reservation::State;
use spendcap::ledger::{FileError, Ledger, OpenError, SchemaError};

use super::on_both;
use super::place::{Database, Place};
use super::scene::{ask, check_sums, existing, issue, paid, reserve, settle, used, vault_key};

on_both!(
    a_restart_forgets_nothing,
    a_schema_is_not_migrated_unasked,
    a_newer_schema_may_refuse_this_binary,
);

async fn a_restart_forgets_nothing(place: Place) {
    let opened = place.open().await;
    let key = vault_key(&[("usd", 1000)]);
    issue(&opened.ledger, &key).await;
    let done = reserve(&opened.ledger, ask(&key, "cus_1", 600, "a")).await;
    settle(&opened.ledger, &done, paid("ch_1", 600)).await;
    let sent = reserve(&opened.ledger, ask(&key, "cus_2", 100, "b")).await;
    opened.close().await;

    let opened = place.open().await;
    let ledger = &opened.ledger;
    assert_eq!(used(ledger, &key).await, (100, 600));
    let read = existing(ledger.reserve(ask(&key, "cus_1", 600, "c")).await.unwrap());
    assert_eq!(read.object_id, "ch_1");
    let row = ledger
        .reads()
        .reservation(sent.reservation().id)
        .await
        .unwrap()
        .unwrap();
    // A file's sender is dead when the file is opened again; another process's may still be at it.
    let (state, version) = match place.database {
        Database::Sqlite(_) => (State::Held, 2),
        Database::Postgres { .. } => (State::InFlight, 1),
    };
    assert_eq!((row.state, row.version), (state, version));
    let next = reserve(ledger, ask(&key, "cus_3", 1, "d")).await;
    assert!(next.reservation().id > sent.reservation().id);
    settle(ledger, &sent, paid("ch_2", 100)).await;
    assert_eq!(used(ledger, &key).await, (1, 700));
    check_sums(ledger).await;
    opened.close().await;
}

async fn a_schema_is_not_migrated_unasked(place: Place) {
    let refused = place.try_open(false).await.err().unwrap();
    let expected = SchemaError::NotMigrated { found: 0 }.to_string();
    assert_eq!(refused.to_string(), expected);
    let opened = place.open().await;
    let version = opened.ledger.reads().ready().await.unwrap().schema_version;
    assert!(version >= 1);
    opened.close().await;
    place.try_open(false).await.unwrap().close().await;
}

async fn a_newer_schema_may_refuse_this_binary(place: Place) {
    place.open().await.close().await;
    // Additive migrations of a newer binary are no reason to refuse.
    place
        .sql(&["INSERT INTO _sqlx_migrations
                (version, description, success, checksum, execution_time)
             VALUES (9999, 'newer', true, '', 0)"])
        .await;
    place.open().await.close().await;
    place
        .sql(&["UPDATE meta SET value = '99.0.0' WHERE name = 'min_binary'"])
        .await;
    let refused = place.try_open(true).await.err().unwrap();
    let OpenError::Schema(SchemaError::BinaryTooOld { min_binary }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(min_binary, "99.0.0");
}

#[tokio::test]
async fn a_file_belongs_to_one_process() {
    let place = Place::sqlite();
    let opened = place.open().await;
    let refused = place.try_open(true).await.err().unwrap();
    assert!(refused.to_string().contains("ledger.db.lock"), "{refused}");
    assert!(matches!(refused, OpenError::File(FileError::Locked { .. })));
    // Nor may it be migrated beneath the process, nor reached by another name.
    assert!(Ledger::migrate_sqlite(&place.file()).await.is_err());
    let other_name = place.file().with_file_name("other.db");
    std::os::unix::fs::symlink(place.file(), &other_name).unwrap();
    assert!(Ledger::migrate_sqlite(&other_name).await.is_err());
    opened.close().await;
    place.open().await.close().await;
}

#[tokio::test]
async fn a_file_is_for_its_owners_eyes() {
    let place = Place::sqlite();
    let opened = place.open().await;
    issue(&opened.ledger, &vault_key(&[("usd", 1)])).await;
    for file in std::fs::read_dir(place.file().parent().unwrap()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.path());
    }
    opened.close().await;
}

#[tokio::test]
async fn a_ledger_in_memory_is_refused() {
    for name in ["", ":memory:", "file:x?mode=memory"] {
        let refused = Ledger::migrate_sqlite(Path::new(name)).await.unwrap_err();
        assert!(
            matches!(refused, OpenError::File(FileError::NotAFile(_))),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_refused_without_its_password() {
    let url = secrecy::SecretString::from("postgres://someone:hunter2@127.0.0.1:1/none");
    let refused = Ledger::migrate_postgres(&url).await.unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    let not_a_url = secrecy::SecretString::from("hunter2@here");
    let refused = Ledger::migrate_postgres(&not_a_url).await.unwrap_err();
    assert!(matches!(refused, OpenError::Url), "{refused}");
}
