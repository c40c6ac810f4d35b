//! `spendcap migrate`: both ledgers, with settings and no secret.

use super::{spendcap, stderr, stdout};
use crate::support::postgres::fresh_database;

fn migrates(ledger_url: &str, shown: &str) {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("SPENDCAP_LEDGER_URL", ledger_url)];
    for _first_and_again in 0..2 {
        let output = spendcap(folder.path(), &["migrate"], &variables);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), format!("{shown} has schema version 2\n"));
    }
}

#[test]
fn a_sqlite_ledger_is_created_and_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("new.db").display());
    migrates(&url, &url);
}

#[tokio::test]
async fn a_postgres_ledger_is_migrated() {
    let url = fresh_database().await;
    let (_, shown) = url
        .rsplit_once('@')
        .unwrap_or_else(|| url.split_once("://").unwrap());
    migrates(&url, &format!("postgres://{shown}"));
}

#[test]
fn a_ledger_that_cannot_be_reached_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [(
        "SPENDCAP_LEDGER_URL",
        "postgres://user:hunter2@127.0.0.1:1/none",
    )];
    let output = spendcap(folder.path(), &["migrate"], &variables);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.starts_with("spendcap: postgres://127.0.0.1:1/none was not migrated: "),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");
}
