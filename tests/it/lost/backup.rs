//! An old copy of a SQLite ledger in its place.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use spendcap::app::App;
use spendcap::config::{Environment, Settings};
use spendcap::ledger::Ledger;

use super::{assert_charged_once, charge, long_ago, reconcile, run_the_job_again};
use crate::support::hold::fold_log;
use crate::support::patience::until;
use crate::support::{LedgerKind, VaultKey, World};

const CUSTOMERS: u32 = 20;

async fn scene() -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(9_900 * i64::from(CUSTOMERS), json!({})).await;
    (world, key)
}

async fn charge_some(world: &World, key: &VaultKey, customers: std::ops::Range<u32>) {
    for n in customers {
        let (customer, own) = (format!("cus_{n}"), format!("first-{n}"));
        world
            .charge(key, charge(&customer, Some(&own)))
            .await
            .expect(200);
    }
}

fn ledger_of(world: &World) -> PathBuf {
    PathBuf::from(world.ledger_url().trim_start_matches("sqlite://"))
}

/// Ends the proxy and waits until all of its ledger is in one file, as it is when the process has ended.
async fn stop(world: &mut World) {
    world.apps.remove(0).stop().await.unwrap();
    let ledger = ledger_of(world);
    // Connections that close at the same moment leave the log to the next one that closes alone.
    until("SQLite's log is in the file", async || {
        fold_log(&ledger).await;
        (!ledger.with_extension("db-wal").exists()).then_some(())
    })
    .await;
}

/// Puts the copy in the ledger's place, as an operator would.
fn put_back(copy: &Path, ledger: &Path) {
    fs::remove_file(ledger).unwrap();
    fs::copy(copy, ledger).unwrap();
}

fn settings(world: &World) -> Settings {
    let environment: Environment = world.environment.iter().cloned().collect();
    Settings::load(None, &environment).unwrap()
}

/// Money is refused, Stripe's feed is read, and then the job is simply run again.
async fn recover(world: &World, key: &VaultKey) {
    let refused = world.charge(key, charge("cus_1", Some("again"))).await;
    assert_eq!(refused.expect(503).code(), "ledger_lost_commits");
    world.clock.advance(Duration::from_mins(10));
    let order = json!({"since": long_ago(world)});
    let ended = reconcile(world, order).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["rebuilt"]),
        (&json!("ended"), &json!(7)),
        "{ended}"
    );
    charge_some(world, key, 0..12).await;
    run_the_job_again(world, key, CUSTOMERS).await;
    assert_charged_once(world, CUSTOMERS);
    world.assert_balanced(key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_served_only_as_one_and_nobody_is_charged_twice() {
    let (mut world, key) = scene().await;
    let ledger = ledger_of(&world);
    let copy = ledger.with_extension("backup");
    charge_some(&world, &key, 0..5).await;
    Ledger::backup_sqlite(&ledger, &copy).await.unwrap();
    let twice = Ledger::backup_sqlite(&ledger, &copy).await.unwrap_err();
    assert!(twice.to_string().contains("overwrites nothing"), "{twice}");
    world.clock.advance(Duration::from_mins(30));
    charge_some(&world, &key, 5..12).await;
    stop(&mut world).await;
    put_back(&copy, &ledger);

    let refused = App::start(settings(&world), world.clock.clone())
        .await
        .unwrap_err();
    assert!(format!("{refused:#}").contains("--restored"), "{refused:#}");
    let app = App::start_restored(settings(&world), world.clock.clone()).await;
    world.apps.push(app.unwrap());
    recover(&world, &key).await;
    // Later starts are as any other.
    stop(&mut world).await;
    world.add_replica().await;
    world
        .charge(&key, charge("cus_1", Some("later")))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_is_noticed_without_being_told() {
    let (mut world, key) = scene().await;
    let ledger = ledger_of(&world);
    let copy = ledger.with_extension("copy");
    charge_some(&world, &key, 0..5).await;
    stop(&mut world).await;
    fs::copy(&ledger, &copy).unwrap();
    world.add_replica().await;
    charge_some(&world, &key, 5..12).await;
    stop(&mut world).await;
    put_back(&copy, &ledger);
    world.add_replica().await;
    recover(&world, &key).await;
    stop(&mut world).await;
    world.add_replica().await;
    world
        .charge(&key, charge("cus_1", Some("later")))
        .await
        .expect(200);
}
