//! Whose a charge is that no reservation knows.

use http::Method;
use serde_json::{Value, json};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;

use super::{charge, long_ago, reconcile};
use crate::support::hold::note_lost_commits;
use crate::support::world::try_charge;
use crate::support::{LedgerKind, World};

/// A charge whose reservation is lost: to the ledger it is as if it was made past the proxy.
async fn lost_charge(world: &World, customer: &str, key: Option<&str>) {
    let stripe = world.sandbox.base_url();
    let made = try_charge(&world.client, &stripe, REAL_KEY, charge(customer, key)).await;
    made.unwrap().expect(200);
}

async fn audited(world: &World, action: &str) -> Vec<Value> {
    let log = world
        .admin(Method::GET, "/v1/audit_log?limit=100", None)
        .await;
    let entries = log.expect(200).json()["data"].as_array().unwrap().clone();
    entries
        .into_iter()
        .filter(|entry| entry["action"] == action)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_of_several_keys_is_the_operators_to_name_or_to_leave() {
    let world = World::on(LedgerKind::Sqlite).await;
    let one = world.issue(50_000, json!({})).await;
    let other = json!({"namespace": "other", "billing_period": "2026-09"});
    let other = world.issue(9_000, other).await;
    note_lost_commits(world.ledger_url()).await;
    lost_charge(&world, "cus_1", Some("lost-1")).await;
    lost_charge(&world, "cus_2", None).await;
    let since = long_ago(&world);

    let told = reconcile(&world, json!({"since": since}))
        .await
        .expect(200)
        .json();
    assert_eq!(told["status"], "unattributed", "{told}");
    assert_eq!(
        told["passed_over"], 1,
        "a charge without a key is nobody's here: {told}"
    );
    let candidates = told["unattributed"][0]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2, "{told}");
    let refused = world.charge(&one, charge("cus_3", None)).await.expect(503);
    assert_eq!(refused.code(), "ledger_lost_commits");

    let named = json!({"since": since, "vault_key": other.id});
    let ended = reconcile(&world, named).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["rebuilt"]),
        (&json!("ended"), &json!(1)),
        "{ended}"
    );
    // It is the whole cap: recorded all the same, and a repeat is answered with it.
    assert_eq!(world.cap(&other, "usd").await["settled"], 9_900);
    let repeat = world.charge(&other, charge("cus_1", Some("lost-1"))).await;
    let repeat = repeat.expect(200).json();
    assert_eq!(
        repeat["id"],
        world.sandbox.charges_of("cus_1")[0].id.as_str()
    );
    world.charge(&one, charge("cus_3", None)).await.expect(200);
    assert_eq!(audited(&world, "reservation.rebuild").await.len(), 1);
    assert_eq!(audited(&world, "ledger.reconcile").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_without_a_reservation_is_left_with_a_reason() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(50_000, json!({"currency": "eur"})).await;
    note_lost_commits(world.ledger_url()).await;
    lost_charge(&world, "cus_1", Some("lost-1")).await;
    let since = long_ago(&world);
    let without = json!({"since": since, "leave_unattributed": true});
    assert_eq!(
        reconcile(&world, without).await.expect(400).code(),
        "parameter_missing"
    );
    let leave = json!({"since": since, "leave_unattributed": true, "reason": "refunded"});
    let ended = reconcile(&world, leave).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["unattributed_count"]),
        (&json!("ended"), &json!(1))
    );
    let entries = audited(&world, "ledger.reconcile").await;
    assert_eq!(entries[0]["reason"], "refunded", "{entries:?}");
    let asked = crate::support::Charge {
        currency: "eur",
        ..charge("cus_2", None)
    };
    world.charge(&key, asked).await.expect(200);
}
