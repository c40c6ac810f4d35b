//! What dashboards and alerts rely on: names, labels, zeros, and the format itself.

use std::collections::BTreeSet;
use std::process::Command;

use http::Method;
use serde_json::json;
use spendcap::domain::flag::FlagKind;
use spendcap::domain::operation::MoneyOperation;
use spendcap::stripe::envelope;

use super::LEDGERS;
use crate::support::program::{RUN_MAX, run_on};
use crate::support::raw::exchange;
use crate::support::scrape::Scrape;
use crate::support::{Charge, LedgerKind, World};

/// Every metric of ours by kind; a histogram is read by its count.
const METRICS: &[(&str, &str)] = &[
    ("spendcap_breaker_open", "gauge"),
    ("spendcap_build_info", "gauge"),
    ("spendcap_duplicates_total", "counter"),
    ("spendcap_expected_total_minor", "gauge"),
    ("spendcap_feed_lag_seconds", "gauge"),
    ("spendcap_flags_open", "gauge"),
    ("spendcap_held_reservations", "gauge"),
    ("spendcap_ledger_batch_commands", "histogram"),
    ("spendcap_ledger_commit_seconds", "histogram"),
    ("spendcap_ledger_queue_depth", "gauge"),
    ("spendcap_ledger_up", "gauge"),
    ("spendcap_max_amount_minor", "gauge"),
    ("spendcap_oldest_held_seconds", "gauge"),
    ("spendcap_overhead_seconds", "histogram"),
    ("spendcap_reconcile_forbidden", "gauge"),
    ("spendcap_reconciled_total", "counter"),
    ("spendcap_refusals_total", "counter"),
    ("spendcap_requests_in_flight", "gauge"),
    ("spendcap_requests_total", "counter"),
    ("spendcap_reserved_minor", "gauge"),
    ("spendcap_settled_minor", "gauge"),
    ("spendcap_upstream_responses_total", "counter"),
    ("spendcap_upstream_seconds", "histogram"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_names_and_kinds_are_these_and_no_others() {
    let world = World::on(LedgerKind::Sqlite).await;
    world.issue(30_000, json!({})).await;
    let seen = Scrape::of(&world, 0).await;
    let kinds = seen.text.lines().filter_map(|line| {
        let line = line.strip_prefix("# TYPE spendcap_")?;
        Some(format!("spendcap_{line}"))
    });
    let wanted = METRICS.iter().map(|(name, kind)| format!("{name} {kind}"));
    assert_eq!(
        kinds.collect::<BTreeSet<_>>(),
        wanted.collect::<BTreeSet<_>>()
    );
    let build = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(seen.get("spendcap_build_info", &build), 1);
    assert!(seen.get("process_resident_memory_bytes", &[]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_known_label_value_is_there_at_zero_before_anything_happens() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let seen = Scrape::of(&world, 0).await;
        let operations = MoneyOperation::ALL.map(MoneyOperation::as_str);
        let operations: Vec<&str> = operations.into_iter().chain(["read", "other"]).collect();
        let decisions = ["send", "answer_with_existing", "pass", "refuse"];
        let statuses = ["2xx", "3xx", "4xx", "5xx", "none", "unreachable"];
        for operation in &operations {
            for decision in decisions {
                let labels = [("operation", *operation), ("decision", decision)];
                assert_eq!(seen.get("spendcap_requests_total", &labels), 0);
            }
            for status in statuses {
                let labels = [("operation", *operation), ("status", status)];
                // At its start spendcap asks whose the real key is.
                let asked = i64::from(labels == [("operation", "other"), ("status", "2xx")]);
                let answers = seen.get("spendcap_upstream_responses_total", &labels);
                assert_eq!(answers, asked, "{labels:?}");
            }
            let labels = [("operation", *operation)];
            assert_eq!(seen.get("spendcap_overhead_seconds_count", &labels), 0);
            seen.get("spendcap_upstream_seconds_count", &labels);
        }
        assert_eq!(seen.all("spendcap_requests_total").count(), 16);
        assert_eq!(seen.all("spendcap_upstream_responses_total").count(), 24);
        for code in envelope::codes() {
            assert_eq!(seen.get("spendcap_refusals_total", &[("code", code)]), 0);
        }
        assert_eq!(
            seen.all("spendcap_refusals_total").count(),
            envelope::codes().count()
        );
        for action in ["replayed", "rejected", "passed", "waited"] {
            let labels = [("action", action)];
            assert_eq!(seen.get("spendcap_duplicates_total", &labels), 0);
        }
        for result in ["settled", "released", "open", "written_off"] {
            let labels = [("result", result)];
            assert_eq!(seen.get("spendcap_reconciled_total", &labels), 0);
        }
        for kind in FlagKind::ALL {
            let labels = [("kind", kind.as_str())];
            assert_eq!(seen.get("spendcap_flags_open", &labels), 0);
        }
        for (name, value) in [
            ("spendcap_held_reservations", 0),
            ("spendcap_oldest_held_seconds", 0),
            ("spendcap_ledger_up", 1),
            ("spendcap_ledger_queue_depth", 0),
            ("spendcap_ledger_commit_seconds_count", 0),
            ("spendcap_ledger_batch_commands_count", 0),
            ("spendcap_requests_in_flight", 0),
            ("spendcap_breaker_open", 0),
            ("spendcap_feed_lag_seconds", 0),
            ("spendcap_reconcile_forbidden", 0),
        ] {
            assert_eq!(seen.get(name, &[]), value, "{name}");
        }
        // There is no vault key yet.
        assert_eq!(seen.all("spendcap_settled_minor").count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_nothing_to_say() {
    for ledger in LEDGERS {
        let world = World::on(ledger).await;
        let empty = Scrape::of(&world, 0).await;
        check_metrics(&empty.text).await;
        let key = world.issue(30_000, json!({})).await;
        world.charge(&key, Charge::default()).await.expect(200);
        let filled = Scrape::until(&world, "the key shows", |seen| {
            seen.all("spendcap_settled_minor").count() == 1
        })
        .await;
        check_metrics(&filled.text).await;
    }
}

/// Runs `promtool check metrics`, which checks the format and the habits of names.
async fn check_metrics(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]);
    let checked = run_on(promtool, text.to_owned(), RUN_MAX).await.ok();
    assert_eq!(checked.stdout + &checked.stderr, "", "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_prometheus_text_for_everyone_and_only_read() {
    let world = World::on(LedgerKind::Sqlite).await;
    let address = world.apps[0].admin_addr();
    let request = "GET /metrics HTTP/1.1\r\nhost: spendcap\r\nconnection: close\r\n\r\n";
    let (status, answer) = exchange(address, request).await;
    assert_eq!(status, 200);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let content_type = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(head.to_lowercase().contains(content_type), "{head}");
    assert!(body.ends_with('\n') && body.contains("\n# TYPE spendcap_requests_total counter\n"));
    world
        .admin(Method::POST, "/metrics", None)
        .await
        .expect(405);
    let openapi = world.admin(Method::GET, "/openapi.json", None).await;
    let described = &openapi.json()["paths"]["/metrics"]["get"];
    assert_eq!(described["security"], json!([{}]), "it takes no token");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_customer_and_no_secret_is_told() {
    let world = World::on(LedgerKind::Sqlite).await;
    let more = json!({ "metadata": { "team": "metadata-of-the-key" } });
    let key = world.issue(30_000, more).await;
    let charge = Charge {
        customer: "cus_nobody_may_see",
        idempotency_key: Some("key_nobody_may_see"),
        more: "&description=text_nobody_may_see",
        headers: vec![("spendcap-reference", "reference_nobody_may_see")],
        ..Charge::default()
    };
    world.charge(&key, charge.clone()).await.expect(200);
    let path = "/v1/charges/ch_nobody_may_see";
    world.get(&key, path).await.expect(404);
    let refused = Charge {
        amount: 100_000,
        ..charge
    };
    world.charge(&key, refused).await.expect(400);
    let seen = Scrape::until(&world, "the charge shows", |seen| {
        seen.sum("spendcap_settled_minor", &[]) == 9900
    })
    .await;
    for secret in [
        "nobody_may_see",
        "metadata-of-the-key",
        key.secret.as_str(),
        "sk_vault",
        "sk_test",
        crate::support::operator::ADMIN_TOKEN,
    ] {
        assert!(!seen.text.contains(secret), "{secret}\n{}", seen.text);
    }
    assert!(seen.text.contains(&key.id));
}
