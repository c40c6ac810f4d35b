//! `enforcement = observe`: everything is forwarded, and what would have been refused is flagged.

use serde_json::{Value, json};

use super::{DUPLICATE, LEDGERS};
use crate::support::{Charge, World};

/// A wish for the key, the charge, and the flag it leaves.
fn would_refuse() -> Vec<(Value, Charge<'static>, &'static str)> {
    let base = Charge::default;
    let eur = Charge {
        currency: "eur",
        ..base()
    };
    let nobody = Charge {
        customer: "",
        more: "&source=tok_visa",
        ..base()
    };
    vec![
        (json!({}), base(), "would_refuse_spend_cap_reached"),
        (json!({}), eur, "would_refuse_currency_not_allowed"),
        (
            json!({ "max_charge": { "usd": 9_899 } }),
            base(),
            "would_refuse_charge_limit_exceeded",
        ),
        (
            json!({ "require_customer": true }),
            nobody,
            "would_refuse_customer_required",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_have_been_refused_is_forwarded_and_flagged() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for (number, (mut wish, charge, flag)) in would_refuse().into_iter().enumerate() {
            wish["enforcement"] = json!("observe");
            wish["billing_period"] = json!(format!("period-{number}"));
            let key = world.issue(100, wish).await;
            let made = world.charge(&key, charge).await.expect(200);
            let flags = made.header("spendcap-flags");
            assert!(
                flags.split(", ").any(|one| one == flag),
                "{kind:?} {flag}: {flags}"
            );
            assert_eq!(world.operator().flagged(&key, flag).await, 1);
            assert_eq!(world.made().len(), number + 1);
            let row = &world.reservations(&key).await[0];
            assert_eq!(
                (&row["state"], &row["amount_settled"]),
                (&json!("settled"), &json!(9_900))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_forwarded_and_flagged_as_one_that_would_have_been_stopped() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for policy in ["replay", "reject"] {
            let wish = json!({ "enforcement": "observe", "on_duplicate": policy,
                "billing_period": policy });
            let key = world.issue(100_000, wish).await;
            let keys = ["one", "two"].map(|name| format!("{policy}-{name}"));
            let charge = |key| Charge {
                idempotency_key: Some(key),
                ..Charge::default()
            };
            let first = world.charge(&key, charge(&keys[0])).await.expect(200);
            let second = world.charge(&key, charge(&keys[1])).await.expect(200);
            assert_ne!(first.json()["id"], second.json()["id"]);
            let flags = second.header("spendcap-flags");
            assert_eq!(flags, format!("{DUPLICATE}, would_stop_duplicate"));
            assert_eq!(world.cap(&key, "usd").await["settled"], 19_800);
            // A repeated key is still a repeat: Stripe itself would make no second charge of it.
            let again = world.charge(&key, charge(&keys[1])).await.expect(200);
            assert_eq!(again.json()["id"], second.json()["id"]);
        }
        assert_eq!(world.made().len(), 4);
    }
}
