//! Captures of charges that something else made or changed: Stripe's Dashboard, another vault key.

use serde_json::json;

use super::{
    LEDGERS, WHOLE, authorise, authorise_past_the_proxy, books, captures_sent, part, refund, state,
};
use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_nobody_reserved_is_read_and_reserved_in_full() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(10_000, json!({ "headroom": "1.00" })).await;
        let first = authorise_past_the_proxy(&world).await;
        let second = authorise_past_the_proxy(&world).await;
        let captured = part(4_000).ask(&world, &key, &first).await.expect(200);
        assert_eq!(captured.json()["amount_captured"], 4_000);
        assert_eq!(books(&world, &key).await, (0, 4_000));
        // The rest of the cap does not hold the second one whole.
        let capped = WHOLE.ask(&world, &key, &second).await.expect(402);
        assert_eq!(capped.code(), "spend_cap_reached");
        part(6_000).ask(&world, &key, &second).await.expect(200);
        world.assert_balanced(&key).await;
        let row = &world.reservations(&key).await[0];
        assert_eq!(row["operation"], "charges.capture");
        assert_eq!(
            (&row["object_id"], &row["customer"]),
            (&json!(second), &json!("cus_1"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_captured_past_the_proxy_is_refused_as_stripe_does() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise_past_the_proxy(&world).await;
        let stripe = format!("{}/v1/charges/{charge}/capture", world.sandbox.base_url());
        let bearer = format!("Bearer {}", super::REAL_KEY);
        let headers = [("authorization", bearer.as_str())];
        let captured = world
            .client
            .send(http::Method::POST, &stripe, &headers, "")
            .await;
        captured.expect(200);
        let sent = captures_sent(&world);
        let refused = WHOLE.ask(&world, &key, &charge).await.expect(400);
        assert_eq!(refused.code(), "charge_already_captured");
        assert_eq!(captures_sent(&world), sent);
        assert_eq!(books(&world, &key).await, (0, 0));
        assert!(world.reservations(&key).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voided_charge_gives_its_reservation_back() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        refund(&world, &charge).await;
        let refused = WHOLE.ask(&world, &key, &charge).await.expect(400);
        assert_eq!(refused.code(), "charge_already_refunded");
        assert_eq!(state(&world, &key).await, "released");
        assert_eq!(books(&world, &key).await, (0, 0));
        assert_eq!(world.taken(), 0);
        // Asked once more, Stripe still refuses and nothing stays reserved.
        let again = WHOLE.ask(&world, &key, &charge).await;
        assert!(again.status.is_client_error(), "{}", again.text);
        assert_eq!(books(&world, &key).await, (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_does_not_exist_is_404_and_nothing_is_reserved() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let missing = WHOLE.ask(&world, &key, "ch_none").await.expect(404);
        assert_eq!(missing.code(), "resource_missing");
        assert_eq!(captures_sent(&world), 0);
        assert!(world.reservations(&key).await.is_empty());
    }
}

/// The authorisation is reserved under the key that made it, so the capture uses that one's cap.
#[tokio::test(flavor = "multi_thread")]
async fn another_vault_keys_capture_uses_the_cap_that_holds_the_authorisation() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let maker = world.issue(10_000, json!({ "headroom": "1.00" })).await;
        let other = world.issue(0, json!({ "headroom": "1.00" })).await;
        let charge = authorise(&world, &maker).await;
        let over = part(10_001).ask(&world, &other, &charge).await.expect(402);
        assert_eq!(over.code(), "spend_cap_reached");
        WHOLE.ask(&world, &other, &charge).await.expect(200);
        assert_eq!(books(&world, &maker).await, (0, 10_000));
        assert_eq!(books(&world, &other).await, (0, 0));
        world.assert_balanced(&maker).await;
    }
}
