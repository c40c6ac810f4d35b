//! Repeats long after: Stripe forgets keys after 24 hours, spendcap does not.

use std::time::Duration;

use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;

use super::LEDGERS;
use crate::support::world::try_charge;
use crate::support::{Charge, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_after_a_day_and_after_40_days_reads_and_never_charges() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let expires_at = world.clock.now().unix_seconds() + 60 * 86_400;
        let key = world
            .issue(100_000, json!({ "expires_at": expires_at }))
            .await;
        let charge = Charge {
            idempotency_key: Some("bill"),
            ..Charge::default()
        };
        let first = world.charge(&key, charge.clone()).await.expect(200);
        let keyless = Charge {
            customer: "cus_2",
            ..Charge::default()
        };
        let first_keyless = world.charge(&key, keyless.clone()).await.expect(200);
        for hours in [25, 39 * 24] {
            world.clock.advance(Duration::from_hours(hours));
            let again = world.charge(&key, charge.clone()).await.expect(200);
            super::assert_same(&again, &first, "the same key");
            let fresh = format!("fresh-{hours}");
            let fresh = Charge {
                idempotency_key: Some(&fresh),
                ..Charge::default()
            };
            super::assert_same(&world.charge(&key, fresh).await, &first, "a fresh key");
            let again = world.charge(&key, keyless.clone()).await.expect(200);
            super::assert_same(&again, &first_keyless, "no key");
        }
        let seen = world.sandbox.requests();
        assert_eq!(seen.iter().filter(|one| one.method == "POST").count(), 2);
        // Straight at Stripe the same key is a new charge by now.
        let stripe = world.sandbox.base_url();
        let charged = try_charge(&world.client, &stripe, REAL_KEY, charge).await;
        assert_ne!(
            charged.unwrap().expect(200).json()["id"],
            first.json()["id"]
        );
    }
}
