//! Prometheus as Debian ships it: a process of its own with the alerts of this repository.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use form_urlencoded::Serializer;
use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::process::Process;
use super::rules::folder;
use crate::support::http::Client;
use crate::support::patience::until;

/// How often it scrapes. `$__rate_interval` is four times that, as in Grafana.
const SCRAPE_INTERVAL: &str = "1s";
pub(super) const RATE_INTERVAL: &str = "4s";
/// How far back a range query looks, and its step.
const RANGE_SECONDS: i64 = 30;
const STEP_SECONDS: &str = "1";

/// A running Prometheus.
pub(super) struct Prometheus {
    url: String,
    client: Client,
    _process: Process,
}

/// One time series of an answer.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) labels: BTreeMap<String, String>,
    /// The newest value, as Prometheus writes it.
    pub(super) value: String,
}

impl Series {
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// False for NaN and the infinities.
    pub(super) fn is_finite(&self) -> bool {
        self.value.parse::<f64>().unwrap().is_finite()
    }
}

impl Prometheus {
    /// Starts it on the job `spendcap` with these targets, and waits until it listens.
    pub(super) async fn start(targets: &[String]) -> Self {
        let folder = TempDir::new().unwrap();
        let settings = folder.path().join("prometheus.yml");
        fs::write(&settings, self::settings(targets)).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", settings.display()))
            .arg("--storage.tsdb.path=data")
            .arg("--web.listen-address=127.0.0.1:0");
        let mut process = Process::start(command, folder);
        let address = process.until_said("msg=\"Listening on\" address=").await;
        process.until_said("Server is ready").await;
        Self {
            url: format!("http://{address}"),
            client: Client::new(),
            _process: process,
        }
    }

    /// Asks the HTTP API; returns its `data`.
    pub(super) async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let parameters = Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let url = format!("{}{path}?{parameters}", self.url);
        let reply = self.client.send(Method::GET, &url, &[], "").await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        let answer = reply.json();
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// An expression now.
    pub(super) async fn now(&self, expression: &str) -> Vec<Series> {
        let parameters = [("query", expression)];
        let data = self.ask("/api/v1/query", &parameters).await;
        assert_eq!(data["resultType"], "vector", "{expression}");
        let result = data["result"].as_array().unwrap();
        let series = result.iter().map(|one| series(one, &one["value"]));
        series.collect()
    }

    /// An expression over the last seconds, as a graph asks it.
    pub(super) async fn lately(&self, expression: &str) -> Vec<Series> {
        let now = jiff::Timestamp::now().as_second();
        let parameters = [
            ("query", expression),
            ("start", &(now - RANGE_SECONDS).to_string()),
            ("end", &now.to_string()),
            ("step", STEP_SECONDS),
        ];
        let data = self.ask("/api/v1/query_range", &parameters).await;
        assert_eq!(data["resultType"], "matrix", "{expression}");
        let result = data["result"].as_array().unwrap();
        let newest = |one: &Value| one["values"].as_array().unwrap().last().cloned();
        result
            .iter()
            .map(|one| series(one, &newest(one).unwrap()))
            .collect()
    }

    /// Waits until an expression is exactly this number, without labels.
    pub(super) async fn until_is(&self, expression: &str, value: i64) {
        let value = value.to_string();
        until(&format!("{expression} is {value}"), async || {
            let series = self.now(expression).await;
            (series.len() == 1 && series[0].value == value).then_some(())
        })
        .await;
    }
}

fn settings(targets: &[String]) -> String {
    let alerts = folder().join("alerts.yml");
    let alerts = serde_json::to_string(&alerts).unwrap();
    let targets = serde_json::to_string(targets).unwrap();
    format!(
        "global: {{ scrape_interval: {SCRAPE_INTERVAL}, evaluation_interval: {SCRAPE_INTERVAL} }}\n\
         rule_files: [{alerts}]\n\
         scrape_configs:\n\
         - job_name: spendcap\n\
         \x20 static_configs: [{{ targets: {targets} }}]\n"
    )
}

fn series(one: &Value, sample: &Value) -> Series {
    let labels = one["metric"].as_object().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Series {
        labels: labels
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        value: text(&sample[1]),
    }
}
