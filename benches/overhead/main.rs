//! What spendcap costs: charges per second through it, through a plain proxy that keeps no books, and
//! straight to the sandbox, side by side in one run. Only the ratios mean anything elsewhere.
//!
//! `cargo bench --bench overhead -- --seconds 5 --postgres postgres://…`
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::float_arithmetic, reason = "ratios of measured times")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first failure")]

mod plain;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use spendcap::app::App;
use spendcap::clock::Clock;
use spendcap::config::{Environment, Settings};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use tokio::time::Instant;

const ROUNDS: usize = 3;
const ADMIN_TOKEN: &str = "admin-token-of-the-benchmark";

struct Path {
    name: &'static str,
    base_url: String,
    bearer: String,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).cloned()
    };
    let seconds = after("--seconds").map_or(3, |text| text.parse().unwrap());
    let sandbox = Sandbox::start(SandboxSettings {
        record_requests: false,
        ..SandboxSettings::default()
    })
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite://{}/ledger.db", directory.path().display());
    let mut apps = vec![("spendcap, SQLite", start(&sandbox, &sqlite).await)];
    if let Some(url) = after("--postgres") {
        apps.push(("spendcap, PostgreSQL", start(&sandbox, &url).await));
    }
    let mut paths = vec![
        Path {
            name: "straight",
            base_url: sandbox.base_url(),
            bearer: SECRET_KEY_DEFAULT.to_owned(),
        },
        Path {
            name: "plain hyper proxy",
            base_url: plain::start(sandbox.base_url()).await,
            bearer: SECRET_KEY_DEFAULT.to_owned(),
        },
    ];
    for (name, app) in &apps {
        let bearer = issue(app).await;
        paths.push(Path {
            name,
            base_url: format!("http://{}", app.proxy_addr()),
            bearer,
        });
    }
    for concurrency in [1, 64, 256] {
        let mut rates = vec![Vec::new(); paths.len()];
        for _ in 0..ROUNDS {
            for (path, rates) in paths.iter().zip(&mut rates) {
                rates.push(measure(path, concurrency, Duration::from_secs(seconds)).await);
            }
        }
        let medians: Vec<f64> = rates.iter_mut().map(|rates| median(rates)).collect();
        for (path, rate) in paths.iter().zip(&medians) {
            let (straight, plain) = (rate / medians[0], rate / medians[1]);
            println!(
                "c={concurrency:<4} {:<22} {rate:>8.0} charges/s  {straight:>5.2} of straight  \
                 {plain:>5.2} of plain proxy",
                path.name
            );
        }
    }
}

async fn start(sandbox: &Sandbox, ledger: &str) -> App {
    let environment: Environment = [
        ("SPENDCAP_PROXY_LISTEN", "127.0.0.1:0"),
        ("SPENDCAP_ADMIN_LISTEN", "127.0.0.1:0"),
        ("SPENDCAP_LEDGER_URL", ledger),
        ("SPENDCAP_UPSTREAM_BASE_URL", &sandbox.base_url()),
        ("STRIPE_SECRET_KEY", SECRET_KEY_DEFAULT),
        ("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN),
    ]
    .into_iter()
    .collect();
    App::start(Settings::load(None, &environment).unwrap(), Clock::system())
        .await
        .unwrap()
}

async fn issue(app: &App) -> String {
    let wish = json!({
        "billing_period": "bench",
        "expected_total": 1_000_000_000_000_i64,
        "currency": "usd",
        "expires_at": Clock::system().now().unix_seconds() + 86_400,
    });
    let request = Request::post(format!("http://{}/v1/vault_keys", app.admin_addr()))
        .header("authorization", format!("Bearer {ADMIN_TOKEN}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(wish.to_string())))
        .unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let issued: Value = serde_json::from_slice(&body).unwrap();
    issued["secret"].as_str().unwrap().to_owned()
}

/// Charges per second with `concurrency` clients, each waiting for its answer; every customer is new.
async fn measure(path: &Path, concurrency: usize, length: Duration) -> f64 {
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(concurrency)
        .build_http::<Full<Bytes>>();
    let (done, next) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let run = uuid::Uuid::now_v7().simple().to_string();
    let began = Instant::now();
    let clients: Vec<_> = (0..concurrency)
        .map(|_| {
            let (client, done, next) = (client.clone(), Arc::clone(&done), Arc::clone(&next));
            let (url, bearer) = (format!("{}/v1/charges", path.base_url), path.bearer.clone());
            let run = run.clone();
            tokio::spawn(async move {
                while began.elapsed() < length {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let body = format!("amount=9900&currency=usd&customer=cus_{run}_{number}");
                    let request = Request::builder()
                        .method(Method::POST)
                        .uri(&url)
                        .header("authorization", format!("Bearer {bearer}"))
                        .header("content-type", "application/x-www-form-urlencoded")
                        .header("idempotency-key", format!("{run}-{number}"))
                        .body(Full::new(Bytes::from(body)))
                        .unwrap();
                    let answer = client.request(request).await.unwrap();
                    assert_eq!(answer.status(), 200);
                    answer.into_body().collect().await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let done = u32::try_from(done.load(Ordering::Relaxed)).unwrap();
    f64::from(done) / began.elapsed().as_secs_f64()
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
