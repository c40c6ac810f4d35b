//! `promtool` reads the alerts and Prometheus' settings, and plays the alerts' own tests.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::program::{RUN_MAX, Ran, run};
use crate::support::repository::{read, root};

/// The alerts of `grafana/alerts.yml`.
pub(super) const ALERTS: [&str; 7] = [
    "CapReached",
    "OverExpected",
    "LedgerDown",
    "DuplicatesPassed",
    "OldestHeld",
    "BreakerOpen",
    "UnreservedMoney",
];

#[tokio::test]
async fn the_alerts_and_the_settings_are_valid() {
    let rules = promtool("check rules", folder().join("alerts.yml")).await;
    let found = format!("{} rules found", ALERTS.len());
    assert!(rules.ok().stdout.contains(&found));
    let settings = promtool("check config", folder().join("prometheus.yml"));
    settings.await.ok();
}

#[tokio::test]
async fn each_alert_fires_when_it_should_and_else_stays_silent() {
    let tests = promtool("test rules", folder().join("alerts.test.yml"));
    tests.await.ok();
}

/// What parts the tests in `alerts.test.yml`.
const NEXT: &str = "\n  - name: ";

/// One alert, what is changed in `alerts.yml`, and into what.
const CHANGES: [(&str, &str, &str); 16] = [
    (
        "CapReached",
        ">= 0.99\n          and",
        ">= 1.01\n          and",
    ),
    (
        "CapReached",
        "code=\"spend_cap_reached\"}[10m]",
        "code!=\"\"}[10m]",
    ),
    ("CapReached", "offset 1h", "offset 2h"),
    ("CapReached", ") > max by", ") >= max by"),
    (
        "CapReached",
        "process_start_time_seconds < 600",
        "process_start_time_seconds < 0",
    ),
    ("OverExpected", "          unless\n", "          and\n"),
    (
        "OverExpected",
        "max by (vault_key, billing_period, currency) (\n            spendcap_settled_minor",
        "sum by (vault_key, billing_period, currency) (\n            spendcap_settled_minor",
    ),
    ("OverExpected", "        for: 2m\n", ""),
    (
        "LedgerDown",
        "min_over_time(spendcap_ledger_up[1m])",
        "spendcap_ledger_up",
    ),
    (
        "LedgerDown",
        "up{job=\"spendcap\"}[1m]) == 0",
        "up[1m]) < 0",
    ),
    (
        "LedgerDown",
        "absent(spendcap_ledger_up{job=\"spendcap\"})",
        "absent(up)",
    ),
    ("DuplicatesPassed", "{action=\"passed\"}[10m]", "[10m]"),
    ("OldestHeld", "> 3600", "> 7200"),
    (
        "BreakerOpen",
        "max_over_time(spendcap_breaker_open[1m])",
        "spendcap_breaker_open",
    ),
    (
        "UnreservedMoney",
        "double_charge|late_settlement|settled_above_reserved",
        ".+",
    ),
    ("UnreservedMoney", "max by (kind)", "sum by (kind)"),
];

/// The tests of the alerts mean something: an alert that does less, or more, is found out by its own.
#[tokio::test]
async fn an_alert_that_is_changed_fails_its_test() {
    let (rules, tests) = (read("grafana/alerts.yml"), read("grafana/alerts.test.yml"));
    let mut tests = tests.split(NEXT);
    let head = tests.next().unwrap();
    let tests: Vec<&str> = tests.collect();
    for (alert, from, to) in CHANGES {
        assert!(rules.contains(from), "{from}");
        let copy = TempDir::new().unwrap();
        let file = |name: &str| copy.path().join(name);
        std::fs::write(file("alerts.yml"), rules.replace(from, to)).unwrap();
        let own = tests.iter().filter(|test| test.starts_with(alert));
        let own: Vec<&str> = own.copied().collect();
        let own = own.join(NEXT);
        std::fs::write(file("alerts.test.yml"), format!("{head}{NEXT}{own}")).unwrap();
        let failed = promtool("test rules", file("alerts.test.yml")).await;
        assert!(!failed.status.success(), "{from} -> {to}: {failed:?}");
        let said = failed.stdout + &failed.stderr;
        assert!(said.contains("exp:"), "{from} -> {to}: {said}");
    }
}

/// `runbook_url` leads to a heading that exists, and nothing in the runbook is about an alert that does not.
#[test]
fn every_alert_has_its_place_in_the_runbook() {
    let rules = read("grafana/alerts.yml");
    let values = |key: &str| -> Vec<String> {
        let values = rules
            .lines()
            .filter_map(|line| line.trim().strip_prefix(key));
        values.map(|value| value.trim().to_owned()).collect()
    };
    let alerts = values("- alert:");
    assert_eq!(alerts, ALERTS);
    assert_eq!(
        values("runbook_url:"),
        ALERTS.map(|alert| format!("docs/runbook.md#{}", alert.to_lowercase()))
    );
    let severities = values("severity:");
    assert_eq!(severities.len(), ALERTS.len());
    let runbook = read("docs/runbook.md");
    let headings: Vec<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(headings, ALERTS);
    for (alert, severity) in ALERTS.iter().zip(severities) {
        let row = format!("| [{alert}](#{}) | {severity} |", alert.to_lowercase());
        assert!(runbook.contains(&row), "{row}");
    }
}

/// Runs two words of `promtool` on a file.
async fn promtool(what: &str, file: PathBuf) -> Ran {
    let mut promtool = Command::new("promtool");
    promtool.args(what.split(' ')).arg(file);
    run(promtool, RUN_MAX).await
}

/// Where the dashboard and the alerts are.
pub(super) fn folder() -> PathBuf {
    root().join("grafana")
}
