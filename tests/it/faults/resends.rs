//! Stripe's connection breaks before its answer is whole: the request is sent again under its key, a few
//! times, and every send is in the books (ADR 4).

mod refusals;
mod running;

use std::time::Duration;

use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind, Moment, SeenRequest};
use tokio::time::Instant;

use crate::support::http::Reply;
use crate::support::patience::within;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// Each way in which the connection may break, and whether the charge is made before.
const LOSSES: [(FaultKind, bool); 4] = [
    (FaultKind::ResetBeforeCommit, false),
    (FaultKind::CommitThenFin, true),
    (FaultKind::CommitThenRst, true),
    (FaultKind::TruncateBody, true),
];

/// The first send, and the default of `upstream.resends_max`.
const SENDS_MAX: u32 = 1 + 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let key = world.issue(1_000_000, json!({})).await;
        for (loss, _) in LOSSES {
            for given in [true, false] {
                for times in 1..SENDS_MAX {
                    let customer = format!("cus_{loss:?}_{given}_{times}");
                    lose(&world, &customer, loss, Some(times));
                    let charged = ask(&world, &key, &customer, given).await.expect(200);
                    let made = world.sandbox.charges_of(&customer);
                    assert_eq!(made.len(), 1, "{customer}");
                    assert_eq!(charged.json()["id"], made[0].id, "{customer}");
                    assert_eq!(charged.header("spendcap-flags"), "", "{customer}");
                    let row = row_of(&world, &customer).await;
                    assert_eq!(stands(&row), says("settled", times + 1));
                    assert_sent(&world, &customer, times + 1);
                }
            }
        }
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_every_time_is_held() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let key = world.issue(1_000_000, json!({})).await;
        for (loss, charged) in LOSSES {
            let customer = format!("cus_{loss:?}");
            lose(&world, &customer, loss, None);
            let lost = ask(&world, &key, &customer, true).await.expect(504);
            assert_eq!(lost.code(), "outcome_unknown");
            assert_eq!(lost.header("stripe-should-retry"), "true");
            let row = row_of(&world, &customer).await;
            assert_eq!(stands(&row), says("held", SENDS_MAX));
            assert_eq!(row["amount_reserved"], 9_900);
            let made = world.sandbox.charges_of(&customer);
            assert_eq!(made.len(), usize::from(charged), "{customer}");
            world.sandbox.clear_faults();
            ask(&world, &key, &customer, true).await.expect(200);
            assert_eq!(world.sandbox.charges_of(&customer).len(), 1, "{customer}");
            assert_sent(&world, &customer, SENDS_MAX + 1);
        }
        world.assert_balanced(&key).await;
    }
}

/// Switched off, too late, or after the breaker has opened: it is held after the first send.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sent_again() {
    let hang = FaultKind::Hang {
        at: Moment::AfterCommit,
    };
    for (setting, fault) in [
        (
            ("SPENDCAP_UPSTREAM_RESENDS_MAX", "0"),
            FaultKind::CommitThenFin,
        ),
        (
            ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "1"),
            FaultKind::CommitThenFin,
        ),
        (("SPENDCAP_UPSTREAM_RESENDS_MAX", "3"), hang),
        (
            ("SPENDCAP_UPSTREAM_RESENDS_MAX", "3"),
            FaultKind::CommitThen503,
        ),
        (
            ("SPENDCAP_UPSTREAM_RESENDS_MAX", "3"),
            FaultKind::NonJson200,
        ),
    ] {
        let settings = [
            ("SPENDCAP_UPSTREAM_CONNECT_TIMEOUT_MS", "1000"),
            ("SPENDCAP_UPSTREAM_TIMEOUT_MS", "1000"),
            setting,
        ];
        let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
        let key = world.issue(100_000, json!({})).await;
        lose(&world, "cus_1", fault, Some(1));
        let lost = ask(&world, &key, "cus_1", true).await;
        assert!(lost.status.is_server_error(), "{setting:?} {}", lost.text);
        let row = row_of(&world, "cus_1").await;
        assert_eq!(stands(&row), says("held", 1), "{setting:?}");
        assert_sent(&world, "cus_1", 1);
    }
}

