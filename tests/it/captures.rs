//! Captures: of charges that spendcap made, and of ones that were authorised past it.

use hyper::Method;
use serde_json::{Value, json};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind};

use crate::support::http::Reply;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

const AUTHORISE: Charge<'_> = Charge {
    customer: "cus_1",
    amount: 10_000,
    currency: "usd",
    idempotency_key: None,
    more: "&capture=false",
    headers: Vec::new(),
};

async fn capture(world: &World, key: &VaultKey, charge: &Value, body: &'static str) -> Reply {
    let bearer = format!("Bearer {}", key.secret);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let id = charge["id"].as_str().unwrap();
    let url = format!("{}/v1/charges/{id}/capture", world.proxy_url(0));
    world.client.send(Method::POST, &url, &headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyless_capture_is_made_once_and_repeated_with_what_exists() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = world.charge(&key, AUTHORISE).await.expect(200).json();
        assert_eq!(world.cap(&key, "usd").await["reserved"], 10_000);
        let first = capture(&world, &key, &charge, "amount=6000")
            .await
            .expect(200);
        assert_eq!(first.json()["amount_captured"], 6_000);
        let again = capture(&world, &key, &charge, "amount=6000")
            .await
            .expect(200);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.json()["amount_captured"], 6_000);
        world.assert_balanced(&key).await;
    }
}

/// The first capture asked for a part and came to nothing; the next one asks for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_authorised_past_the_proxy_is_reserved_as_stripe_shows_it() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(9_000, json!({})).await;
        let stripe = world.sandbox.base_url();
        let made = try_charge(&world.client, &stripe, REAL_KEY, AUTHORISE).await;
        let charge = made.unwrap().expect(200).json();
        let limited = Fault::new(FaultKind::RateLimit429).method("POST").times(1);
        world.sandbox.add_fault(limited);
        capture(&world, &key, &charge, "amount=5000")
            .await
            .expect(429);
        let refused = capture(&world, &key, &charge, "").await.expect(402);
        assert_eq!(refused.code(), "spend_cap_reached");
        assert_eq!(
            world.taken(),
            0,
            "more than the cap would have been captured"
        );
        capture(&world, &key, &charge, "amount=9900")
            .await
            .expect(200);
        world.assert_balanced(&key).await;
    }
}
