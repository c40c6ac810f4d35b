//! The ledger's gauges: the same on every replica, bounded, and right.

use std::time::Duration;

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::LEDGERS;
use crate::support::patience::within;
use crate::support::scrape::Scrape;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const AMOUNTS: [&str; 4] = [
    "spendcap_expected_total_minor",
    "spendcap_max_amount_minor",
    "spendcap_settled_minor",
    "spendcap_reserved_minor",
];

/// The lines of the ledger's gauges.
fn gauges(seen: &Scrape) -> Vec<&str> {
    let names = [
        "spendcap_flags_open",
        "spendcap_held_reservations",
        "spendcap_ledger_up",
    ];
    let ours = |line: &&str| {
        let mut names = AMOUNTS.iter().chain(&names);
        names.any(|name| line.starts_with(name))
    };
    seen.text.lines().filter(ours).collect()
}

fn of(key: &VaultKey) -> [(&str, &str); 3] {
    [
        ("vault_key", key.id.as_str()),
        ("billing_period", "2026-08"),
        ("currency", "usd"),
    ]
}

fn reserved(seen: &Scrape, key: &VaultKey, state: &str) -> i64 {
    let [key, period, currency] = of(key);
    seen.get(
        "spendcap_reserved_minor",
        &[key, period, currency, ("state", state)],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_stands_as_its_reservations_do() {
    for ledger in LEDGERS {
        // What is lost stays held until it is asked for again below.
        let settings = [("SPENDCAP_UPSTREAM_RESENDS_MAX", "0")];
        let world = World::start(ledger, 1, &settings).await;
        let key = world.issue(100_000, json!({})).await;
        let ask = |customer: &'static str, amount, more: &'static str| {
            let charge = Charge {
                customer,
                amount,
                more,
                ..Charge::default()
            };
            world.charge(&key, charge)
        };
        ask("cus_paid", 9900, "").await.expect(200);
        ask("cus_authorised", 2000, "&capture=false")
            .await
            .expect(200);
        let lost = Fault::new(FaultKind::CommitThenFin).method("POST").once();
        world.sandbox.add_fault(lost);
        ask("cus_lost", 300, "").await.expect(504);
        // An hour later the lost one is an hour old.
        world.clock.advance(Duration::from_hours(1));
        let at = Moment::BeforeCommit;
        let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
        world.sandbox.add_fault(gate);
        let scrape = async {
            within("a request at Stripe", world.sandbox.wait_until_held(1)).await;
            let seen = Scrape::of(&world, 0).await;
            world.sandbox.release_gate();
            seen
        };
        let (slow, seen) = tokio::join!(ask("cus_slow", 40, ""), scrape);
        slow.expect(200);
        assert_eq!(
            seen.get("spendcap_expected_total_minor", &of(&key)),
            100_000
        );
        assert_eq!(seen.get("spendcap_max_amount_minor", &of(&key)), 110_000);
        assert_eq!(seen.get("spendcap_settled_minor", &of(&key)), 9900);
        assert_eq!(reserved(&seen, &key, "in_flight"), 40);
        assert_eq!(reserved(&seen, &key, "open"), 2000);
        assert_eq!(reserved(&seen, &key, "held"), 300);
        assert_eq!(seen.get("spendcap_held_reservations", &[]), 1);
        let oldest = seen.get("spendcap_oldest_held_seconds", &[]);
        assert!((3600..3660).contains(&oldest), "{oldest}");
        // The issue, four reserves and three settles; the sweeps of every second are none of them.
        assert_eq!(seen.get("spendcap_ledger_commit_seconds_count", &[]), 8);

        ask("cus_paid", 9900, "").await.expect(200);
        ask("cus_lost", 300, "").await.expect(200);
        let seen = Scrape::until(&world, "it is settled", |seen| {
            seen.get("spendcap_settled_minor", &of(&key)) == 10_240
        })
        .await;
        assert_eq!(reserved(&seen, &key, "in_flight"), 0);
        assert_eq!(reserved(&seen, &key, "open"), 2000);
        assert_eq!(reserved(&seen, &key, "held"), 0);
        assert_eq!(seen.get("spendcap_held_reservations", &[]), 0);
        assert_eq!(seen.get("spendcap_oldest_held_seconds", &[]), 0);
        let flags = seen.not_zero("spendcap_flags_open", &["kind"]);
        assert_eq!(flags["idempotency_key_repeated"], 2, "{flags:?}");
        let commits = seen.get("spendcap_ledger_commit_seconds_count", &[]);
        let batches = "spendcap_ledger_batch_commands";
        assert_eq!(seen.get(&format!("{batches}_count"), &[]), commits);
        assert!(seen.get(&format!("{batches}_sum"), &[]) >= commits);
    }
}

/// Under an observing key every currency passes; what Stripe does not take leaves no series behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_make_series_of_currencies_in_which_nothing_moves() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let key = world.issue(0, json!({ "enforcement": "observe" })).await;
        let ask = |currency: &'static str, more: &'static str| {
            let charge = Charge {
                currency,
                more,
                ..Charge::default()
            };
            world.charge(&key, charge)
        };
        for currency in ["xaa", "xab", "xac"] {
            ask(currency, "&source=tok_chargeDeclined")
                .await
                .expect(402);
        }
        ask("eur", "").await.expect(200);
        let seen = Scrape::of(&world, 0).await;
        for name in &AMOUNTS[..3] {
            let currencies: Vec<_> = seen.all(name).map(|one| &one.labels["currency"]).collect();
            assert_eq!(currencies, ["eur"], "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn above_200_keys_the_oldest_are_summed_as_other() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let oldest = world.issue(100_000, json!({})).await;
        world.charge(&oldest, Charge::default()).await.expect(200);
        let revoked = world.issue(7, json!({ "namespace": "revoked" })).await;
        let mut keys = Vec::new();
        for number in 0..200 {
            let namespace = format!("job-{number}");
            keys.push(world.issue(1000, json!({ "namespace": namespace })).await);
        }
        let path = format!("/v1/vault_keys/{}/revoke", revoked.id);
        let why = Some(json!({ "reason": "over" }));
        world
            .admin(http::Method::POST, &path, why)
            .await
            .expect(200);
        let seen = Scrape::of(&world, 0).await;
        for name in &AMOUNTS[..3] {
            assert_eq!(seen.all(name).count(), 201, "{name}");
        }
        assert_eq!(seen.all("spendcap_reserved_minor").count(), 3 * 201);
        for key in &keys {
            assert_eq!(seen.get("spendcap_expected_total_minor", &of(key)), 1000);
        }
        let other = [
            ("vault_key", "other"),
            ("billing_period", "other"),
            ("currency", "usd"),
        ];
        assert_eq!(seen.get("spendcap_expected_total_minor", &other), 100_007);
        assert_eq!(seen.get("spendcap_max_amount_minor", &other), 110_007);
        assert_eq!(seen.get("spendcap_settled_minor", &other), 9900);
        assert_eq!(seen.sum("spendcap_expected_total_minor", &[]), 300_007);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_until_a_day_after_its_expiry_on_the_stores_clock() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let hour = 3600;
        let expires_at = world.clock.now().unix_seconds() + hour;
        let short = world.issue(1000, json!({ "expires_at": expires_at })).await;
        let long = world.issue(5000, json!({ "namespace": "long" })).await;
        let shown = |seen: &Scrape, key| {
            let name = "spendcap_expected_total_minor";
            seen.find(name, &of(key)).is_some()
        };
        world.clock.advance(Duration::from_mins(60 * 25 - 5));
        let seen = Scrape::of(&world, 0).await;
        assert!(shown(&seen, &short) && shown(&seen, &long));
        world.clock.advance(Duration::from_mins(10));
        let seen = Scrape::until(&world, "it is dropped", |seen| !shown(seen, &short)).await;
        assert!(shown(&seen, &long));
        assert_eq!(seen.sum("spendcap_expected_total_minor", &[]), 5000);
        let other = [("vault_key", "other")];
        assert_eq!(seen.find("spendcap_expected_total_minor", &other), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_tell_the_same_of_the_ledger_and_each_its_own() {
    let world = World::start(LedgerKind::Postgres, 2, &[]).await;
    let key = world.issue(100_000, json!({})).await;
    for replica in [0, 1] {
        let charge = Charge {
            idempotency_key: Some(["first", "second"][replica]),
            ..Charge::default()
        };
        let charged = world.try_charge(replica, &key, charge).await.unwrap();
        charged.expect(200);
    }
    let (one, two) = tokio::join!(Scrape::of(&world, 0), Scrape::of(&world, 1));
    assert_eq!(gauges(&one), gauges(&two));
    assert_eq!(one.get("spendcap_settled_minor", &of(&key)), 9900);
    let decisions = |seen: &Scrape| {
        seen.not_zero("spendcap_requests_total", &["decision"])
            .into_keys()
            .collect::<Vec<_>>()
    };
    assert_eq!(decisions(&one), ["send"]);
    assert_eq!(decisions(&two), ["answer_with_existing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_number_of_caps_overflows_their_sum() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let huge = 8_000_000_000_000_000_000_i64;
        for number in 0..3 {
            let more = json!({ "namespace": format!("huge-{number}"), "headroom": "1" });
            world.issue(huge, more).await;
        }
        let standing = world.apps[0].ledger().reads().standing(1).await.unwrap();
        let caps = standing.caps.iter();
        let caps = caps.map(|cap| (cap.key.is_some(), cap.max_amount.get()));
        let caps: std::collections::BTreeMap<_, _> = caps.collect();
        assert_eq!(caps[&true], huge);
        assert_eq!(caps[&false], i64::MAX, "{ledger:?}");
    }
}
