//! Prometheus scrapes three replicas while a billing run plays, and answers every query of the dashboard.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::Value;

use super::dashboard::{Choice, Dashboard, Query};
use super::play::Play;
use super::prometheus::{Prometheus, RATE_INTERVAL, Series};
use super::rules::ALERTS;
use crate::support::operator::{Operator, VaultKey};
use crate::support::patience::until;
use crate::support::repository::read;

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_has_data_while_it_plays_and_its_numbers_are_the_admin_apis() {
    let mut play = Play::start().await;
    let prometheus = Prometheus::start(&play.targets()).await;
    prometheus.until_is("count(up == 1)", 3).await;
    play.go().await;

    let dashboard = Dashboard::load();
    variables_offer_what_there_is(&prometheus, &dashboard, &play).await;
    let everything = Choice::all("usd", RATE_INTERVAL);
    for query in dashboard.queries() {
        let expression = everything.fill(&query.expression);
        data_for(&prometheus, &query, &expression).await;
    }
    every_metric_is_exported(&play).await;
    cap_reached_fires(&prometheus, &play).await;

    play.end().await;
    let dashboard = Row1(&prometheus, &dashboard, &play.operator);
    dashboard.money(&play.replay, "2026-08", "usd").await;
    dashboard.money(&play.flag, "2026-08", "usd").await;
    dashboard.money(&play.other, "2026.09", "eur").await;
    dashboard.flags().await;
    dashboard.sums(&[&play.replay, &play.flag]).await;
    states(&prometheus).await;
}

/// The variables list the keys, periods and currencies that there are.
async fn variables_offer_what_there_is(
    prometheus: &Prometheus,
    dashboard: &Dashboard,
    play: &Play,
) {
    let mut choice = Choice::all("usd", RATE_INTERVAL);
    for (name, wanted) in [
        ("billing_period", vec!["2026-08", "2026.09"]),
        (
            "vault_key",
            vec![&play.replay.id, &play.flag.id, &play.other.id],
        ),
        ("currency", vec!["eur", "usd"]),
    ] {
        offers(prometheus, dashboard, &choice, name, &wanted).await;
    }
    // Each offers only what goes with the choice before it.
    choice.billing_periods = vec!["2026.09".to_owned()];
    offers(
        prometheus,
        dashboard,
        &choice,
        "vault_key",
        &[&play.other.id],
    )
    .await;
    choice.billing_periods.clear();
    choice.vault_keys = vec![play.replay.id.clone(), play.flag.id.clone()];
    offers(prometheus, dashboard, &choice, "currency", &["usd"]).await;
}

async fn offers(
    prometheus: &Prometheus,
    dashboard: &Dashboard,
    choice: &Choice,
    name: &str,
    wanted: &[&str],
) {
    let variables = dashboard.label_values();
    let (_, series, label) = variables.iter().find(|one| one.0 == name).unwrap();
    let path = format!("/api/v1/label/{label}/values");
    let series = choice.fill(series);
    let wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    until(&format!("{series} has the values {wanted:?}"), async || {
        let values = prometheus.ask(&path, &[("match[]", &series)]).await;
        let values = values.as_array().unwrap().iter();
        let values: BTreeSet<&str> = values.map(|value| value.as_str().unwrap()).collect();
        (values == wanted).then_some(())
    })
    .await;
}

/// Both ways of asking give series, and their newest values are numbers.
async fn data_for(prometheus: &Prometheus, query: &Query, expression: &str) -> Vec<Series> {
    let title = &query.asker;
    until(&format!("{title} has data: {expression}"), async || {
        let now = prometheus.now(expression).await;
        let lately = prometheus.lately(expression).await;
        let numbers =
            |series: &[Series]| !series.is_empty() && series.iter().all(Series::is_finite);
        (numbers(&now) && numbers(&lately)).then_some(now)
    })
    .await
}

/// A metric that is renamed would leave a panel empty and an alert silent for ever.
async fn every_metric_is_exported(play: &Play) {
    let mut exported = BTreeSet::new();
    let url = format!("{}/metrics", play.operator.admin_url);
    let page = play.operator.client.send(Method::GET, &url, &[], "").await;
    let page = page.expect(200).text;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        exported.insert(line.split(['{', ' ']).next().unwrap().to_owned());
    }
    for file in ["dashboards/spendcap.json", "alerts.yml", "alerts.test.yml"] {
        let text = read(&format!("grafana/{file}"));
        let names = metric_names(&text);
        assert!(names.len() > 5, "{file}: {names:?}");
        let missing: Vec<&String> = names.difference(&exported).collect();
        assert!(missing.is_empty(), "{file} names {missing:?}: {page}");
    }
}

