//! async-stripe, with each of its request strategies.

use std::process::Command;

use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind};

use crate::support::clients::installed;
use crate::support::program::{RUN_MAX, run_on};
use crate::support::{LedgerKind, VaultKey, World};

const LOSSES: [FaultKind; 6] = [
    FaultKind::CommitThenFin,
    FaultKind::CommitThen503,
    FaultKind::TruncateBody,
    FaultKind::ResetBeforeCommit,
    FaultKind::Html502,
    FaultKind::Conflict409,
];

async fn world(expected_total: i64) -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(expected_total, json!({})).await;
    (world, key)
}

/// Makes the calls in turn, with one program.
async fn make(world: &World, key: &VaultKey, strategy: &str, calls: &[Value]) -> Vec<Value> {
    let mut command = Command::new(installed("async-stripe").join("async-stripe-client"));
    command.arg(strategy);
    let mut input = String::new();
    for call in calls {
        let mut call = call.clone();
        call["base_url"] = world.proxy_url(0).into();
        call["api_key"] = key.secret.as_str().into();
        input.push_str(&call.to_string());
        input.push('\n');
    }
    let ran = run_on(command, input, RUN_MAX).await.ok();
    let read = |line| serde_json::from_str(line).unwrap();
    let records: Vec<Value> = ran.stdout.lines().map(read).collect();
    assert_eq!(records.len(), calls.len(), "{ran:?}");
    records
}

fn charge(customer: &str) -> Value {
    let params = json!({ "amount": 9900, "currency": "usd", "customer": customer });
    json!({ "call": "charges.create", "params": params })
}

/// The charge of `customer`, of which there is one.
#[track_caller]
fn only_charge(world: &World, customer: &str) -> String {
    let made = world.sandbox.charges_of(customer);
    assert_eq!(made.len(), 1, "{customer} {made:?}");
    made[0].id.clone()
}

fn lose_an_answer(world: &World, customer: &str, loss: FaultKind) {
    let fault = Fault::new(loss).method("POST").once();
    world.sandbox.add_fault(fault.customer(customer));
}

/// `Once`, the default: no key and no retry. The user sees the error, and calls again.
#[tokio::test(flavor = "multi_thread")]
async fn once_the_users_second_call_gets_the_charge() {
    let (world, key) = world(1_000_000).await;
    for (number, loss) in LOSSES.into_iter().enumerate() {
        let customer = format!("cus_{number}");
        lose_an_answer(&world, &customer, loss);
        let calls = [charge(&customer), charge(&customer)];
        let records = make(&world, &key, "once", &calls).await;
        let asked_again = [
            FaultKind::CommitThenFin,
            FaultKind::TruncateBody,
            FaultKind::ResetBeforeCommit,
        ];
        // What a broken connection lost spendcap asks for again itself.
        if asked_again.contains(&loss) {
            assert_eq!(records[0]["ids"][0], only_charge(&world, &customer));
        } else {
            assert!(records[0]["class"].is_string(), "{loss:?} {records:?}");
        }
        assert_eq!(records[1]["ids"][0], only_charge(&world, &customer));
    }
    world.assert_balanced(&key).await;
}

/// Its strategies that retry: one call is enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_that_retries_ends_with_the_charge() {
    let (world, key) = world(1_000_000).await;
    for strategy in ["retry", "backoff"] {
        let customer = |number: usize| format!("cus_{strategy}_{number}");
        let mut calls = Vec::new();
        for (number, loss) in LOSSES.into_iter().enumerate() {
            lose_an_answer(&world, &customer(number), loss);
            calls.push(charge(&customer(number)));
        }
        let records = make(&world, &key, strategy, &calls).await;
        for (number, record) in records.iter().enumerate() {
            let made = only_charge(&world, &customer(number));
            assert_eq!(record["ids"], json!([made]), "{strategy} {record}");
        }
    }
    world.assert_balanced(&key).await;
}

/// The code of docs/integrations/rust.md.
#[tokio::test(flavor = "multi_thread")]
async fn the_pages_code_bills_once_and_tells_the_cap_from_a_decline() {
    let (world, key) = world(18_000).await;
    let decline = Fault::new(FaultKind::Decline).method("POST").once();
    world.sandbox.add_fault(decline.customer("cus_poor"));
    let bill = |customer| json!({ "call": "bill", "customer": customer, "period": "2026-08" });
    let calls = ["cus_1", "cus_1", "cus_poor", "cus_2", "cus_3"].map(bill);
    let records = make(&world, &key, "once", &calls).await;
    let said: Vec<&Value> = records.iter().map(|record| &record["message"]).collect();
    assert_eq!(
        said,
        [
            "charged",
            "charged",
            "card declined",
            "charged",
            "cap reached"
        ]
    );
    assert_eq!(records[1]["ids"][0], only_charge(&world, "cus_1"));
    let sent_key = world.sandbox.charges_of("cus_1")[0].idempotency_key.clone();
    assert_eq!(sent_key.as_deref(), Some("bill-cus_1-2026-08"));
    assert_eq!(world.taken(), 2 * 9900);
    world.assert_balanced(&key).await;
}
