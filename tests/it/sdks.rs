//! Stripe's own SDKs as clients: what they charge, what they retry by themselves, and what their users see
//! of a refusal. The last is written down in `docs/sdks.md`.

mod client;
mod faults;
mod guides;
mod life;
mod page;
mod refusals;
mod stage;
mod tap;

use std::sync::Arc;

use client::{CLIENTS, Client, Record, Sdk};
use page::Report;
use stage::Stage;
use tokio::task::JoinSet;

/// Refusals and faults, with all SDKs side by side.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_what_each_sdk_makes_of_refusals_and_faults() {
    let (stage, flaky) = tokio::join!(Stage::set(), faults::world());
    let shared = Arc::new((stage, flaky));
    let mut running = JoinSet::new();
    for (at, sdk) in CLIENTS.into_iter().enumerate() {
        let shared = Arc::clone(&shared);
        running.spawn(async move {
            let (stage, (world, key)) = &*shared;
            let (refusals, faults) =
                tokio::join!(refused(stage, sdk), faults::met(world, key, sdk));
            let report = Report {
                sdk,
                refusals,
                faults,
            };
            (at, report)
        });
    }
    let mut reports = running.join_all().await;
    reports.sort_by_key(|(at, _)| *at);
    let reports: Vec<Report> = reports.into_iter().map(|(_, report)| report).collect();
    page::check(&reports);
}

/// Every refusal, one after the other, as the users of one SDK see them.
async fn refused(stage: &Stage, sdk: Sdk) -> Vec<Record> {
    let mut client = Client::start(sdk);
    let mut records = Vec::new();
    for case in refusals::CASES {
        let customer = format!("cus_{}_{}", sdk.name, case.name);
        let ask = (case.provoke)(stage, &customer).await;
        let mut call = ask.call;
        call["case"] = case.name.into();
        call["api_key"] = ask.secret.into();
        let record = client.call(ask.proxy, call).await;
        case.check(&record);
        records.push(record);
    }
    records
}
