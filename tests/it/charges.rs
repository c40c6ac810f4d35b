//! One charge at a time through the whole proxy, on both ledgers.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};

use crate::support::{Charge, LedgerKind, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_made_once_and_a_fresh_key_gets_the_same_charge() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let first = Charge {
            idempotency_key: Some("first"),
            ..Charge::default()
        };
        let first = world.charge(&key, first).await.expect(200);
        assert_eq!(first.json()["object"], "charge");
        assert_eq!(
            first.header("spendcap-remaining"),
            (110_000 - 9_900).to_string()
        );
        let again = Charge {
            idempotency_key: Some("fresh"),
            ..Charge::default()
        };
        let again = world.charge(&key, again).await.expect(200);
        assert_eq!(again.json()["id"], first.json()["id"]);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.header("spendcap-flags"), "duplicate_customer_period");
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_refuses_with_402_and_reserves_nothing() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(9_000, json!({})).await;
        let charge = Charge {
            amount: 9_901,
            ..Charge::default()
        };
        let refused = world.charge(&key, charge).await.expect(402);
        assert_eq!(refused.code(), "spend_cap_reached");
        assert_eq!(refused.header("stripe-should-retry"), "false");
        world
            .charge(
                &key,
                Charge {
                    amount: 9_900,
                    ..Charge::default()
                },
            )
            .await
            .expect(200);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_held_and_a_repeat_settles_it() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        world
            .sandbox
            .add_fault(Fault::new(FaultKind::CommitThenRst).method("POST"));
        let charge = Charge {
            idempotency_key: Some("k"),
            ..Charge::default()
        };
        let lost = world.charge(&key, charge.clone()).await.expect(504);
        assert_eq!(lost.code(), "outcome_unknown");
        world.pass_deadlines().await;
        assert_eq!(world.reservations(&key).await[0]["state"], "held");
        world.sandbox.clear_faults();
        let charge_again = world.charge(&key, charge).await.expect(200);
        assert_eq!(charge_again.json()["id"], world.made()[0].id.as_str());
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permitted_read_passes_and_another_is_403() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let made = world
            .charge(&key, Charge::default())
            .await
            .expect(200)
            .json();
        let path = format!("/v1/charges/{}", made["id"].as_str().unwrap());
        assert_eq!(
            world.get(&key, &path).await.expect(200).json()["id"],
            made["id"]
        );
        let refused = world.get(&key, "/v1/events").await.expect(403);
        assert_eq!(refused.code(), "operation_not_permitted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_named_or_not_is_one_account_to_stripe() {
    // The second send is the client's own.
    let settings = [("SPENDCAP_UPSTREAM_RESENDS_MAX", "0")];
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(100_000, json!({})).await;
    let fault = Fault::new(FaultKind::CommitThenFin).method("POST").once();
    world.sandbox.add_fault(fault);
    let charge = Charge {
        idempotency_key: Some("k"),
        ..Charge::default()
    };
    world.charge(&key, charge.clone()).await.expect(504);
    let named = Charge {
        headers: vec![
            ("stripe-account", "acct_1SpendcapSandbox"),
            ("stripe-context", "acct_1SpendcapSandbox"),
        ],
        ..charge
    };
    world.charge(&key, named).await.expect(200);
    // Stripe keeps keys by account: under another name the second send would be another request.
    let sends = world.sandbox.requests();
    let sends: Vec<_> = sends.iter().filter(|seen| seen.method == "POST").collect();
    assert_eq!(sends.len(), 2);
    for send in sends {
        assert_eq!(send.header("stripe-account"), None);
        assert_eq!(send.header("stripe-context"), None);
    }
    assert_eq!(world.made().len(), 1);
    world.assert_balanced(&key).await;
}
