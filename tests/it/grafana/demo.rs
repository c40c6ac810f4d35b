//! `spendcap demo` can be scraped while it plays.

use std::process::Command;

use tempfile::TempDir;

use super::dashboard::{Choice, Dashboard};
use super::process::Process;
use super::prometheus::{Prometheus, RATE_INTERVAL};

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_shows_what_the_demo_counts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
    command.arg("demo").env_clear();
    let mut demo = Process::start(command, TempDir::new().unwrap());
    let url = demo.until_said("Prometheus may scrape http://").await;
    let target = url.strip_suffix("/metrics").unwrap().to_owned();
    let prometheus = Prometheus::start(&[target]).await;
    demo.until_said("Everything stays up").await;

    // 500 customers at $99.00, each asked for by three replicas; the cap is ten percent above.
    let everything = Choice::all("usd", RATE_INTERVAL);
    let table = Dashboard::load().queries_of("Expected against settled");
    for (query, cents) in table
        .iter()
        .zip([4_950_000, 4_950_000, 0, 5_445_000, 495_000, 1])
    {
        let expression = format!("sum({})", everything.fill(&query.expression));
        prometheus.until_is(&expression, cents).await;
    }
    let replayed = "sum(spendcap_duplicates_total{action=\"replayed\"})";
    prometheus.until_is(replayed, 1_000).await;
}