/// Every word that looks like a metric of ours or of the process.
fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let ours = words.filter(|word| word.starts_with("spendcap_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

/// Prometheus took the alerts, and the one that this run is about fires and says for which key.
async fn cap_reached_fires(prometheus: &Prometheus, play: &Play) {
    let firing = until("CapReached fires", async || {
        let data = prometheus.ask("/api/v1/alerts", &[]).await;
        let alerts = data["alerts"].as_array().unwrap();
        let full = alerts.iter().find(|alert| {
            alert["labels"]["alertname"] == "CapReached"
                && alert["labels"]["vault_key"] == play.flag.id
                && alert["state"] == "firing"
        });
        full.cloned()
    })
    .await;
    let summary = format!("The cap of {} for 2026-08 is used up", play.flag.id);
    assert_eq!(firing["annotations"]["summary"], summary);
    let data = prometheus.ask("/api/v1/rules", &[]).await;
    let rules = data["groups"][0]["rules"].as_array().unwrap();
    let names: Vec<&str> = rules
        .iter()
        .map(|rule| rule["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ALERTS);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        assert!(rule.get("lastError").is_none(), "{rule}");
    }
}

/// The first row of the dashboard against what the admin API says of the same thing.
struct Row1<'a>(&'a Prometheus, &'a Dashboard, &'a Operator);

impl Row1<'_> {
    async fn money(&self, key: &VaultKey, period: &str, currency: &str) {
        let cap = self.2.cap(key, currency).await;
        let amount = |name: &str| cap[name].as_i64().unwrap();
        let (settled, reserved) = (amount("settled"), amount("reserved"));
        assert!(settled > 0 && amount("expected_total") > 0, "{cap}");
        let mut choice = Choice::all(currency, RATE_INTERVAL);
        choice.billing_periods = vec![period.to_owned()];
        choice.vault_keys = vec![key.id.clone()];
        let table = self.1.queries_of("Expected against settled");
        let [
            expected_total,
            settled_now,
            reserved_now,
            max_amount,
            left,
            share,
        ] = &table[..]
        else {
            panic!("{table:?}");
        };
        for (query, value) in [
            (expected_total, amount("expected_total")),
            (settled_now, settled),
            (reserved_now, reserved),
            (max_amount, amount("max_amount")),
            (left, amount("remaining")),
        ] {
            self.is(&choice, &query.expression, value).await;
        }
        let times = |query: &Query, of: i64| format!("round(({}) * {of})", query.expression);
        let share = times(share, amount("expected_total"));
        self.is(&choice, &share, settled).await;
        let [used] = &self.1.queries_of("Cap used")[..] else {
            panic!("the cap bar asks once");
        };
        let used = times(used, amount("max_amount"));
        self.is(&choice, &used, settled + reserved).await;
    }

    /// Open flags of each kind are those that nobody has acknowledged.
    async fn flags(&self) {
        let mut wanted = BTreeMap::new();
        for flag in every_open_flag(self.2).await {
            let kind = flag["kind"].as_str().unwrap().to_owned();
            *wanted.entry(kind).or_insert(0) += 1;
        }
        assert!(wanted["duplicate_customer_period"] > 0, "{wanted:?}");
        let [query] = &self.1.queries_of("Open flags")[..] else {
            panic!("one query");
        };
        until(&format!("flags are {wanted:?}"), async || {
            let series = self.0.now(&query.expression).await;
            let shown = series.iter().filter(|one| one.value != "0").map(|one| {
                let count: i32 = one.value.parse().unwrap();
                (one.label("kind").to_owned(), count)
            });
            (shown.collect::<BTreeMap<_, _>>() == wanted).then_some(())
        })
        .await;
    }

    /// The second row adds up over keys, and counts each once however many replicas there are.
    async fn sums(&self, keys: &[&VaultKey]) {
        let mut wanted = [0; 4];
        for key in keys {
            let cap = self.2.cap(key, "usd").await;
            for (sum, name) in
                wanted
                    .iter_mut()
                    .zip(["settled", "reserved", "expected_total", "max_amount"])
            {
                *sum += cap[name].as_i64().unwrap();
            }
        }
        let choice = Choice::all("usd", RATE_INTERVAL);
        let graph = self.1.queries_of("Settled, reserved and held");
        let [settled, reserved, held, expected, cap] = &graph[..] else {
            panic!("{graph:?}");
        };
        let both = format!("({}) + ({})", reserved.expression, held.expression);
        for (expression, value) in [
            &settled.expression,
            &both,
            &expected.expression,
            &cap.expression,
        ]
        .into_iter()
        .zip(wanted)
        {
            self.is(&choice, expression, value).await;
        }
    }

    async fn is(&self, choice: &Choice, expression: &str, value: i64) {
        // Of one key there is one series; its labels are not asked for.
        let expression = format!("sum({})", choice.fill(expression));
        self.0.until_is(&expression, value).await;
    }
}

async fn every_open_flag(operator: &Operator) -> Vec<Value> {
    let mut flags = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/flags?acknowledged=false&limit=100{after}");
        let page = operator.admin(Method::GET, &path, None).await;
        let page = page.expect(200).json();
        flags.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(last) = flags.last().filter(|_| page["has_more"] == true) else {
            return flags;
        };
        after = format!("&starting_after={}", last["id"].as_str().unwrap());
    }
}

/// What happened to the unlucky replica is to be seen.
async fn states(prometheus: &Prometheus) {
    prometheus.until_is("sum(spendcap_breaker_open)", 1).await;
    prometheus.until_is("min(spendcap_ledger_up)", 1).await;
    prometheus
        .until_is("max(spendcap_held_reservations)", 2)
        .await;
    // Of 44 charges for 40 customers at least four were not the first.
    let passed = "sum(spendcap_duplicates_total{action=\"passed\"}) >= bool 4";
    prometheus.until_is(passed, 1).await;
    let held = "sum(max by (vault_key) (spendcap_reserved_minor{state=\"held\"}))";
    prometheus.until_is(held, 2 * 9_900).await;
}
