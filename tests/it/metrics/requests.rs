//! Every request is counted once, under what it was and what was decided.

use std::collections::BTreeMap;

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::LEDGERS;
use crate::support::http::Reply;
use crate::support::patience::{until, within};
use crate::support::raw::RawClient;
use crate::support::scrape::Scrape;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const MANY: i64 = 1_000_000;

/// What is not zero of the counters, each as `label label` and its number.
#[derive(PartialEq, Eq, Debug)]
struct Counted {
    requests: BTreeMap<String, i64>,
    refusals: BTreeMap<String, i64>,
    duplicates: BTreeMap<String, i64>,
    upstream: BTreeMap<String, i64>,
}

impl Counted {
    async fn by(world: &World) -> Self {
        let seen = Scrape::of(world, 0).await;
        let counted = Self {
            requests: seen.not_zero("spendcap_requests_total", &["operation", "decision"]),
            refusals: seen.not_zero("spendcap_refusals_total", &["code"]),
            duplicates: seen.not_zero("spendcap_duplicates_total", &["action"]),
            upstream: seen.not_zero(
                "spendcap_upstream_responses_total",
                &["operation", "status"],
            ),
        };
        let requests: i64 = counted.requests.values().sum();
        let timed = seen.sum("spendcap_overhead_seconds_count", &[]);
        assert_eq!(timed, requests, "each request is timed once");
        let answers: i64 = counted.upstream.values().sum();
        let timed = seen.sum("spendcap_upstream_seconds_count", &[]);
        assert_eq!(timed, answers, "each answer is timed once");
        counted
    }

    /// Besides the question at the start whose the real key is.
    fn of(
        requests: &[(&str, i64)],
        refusals: &[(&str, i64)],
        duplicates: &[(&str, i64)],
        upstream: &[(&str, i64)],
    ) -> Self {
        let owned = |pairs: &[(&str, i64)]| {
            let pairs = pairs.iter();
            pairs.map(|(name, n)| ((*name).to_owned(), *n)).collect()
        };
        let mut upstream: BTreeMap<String, i64> = owned(upstream);
        upstream.insert("other 2xx".to_owned(), 1);
        Self {
            requests: owned(requests),
            refusals: owned(refusals),
            duplicates: owned(duplicates),
            upstream,
        }
    }
}

