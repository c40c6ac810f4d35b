//! Idempotency keys: given, repeated, reused, derived, and after a decline.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::LEDGERS;
use crate::support::{Charge, World};

/// The first 32 hex digits of SHA-256 over `cus_1:2026-08:default`; those below have `:1`,
/// `:amount=5000usd`, `:reference=addon` and `:account=acct_other` behind it.
const DERIVED: &str = "9bff9c6b4c8e54992852a1a878d3e657";
const DERIVED_AFTER_A_DECLINE: &str = "06f077bbd40af1aafdc2154aba33d7e6";
const DERIVED_FOR_5000: &str = "09dee6db55532194df571c3c9985c1ad";
const DERIVED_WITH_REFERENCE: &str = "8ea534d46d9ecc25806f0ff9e721e0f4";
const DERIVED_ON_ACCOUNT: &str = "35b5e42d8aedad007767b8a95c6c967c";

fn named(key: &str) -> Charge<'_> {
    Charge {
        idempotency_key: Some(key),
        ..Charge::default()
    }
}

/// The keys of the charges that reached Stripe, in order.
fn keys_seen(world: &World) -> Vec<String> {
    let seen = world.sandbox.requests().into_iter();
    let posts = seen.filter(|one| one.method == "POST");
    posts.map(|one| one.idempotency_key.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gets_its_charge_under_every_policy() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for policy in ["replay", "reject", "flag"] {
            let wish = json!({ "on_duplicate": policy, "billing_period": policy });
            let key = world.issue(100_000, wish).await;
            let first = world.charge(&key, named(policy)).await.expect(200);
            for _ in 0..2 {
                let again = world.charge(&key, named(policy)).await.expect(200);
                super::assert_same(&again, &first, policy);
                assert_eq!(again.header("idempotency-key"), policy);
                assert_eq!(again.header("spendcap-flags"), "idempotency_key_repeated");
            }
            let operator = world.operator();
            let repeated = operator.flagged(&key, "idempotency_key_repeated").await;
            assert_eq!(repeated, 2);
        }
        assert_eq!(world.made().len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_other_parameters_is_refused_as_stripe_does_and_not_sent() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let same_period = world.issue(100_000, json!({})).await;
        world.charge(&key, named("bill")).await.expect(200);
        let sent = world.sandbox.requests_total();
        let others = [
            Charge {
                amount: 9_901,
                ..named("bill")
            },
            Charge {
                customer: "cus_2",
                ..named("bill")
            },
            Charge {
                more: "&description=x",
                ..named("bill")
            },
            Charge {
                headers: vec![("spendcap-reference", "x")],
                ..named("bill")
            },
        ];
        for vault_key in [&key, &same_period] {
            for other in others.clone() {
                let refused = world.charge(vault_key, other).await.expect(400);
                let error = &refused.json()["error"];
                assert_eq!(error["type"], "idempotency_error");
                assert_eq!(error["code"], json!(null), "Stripe names none");
                assert_eq!(refused.header("spendcap-flags"), "idempotency_key_reused");
            }
        }
        let reused = world
            .operator()
            .flagged(&key, "idempotency_key_reused")
            .await;
        assert_eq!(reused, 8);
        assert_eq!(world.sandbox.requests_total(), sent);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_keys_is_given_the_slots_content_hash() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world
            .issue(100_000, json!({ "accounts": ["acct_other"] }))
            .await;
        let first = world.charge(&key, Charge::default()).await.expect(200);
        let again = world.charge(&key, Charge::default()).await.expect(200);
        super::assert_same(&again, &first, "again");
        let others = [
            Charge {
                amount: 5_000,
                ..Charge::default()
            },
            Charge {
                headers: vec![("spendcap-reference", "addon")],
                ..Charge::default()
            },
            Charge {
                headers: vec![("stripe-account", "acct_other")],
                ..Charge::default()
            },
        ];
        for other in others {
            let made = world.charge(&key, other.clone()).await.expect(200);
            let again = world.charge(&key, other).await.expect(200);
            super::assert_same(&again, &made, "again");
        }
        let expected = [
            DERIVED,
            DERIVED_FOR_5000,
            DERIVED_WITH_REFERENCE,
            DERIVED_ON_ACCOUNT,
        ];
        assert_eq!(keys_seen(&world), expected);
        assert_eq!(world.made().len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decline_frees_the_slot_and_a_derived_key_moves_on() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world
            .issue(100_000, json!({ "on_duplicate": "reject" }))
            .await;
        world
            .sandbox
            .add_fault(Fault::new(FaultKind::Decline).method("POST").times(1));
        let declined = world.charge(&key, Charge::default()).await.expect(402);
        assert_eq!(declined.code(), "card_declined");
        assert_eq!(declined.json()["error"]["type"], "card_error");
        assert_eq!(world.cap(&key, "usd").await["reserved"], 0);
        // Under the same key Stripe would replay the decline.
        world.charge(&key, Charge::default()).await.expect(200);
        world.charge(&key, Charge::default()).await.expect(200);
        assert_eq!(keys_seen(&world), [DERIVED, DERIVED_AFTER_A_DECLINE]);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_key_that_was_declined_stays_declined_and_a_fresh_one_is_charged() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        world
            .sandbox
            .add_fault(Fault::new(FaultKind::Decline).method("POST").times(1));
        world.charge(&key, named("one")).await.expect(402);
        let replayed = world.charge(&key, named("one")).await.expect(402);
        assert_eq!(replayed.header("idempotent-replayed"), "true");
        assert_eq!(world.cap(&key, "usd").await["reserved"], 0);
        let other = Charge {
            amount: 9_901,
            ..named("one")
        };
        let refused = world.charge(&key, other).await.expect(400);
        assert_eq!(refused.json()["error"]["type"], "idempotency_error");
        world.charge(&key, named("two")).await.expect(200);
        assert_eq!(keys_seen(&world), ["one", "one", "two"]);
        world.assert_balanced(&key).await;
    }
}

/// Stripe knows a key for 24 hours in every period; the charge it replays is another reservation's.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_last_period_is_no_charge_of_this_one() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let august = world.issue(100_000, json!({})).await;
        let september = world
            .issue(100_000, json!({ "billing_period": "2026-09" }))
            .await;
        let first = world.charge(&august, named("bill")).await.expect(200);
        let replayed = world.charge(&september, named("bill")).await.expect(200);
        super::assert_same(&replayed, &first, "the charge of August");
        assert_eq!(replayed.header("spendcap-flags"), "foreign_replay");
        assert_eq!(world.cap(&september, "usd").await["settled"], 0);
        assert_eq!(world.cap(&september, "usd").await["reserved"], 0);
        world.charge(&september, named("bill-09")).await.expect(200);
        assert_eq!(world.made().len(), 2);
        assert_eq!(world.cap(&august, "usd").await["settled"], 9_900);
        assert_eq!(world.cap(&september, "usd").await["settled"], 9_900);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_has_no_time_to_wait_is_told_to_come_back() {
    for kind in LEDGERS {
        let world = World::start(kind, 1, &[("SPENDCAP_PROXY_REPEAT_WAIT_MS", "0")]).await;
        let key = world.issue(100_000, json!({})).await;
        let gate = FaultKind::Gate {
            at: Moment::AfterCommit,
        };
        world.sandbox.add_fault(Fault::new(gate).method("POST"));
        let second = async {
            world.sandbox.wait_until_held(1).await;
            for (again, flag) in [
                ("one", "idempotency_key_repeated"),
                ("two", "duplicate_customer_period"),
            ] {
                let busy = world.charge(&key, named(again)).await.expect(409);
                assert_eq!(busy.code(), "idempotency_key_in_use");
                assert_eq!(busy.header("stripe-should-retry"), "true");
                assert_eq!(busy.header("spendcap-flags"), flag);
            }
            world.sandbox.release_gate();
        };
        let (first, ()) = tokio::join!(world.charge(&key, named("one")), second);
        first.expect(200);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

/// The charge exists and cannot be read now: an error, never a second POST.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_cannot_be_read_is_502() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        world.charge(&key, named("one")).await.expect(200);
        for fault in [
            FaultKind::Status503,
            FaultKind::ResetBeforeCommit,
            FaultKind::RateLimit429,
            FaultKind::TruncateBody,
        ] {
            let fault = Fault::new(fault).method("GET").path_prefix("/v1/charges/");
            world.sandbox.add_fault(fault.times(2));
            for again in ["one", "two"] {
                world.charge(&key, named(again)).await.expect(502);
            }
        }
        world.charge(&key, named("two")).await.expect(200);
        assert_eq!(keys_seen(&world), ["one"]);
        world.assert_balanced(&key).await;
    }
}