/// Three replicas at once: one of them lost the answer, and each ends with the charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_among_repeats() {
    for ledger in LEDGERS {
        for (loss, _) in LOSSES {
            let world = World::on(ledger).await;
            let key = world.issue(9_000, json!({})).await;
            lose(&world, "cus_1", loss, Some(1));
            let charge = |name| {
                let charge = Charge {
                    idempotency_key: Some(name),
                    ..Charge::default()
                };
                world.charge(&key, charge)
            };
            let (a, b, c) = tokio::join!(charge("a"), charge("b"), charge("c"));
            let made = world.made();
            assert_eq!(made.len(), 1, "{loss:?}");
            for answer in [a, b, c] {
                assert_eq!(answer.expect(200).json()["id"], made[0].id, "{loss:?}");
            }
            assert_sent(&world, "cus_1", 2);
            world.assert_balanced(&key).await;
        }
    }
}

/// The time of all sends is that of one answer, which is what a client waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_has_the_time_that_is_left() {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let settings = [
        ("SPENDCAP_UPSTREAM_CONNECT_TIMEOUT_MS", "4000"),
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", "4000"),
    ];
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(100_000, json!({})).await;
    let hang = FaultKind::Hang {
        at: Moment::AfterCommit,
    };
    lose(&world, "cus_1", hang, Some(2));
    let began = Instant::now();
    let half_time = async {
        within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
        tokio::time::sleep_until(began + TIMEOUT / 2).await;
        // Which closes the connection.
        world.sandbox.release_gate();
    };
    let (lost, ()) = tokio::join!(ask(&world, &key, "cus_1", true), half_time);
    let took = began.elapsed();
    assert_eq!(lost.expect(504).code(), "outcome_unknown");
    assert!(took < TIMEOUT + TIMEOUT / 2, "{took:?}");
    assert_eq!(stands(&row_of(&world, "cus_1").await), says("held", 2));
    ask(&world, &key, "cus_1", true).await.expect(200);
    assert_eq!(world.made().len(), 1);
    world.assert_balanced(&key).await;
}

fn lose(world: &World, customer: &str, loss: FaultKind, times: Option<u32>) {
    let mut fault = Fault::new(loss).method("POST").customer(customer);
    fault.times = times;
    world.sandbox.add_fault(fault);
}

async fn ask(world: &World, key: &VaultKey, customer: &str, given: bool) -> Reply {
    let name = format!("key-of-{customer}");
    let charge = Charge {
        customer,
        idempotency_key: given.then_some(&name),
        ..Charge::default()
    };
    world.charge(key, charge).await
}

async fn row_of(world: &World, customer: &str) -> Value {
    let filter = format!("customer={customer}");
    let mut rows = world.operator().reservations(&filter).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

fn stands(row: &Value) -> (Value, Value) {
    (row["state"].clone(), row["sends"].clone())
}

/// State and sends of a row.
fn says(state: &str, sends: u32) -> (Value, Value) {
    (state.into(), sends.into())
}

/// Stripe saw so many sends of this customer, all under one key.
#[track_caller]
fn assert_sent(world: &World, customer: &str, times: u32) {
    let sent = sent(world, customer);
    assert_eq!(sent.len(), usize::try_from(times).unwrap(), "{customer}");
    let key = |seen: &SeenRequest| seen.idempotency_key.clone().unwrap();
    assert!(sent.iter().all(|one| key(one) == key(&sent[0])), "{sent:?}");
}

fn sent(world: &World, customer: &str) -> Vec<SeenRequest> {
    let about = format!("customer={customer}");
    let mut seen = world.sandbox.requests();
    seen.retain(|one| one.method == "POST" && one.body.split('&').any(|field| field == about));
    seen
}
