//! Captures of charges that spendcap made: whole, in part, too much, again, and all at once.

use serde_json::json;
use tokio::task::JoinSet;

use super::{Capture, LEDGERS, WHOLE, authorise, books, captures_sent, part, state};
use crate::support::http::Client;
use crate::support::{LedgerKind, World};

#[tokio::test(flavor = "multi_thread")]
async fn an_authorisation_is_open_and_reserved_until_it_is_captured() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        assert_eq!(state(&world, &key).await, "open");
        assert_eq!(books(&world, &key).await, (10_000, 0));
        let captured = WHOLE.ask(&world, &key, &charge).await.expect(200);
        assert_eq!(captured.json()["amount_captured"], 10_000);
        assert_eq!(captured.header("spendcap-remaining"), "100000");
        assert_eq!(state(&world, &key).await, "settled");
        assert_eq!(books(&world, &key).await, (0, 10_000));
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_partial_capture_leaves_is_free_again() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        part(1).ask(&world, &key, &charge).await.expect(200);
        assert_eq!(books(&world, &key).await, (0, 1));
        world.assert_balanced(&key).await;
    }
}

/// More than was authorised needs room under the cap before Stripe is asked, and gives it back when
/// Stripe refuses.
#[tokio::test(flavor = "multi_thread")]
async fn a_capture_above_the_authorisation_reserves_the_difference() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(10_001, json!({ "headroom": "1.00" })).await;
        let charge = authorise(&world, &key).await;
        let capped = part(10_002).ask(&world, &key, &charge).await.expect(402);
        assert_eq!(capped.code(), "spend_cap_reached");
        assert_eq!(captures_sent(&world), 0);
        let refused = part(10_001).ask(&world, &key, &charge).await.expect(400);
        assert_eq!(refused.code(), "amount_too_large");
        assert_eq!(state(&world, &key).await, "open");
        assert_eq!(books(&world, &key).await, (10_000, 0));
        WHOLE.ask(&world, &key, &charge).await.expect(200);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_capture_meets_what_exists_and_never_stripe() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for (policy, fresh_same_amount) in [("replay", 200), ("reject", 400), ("flag", 400)] {
            let more = json!({ "on_duplicate": policy, "billing_period": policy });
            let key = world.issue(100_000, more).await;
            let charge = authorise(&world, &key).await;
            // Stripe knows a key in every period, so each policy has its own.
            let [one, two, three] = ["one", "two", "three"].map(|name| format!("{policy}-{name}"));
            let named = |key, amount| Capture {
                idempotency_key: Some(key),
                ..part(amount)
            };
            let first = named(&one, 6_000).ask(&world, &key, &charge).await;
            first.expect(200);
            let sent = captures_sent(&world);
            let same = named(&one, 6_000).ask(&world, &key, &charge).await;
            let same = same.expect(200);
            assert_eq!(same.header("idempotent-replayed"), "true");
            assert_eq!(same.json()["amount_captured"], 6_000);
            let fresh = named(&two, 6_000).ask(&world, &key, &charge).await;
            let fresh = fresh.expect(fresh_same_amount);
            if policy == "replay" {
                assert_eq!(fresh.json()["amount_captured"], 6_000);
            } else {
                assert_eq!(fresh.code(), "charge_already_captured");
            }
            assert_eq!(fresh.header("spendcap-flags"), "duplicate_operation");
            let other = named(&three, 5_000).ask(&world, &key, &charge).await;
            assert_eq!(other.expect(400).code(), "charge_already_captured");
            let reused = named(&one, 5_000).ask(&world, &key, &charge).await;
            let reused = reused.expect(400).json();
            assert_eq!(reused["error"]["type"], "idempotency_error");
            assert_eq!(captures_sent(&world), sent, "{policy}");
            assert_eq!(books(&world, &key).await, (0, 6_000));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_captures_on_two_replicas_take_the_money_once() {
    for (kind, replicas) in [(LedgerKind::Sqlite, 1), (LedgerKind::Postgres, 2)] {
        let world = World::start(kind, replicas, &[]).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        let mut race = JoinSet::new();
        let client = Client::new();
        for index in 0..20 {
            let (client, secret) = (client.clone(), key.secret.clone());
            let url = format!(
                "{}/v1/charges/{charge}/capture",
                world.proxy_url(index % replicas)
            );
            race.spawn(async move {
                let bearer = format!("Bearer {secret}");
                let fresh = format!("capture-{index}");
                let headers = [
                    ("authorization", bearer.as_str()),
                    ("idempotency-key", &fresh),
                ];
                client.send(http::Method::POST, &url, &headers, "").await
            });
        }
        while let Some(captured) = race.join_next().await {
            let captured = captured.unwrap().expect(200);
            assert_eq!(captured.json()["amount_captured"], 10_000);
        }
        assert_eq!(captures_sent(&world), 1);
        world.assert_balanced(&key).await;
    }
}