async fn charge(world: &World, key: &VaultKey, name: &str, amount: i64) -> Reply {
    let charge = Charge {
        idempotency_key: Some(name),
        amount,
        ..Charge::default()
    };
    world.charge(key, charge).await
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_under_every_policy() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let policies = [
            json!({ "namespace": "replay" }),
            json!({ "namespace": "reject", "on_duplicate": "reject" }),
            json!({ "namespace": "flag", "on_duplicate": "flag" }),
            json!({ "namespace": "watch", "on_duplicate": "reject", "enforcement": "observe" }),
        ];
        let seconds = [200, 400, 200, 200];
        for (policy, second) in policies.into_iter().zip(seconds) {
            let name = policy["namespace"].as_str().unwrap().to_owned();
            let key = world.issue(MANY, policy).await;
            charge(&world, &key, &format!("{name}-1"), 9900)
                .await
                .expect(200);
            charge(&world, &key, &format!("{name}-2"), 9900)
                .await
                .expect(second);
            if name == "replay" {
                // The very same request, and one over another amount.
                charge(&world, &key, "replay-1", 9900).await.expect(200);
                charge(&world, &key, "replay-3", 5000).await.expect(200);
            }
        }
        assert_eq!(
            Counted::by(&world).await,
            Counted::of(
                &[
                    ("charges.create send", 7),
                    ("charges.create answer_with_existing", 2),
                    ("charges.create refuse", 1),
                ],
                &[("duplicate_customer_period", 1)],
                &[("replayed", 2), ("rejected", 1), ("passed", 3)],
                &[("charges.create 2xx", 7), ("read 2xx", 2)],
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stripe_answers_and_what_it_does_not() {
    let settings = [("SPENDCAP_PROXY_REPEAT_WAIT_MS", "50")];
    for ledger in LEDGERS {
        let world = World::start(ledger, 1, &settings).await;
        let key = world.issue(MANY, json!({})).await;
        world
            .sandbox
            .add_fault(Fault::new(FaultKind::Decline).once());
        charge(&world, &key, "declined", 9900).await.expect(402);
        let lost = Fault::new(FaultKind::CommitThenFin);
        world
            .sandbox
            .add_fault(lost.clone().method("POST").times(3));
        let lost_once = lost.method("POST").once();
        let lost = charge(&world, &key, "lost", 9900).await.expect(504);
        assert_eq!(lost.code(), "outcome_unknown");
        // Another body cannot be sent in its place; the same one can.
        let other = Charge {
            more: "&description=other",
            idempotency_key: Some("other"),
            ..Charge::default()
        };
        world.charge(&key, other).await.expect(409);
        charge(&world, &key, "lost", 9900).await.expect(200);
        // Sent twice for one request.
        world.sandbox.add_fault(lost_once);
        charge(&world, &key, "resent", 7000).await.expect(200);

        let at = Moment::BeforeCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
        world.sandbox.add_fault(gate);
        let first = charge(&world, &key, "slow", 5000);
        let second = async {
            within("a request at Stripe", world.sandbox.wait_until_held(1)).await;
            let early = charge(&world, &key, "slow", 5000).await.expect(409);
            assert_eq!(early.code(), "idempotency_key_in_use");
            let seen = Scrape::of(&world, 0).await;
            assert_eq!(seen.get("spendcap_requests_in_flight", &[]), 1);
            world.sandbox.release_gate();
        };
        let (first, ()) = tokio::join!(first, second);
        first.expect(200);
        assert_eq!(
            Counted::by(&world).await,
            Counted::of(
                &[("charges.create send", 5), ("charges.create refuse", 2)],
                &[("outcome_unknown", 2), ("idempotency_key_in_use", 1)],
                // The slow one and the one before are over other amounts than the lost one.
                &[("waited", 2), ("passed", 2)],
                &[
                    ("charges.create 2xx", 3),
                    ("charges.create 4xx", 1),
                    ("charges.create none", 4),
                ],
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_class_of_refusal() {
    let settings = [("SPENDCAP_PROXY_BODY_BYTES_MAX", "2000")];
    for ledger in LEDGERS {
        let world = World::start(ledger, 1, &settings).await;
        let more = json!({ "max_charge": { "usd": 20_000 }, "require_customer": true });
        let key = world.issue(30_000, more).await;
        let stranger = VaultKey {
            id: String::new(),
            secret: format!("{}x", key.secret),
        };
        charge(&world, &stranger, "a", 1).await.expect(401);
        world.get(&key, "/v1/refunds").await.expect(403);
        charge(&world, &key, "paid", 20_000).await.expect(200);
        charge(&world, &key, "paid", 10_000).await.expect(400);
        charge(&world, &key, "negative", -1).await.expect(400);
        charge(&world, &key, "large", 20_001).await.expect(402);
        charge(&world, &key, "over", 15_000).await.expect(402);
        for (refused, status) in [
            (with(|charge| charge.currency = "eur"), 400),
            (with(|charge| charge.customer = ""), 400),
            (with(|charge| charge.more = "&nonsense=1"), 400),
            (
                with(|charge| charge.headers = vec![("stripe-account", "acct_2")]),
                403,
            ),
        ] {
            world.charge(&key, refused).await.expect(status);
        }
        let long = format!("&description={}", "x".repeat(2000));
        world
            .charge(&key, with(|charge| charge.more = &long))
            .await
            .expect(413);
        let revoke = format!("/v1/vault_keys/{}/revoke", key.id);
        let why = Some(json!({ "reason": "the run is over" }));
        world.admin(Method::POST, &revoke, why).await.expect(200);
        charge(&world, &key, "revoked", 1).await.expect(401);
        let counted = Counted::by(&world).await;
        let revoked = counted.refusals.get("vault_key_revoked").copied();
        assert_eq!(revoked, Some(1), "{counted:?}");
        let refusals: i64 = counted.refusals.values().sum();
        let mut requests = counted.requests.clone();
        assert_eq!(requests.remove("charges.create send"), Some(1));
        assert_eq!(requests.values().sum::<i64>(), refusals, "{counted:?}");
        assert_eq!(refusals, 12);
        for code in [
            "vault_key_invalid",
            "operation_not_permitted",
            "idempotency_error",
            "parameter_invalid_integer",
            "charge_limit_exceeded",
            "spend_cap_reached",
            "currency_not_allowed",
            "customer_required",
            "parameter_unknown",
            "account_not_permitted",
            "request_too_large",
        ] {
            assert_eq!(counted.refusals.get(code), Some(&1), "{code} {counted:?}");
        }
    }
}

fn with<'a>(alter: impl FnOnce(&mut Charge<'a>)) -> Charge<'a> {
    let mut charge = Charge::default();
    alter(&mut charge);
    charge
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_captures_and_the_key_itself() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let key = world.issue(MANY, json!({})).await;
        let authorised = with(|charge| charge.more = "&capture=false");
        let charge = world.charge(&key, authorised).await.expect(200).json();
        let path = format!("/v1/charges/{}", charge["id"].as_str().unwrap());
        let capture = capture(&world, &key, &format!("{path}/capture")).await;
        capture.expect(200);
        let missing = "/v1/charges/ch_missing/capture";
        let refused = self::capture(&world, &key, missing).await.expect(404);
        assert_eq!(refused.code(), "resource_missing");
        world.get(&key, &path).await.expect(200);
        world.get(&key, "/v1/charges/ch_missing").await.expect(404);
        world.get(&key, "/spendcap/v1/key").await.expect(200);
        assert_eq!(
            Counted::by(&world).await,
            Counted::of(
                &[
                    ("charges.create send", 1),
                    ("charges.capture send", 1),
                    ("charges.capture refuse", 1),
                    ("read pass", 2),
                    ("other pass", 1),
                ],
                &[("resource_missing", 1)],
                &[],
                &[
                    ("charges.create 2xx", 1),
                    ("charges.capture 2xx", 1),
                    ("read 2xx", 1),
                    // The capture's charge was looked for.
                    ("read 4xx", 2),
                ],
            )
        );
    }
}

async fn capture(world: &World, key: &VaultKey, path: &str) -> Reply {
    let bearer = format!("Bearer {}", key.secret);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let url = format!("{}{path}", world.proxy_url(0));
    world.client.send(Method::POST, &url, &headers, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hung_up_and_one_too_many() {
    let settings = [("SPENDCAP_PROXY_IN_FLIGHT_MAX", "1")];
    for ledger in LEDGERS {
        let world = World::start(ledger, 1, &settings).await;
        let key = world.issue(MANY, json!({})).await;
        let at = Moment::BeforeCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
        world.sandbox.add_fault(gate);
        let address = world.apps[0].proxy_addr();
        let client = RawClient::charge(address, &key, &Charge::default()).await;
        within("a request at Stripe", world.sandbox.wait_until_held(1)).await;
        client.reset();
        let refused = charge(&world, &key, "second", 9900).await.expect(503);
        assert_eq!(refused.code(), "overloaded");
        world.sandbox.release_gate();
        until("the first is settled", async || {
            let rows = world.reservations(&key).await;
            (rows[0]["state"] == "settled").then_some(())
        })
        .await;
        Scrape::until(&world, "nothing is in flight", |seen| {
            seen.get("spendcap_requests_in_flight", &[]) == 0
        })
        .await;
        assert_eq!(
            Counted::by(&world).await,
            Counted::of(
                &[("charges.create send", 1), ("other refuse", 1)],
                &[("overloaded", 1)],
                &[],
                &[("charges.create 2xx", 1)],
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_spendcap_adds_is_not_stripes_time() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(MANY, json!({})).await;
    let at = Moment::BeforeCommit;
    let slow = Fault::new(FaultKind::Slow { ms: 1_100, at });
    world.sandbox.add_fault(slow);
    charge(&world, &key, "first", 9900).await.expect(200);
    // The read of the charge that exists takes as long.
    charge(&world, &key, "second", 9900).await.expect(200);
    let seen = Scrape::of(&world, 0).await;
    let over_a_second = |name: &str, operation: &str| {
        let of = [("operation", operation)];
        let within = [("operation", operation), ("le", "1")];
        seen.get(&format!("{name}_count"), &of) - seen.get(&format!("{name}_bucket"), &within)
    };
    let stripe = "spendcap_upstream_seconds";
    assert_eq!(over_a_second(stripe, "charges.create"), 1);
    assert_eq!(over_a_second(stripe, "read"), 1);
    assert_eq!(
        over_a_second("spendcap_overhead_seconds", "charges.create"),
        0
    );
    let count = "spendcap_overhead_seconds_count";
    assert_eq!(seen.get(count, &[("operation", "charges.create")]), 2);
}
