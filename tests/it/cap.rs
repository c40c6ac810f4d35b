//! The cap: exact, under load and by hand, on both ledgers.

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::http::{Client, Reply};
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// A charge of `amount` for a customer of its own.
fn of<'a>(customer: &'a str, amount: i64, currency: &'a str) -> Charge<'a> {
    Charge {
        customer,
        amount,
        currency,
        ..Charge::default()
    }
}

/// A new total for the key's usd cap, with headroom 1.00 in these tests.
async fn set_total(world: &World, key: &VaultKey, expected_total: i64) {
    let path = format!("/v1/vault_keys/{}", key.id);
    let wish = json!({ "expected_total": expected_total, "currency": "usd", "reason": "test" });
    let changed = world.admin(Method::POST, &path, Some(wish)).await;
    changed.expect(200);
}

fn assert_capped(reply: Reply, status: u16) {
    let reply = reply.expect(status);
    assert_eq!(reply.code(), "spend_cap_reached");
    assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    assert_eq!(reply.json()["error"]["decline_code"], Value::Null);
    assert_eq!(reply.header("stripe-should-retry"), "false");
    assert!(reply.header("request-id").starts_with("req_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_200_parallel_charges_exactly_the_10_that_fit_reach_stripe() {
    for (kind, replicas) in [
        (LedgerKind::Sqlite, 1),
        (LedgerKind::Postgres, 1),
        (LedgerKind::Postgres, 2),
    ] {
        let world = World::start(kind, replicas, &[]).await;
        let key = world.issue(90_000, json!({})).await;
        let before = world.sandbox.requests_total();
        let mut charges = JoinSet::new();
        for index in 0..200 {
            let (client, secret) = (Client::http2(), key.secret.clone());
            let url = world.proxy_url(index % replicas);
            charges.spawn(async move {
                let customer = format!("cus_{index}");
                let charge = of(&customer, 9_900, "usd");
                try_charge(&client, &url, &secret, charge).await.unwrap()
            });
        }
        let mut made = 0;
        while let Some(reply) = charges.join_next().await {
            let reply = reply.unwrap();
            if reply.status.is_success() {
                made += 1;
            } else {
                assert_capped(reply, 402);
            }
        }
        assert_eq!(made, 10, "{kind:?} {replicas}");
        assert_eq!(world.made().len(), 10);
        assert_eq!(world.sandbox.requests_total() - before, 10);
        world.assert_balanced(&key).await;
        assert_eq!(world.cap(&key, "usd").await["remaining"], 0);
    }
}

/// Headroom makes 108 of 99, exactly and rounded down, whatever the currency's decimals.
#[tokio::test(flavor = "multi_thread")]
async fn the_boundary_is_exact_to_one_minor_unit_in_every_currency() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let totals = json!({ "usd": 99, "jpy": 99, "kwd": 99 });
        let wish = json!({ "expected_total": null, "currency": null, "expected_totals": totals });
        let key = world.issue(0, wish).await;
        for currency in ["usd", "jpy", "kwd"] {
            assert_eq!(world.cap(&key, currency).await["max_amount"], 108);
            let over = world.charge(&key, of("cus_over", 109, currency)).await;
            assert_capped(over, 402);
            // Each currency is a cap of its own: what was charged in the others does not count.
            let part = world.charge(&key, of("cus_part", 8, currency)).await;
            assert_eq!(part.expect(200).header("spendcap-remaining"), "100");
            let over_rest = world.charge(&key, of("cus_rest", 101, currency)).await;
            assert_capped(over_rest, 402);
            let rest = world.charge(&key, of("cus_rest", 100, currency)).await;
            assert_eq!(rest.expect(200).header("spendcap-remaining"), "0");
            let one_more = world.charge(&key, of("cus_more", 1, currency)).await;
            assert_capped(one_more, 402);
            let cap = world.cap(&key, currency).await;
            assert_eq!(
                (&cap["settled"], &cap["reserved"]),
                (&json!(108), &json!(0))
            );
        }
        assert_eq!(world.made().len(), 6);
        assert_eq!(world.taken(), 3 * 108);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_of_0_blocks_everything() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(0, json!({})).await;
        assert_capped(world.charge(&key, of("cus_1", 1, "usd")).await, 402);
        assert!(world.made().is_empty());
        assert!(world.reservations(&key).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_the_cap_is_raised_the_refused_idempotency_key_passes() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(9_899, json!({ "headroom": "1.00" })).await;
        let charge = Charge {
            idempotency_key: Some("bill-1"),
            ..Charge::default()
        };
        for _ in 0..2 {
            assert_capped(world.charge(&key, charge.clone()).await, 402);
        }
        set_total(&world, &key, 9_900).await;
        let made = world.charge(&key, charge.clone()).await.expect(200);
        assert_eq!(made.header("idempotent-replayed"), "");
        let [only] = world.made().try_into().unwrap();
        assert_eq!(only.idempotency_key.as_deref(), Some("bill-1"));
        world.charge(&key, charge).await.expect(200);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_lowered_below_usage_refuses_the_next_charge_and_changes_no_usage() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(20_000, json!({ "headroom": "1.00" })).await;
        let first = world
            .charge(&key, of("cus_1", 9_900, "usd"))
            .await
            .expect(200);
        set_total(&world, &key, 5_000).await;
        let cap = world.cap(&key, "usd").await;
        let shown = [&cap["max_amount"], &cap["settled"], &cap["remaining"]];
        assert_eq!(shown, [&json!(5_000), &json!(9_900), &json!(0)]);
        assert_capped(world.charge(&key, of("cus_2", 1, "usd")).await, 402);
        // What exists is still answered with what exists.
        let again = world
            .charge(&key, of("cus_1", 9_900, "usd"))
            .await
            .expect(200);
        assert_eq!(again.json()["id"], first.json()["id"]);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_currency_without_a_cap_is_refused_before_anything_is_sent() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let before = world.sandbox.requests_total();
        let refused = world
            .charge(&key, of("cus_1", 100, "eur"))
            .await
            .expect(400);
        assert_eq!(refused.code(), "currency_not_allowed");
        assert_eq!(refused.json()["error"]["param"], "currency");
        assert_eq!(world.sandbox.requests_total(), before);
        assert!(world.reservations(&key).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_charge_too_large_is_refused_with_the_keys_own_status() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for (status, period) in [(402, "2026-08"), (403, "2026-09")] {
            let wish = json!({ "max_charge": { "usd": 500 }, "refusal_status": status,
                "headroom": "1.00", "billing_period": period });
            let key = world.issue(700, wish).await;
            let refused = world.charge(&key, of("cus_1", 501, "usd")).await;
            assert_eq!(refused.expect(status).code(), "charge_limit_exceeded");
            world
                .charge(&key, of("cus_1", 500, "usd"))
                .await
                .expect(200);
            assert_capped(world.charge(&key, of("cus_2", 201, "usd")).await, status);
        }
        assert_eq!(world.made().len(), 2);
    }
}

/// A second vault key of the same period is no way around the slots: the customer is billed already.
#[tokio::test(flavor = "multi_thread")]
async fn two_vault_keys_of_one_period_share_their_slots_but_not_their_caps() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let one = world.issue(9_900, json!({ "headroom": "1.00" })).await;
        let two = world.issue(9_900, json!({ "headroom": "1.00" })).await;
        let other_job = world.issue(9_900, json!({ "namespace": "addons" })).await;
        let first = world
            .charge(&one, of("cus_1", 9_900, "usd"))
            .await
            .expect(200);
        let again = world
            .charge(&two, of("cus_1", 9_900, "usd"))
            .await
            .expect(200);
        assert_eq!(again.json()["id"], first.json()["id"]);
        assert_eq!(world.cap(&two, "usd").await["settled"], 0);
        assert_capped(world.charge(&one, of("cus_2", 9_900, "usd")).await, 402);
        world
            .charge(&two, of("cus_2", 9_900, "usd"))
            .await
            .expect(200);
        // Another billing job bills the same customers in the same period.
        world
            .charge(&other_job, of("cus_1", 9_900, "usd"))
            .await
            .expect(200);
        assert_eq!(world.made().len(), 3);
    }
}
