//! The race itself: every replica asks for every customer's charge, all at once.

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{AMOUNT_MINOR, CUSTOMERS, REPLICAS};

/// One way to Stripe.
pub(super) struct Race {
    pub(super) title: &'static str,
    pub(super) base_url: String,
    pub(super) bearer: String,
}

/// What the replicas were told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// 200 with a charge made by this very request.
    pub(super) charged: usize,
    /// 200 with the charge that existed already.
    pub(super) replayed: usize,
    /// 402 `spend_cap_reached`.
    pub(super) capped: usize,
    /// Anything else.
    pub(super) other: usize,
}

type Replica = Client<HttpConnector, Full<Bytes>>;

impl Race {
    /// Runs all requests at once and waits for every answer.
    pub(super) async fn run(&self) -> anyhow::Result<Tally> {
        let bar = progress_bar(self.title);
        let mut requests = JoinSet::new();
        for replica in replicas() {
            for customer in 0..CUSTOMERS {
                let (replica, request) = (replica.clone(), self.charge(customer)?);
                let bar = bar.clone();
                requests.spawn(async move {
                    let answer = ask(&replica, request).await;
                    bar.inc(1);
                    answer
                });
            }
        }
        let mut tally = Tally::default();
        while let Some(answer) = requests.join_next().await {
            match answer.context("a request panicked")?? {
                (StatusCode::OK, false) => tally.charged += 1,
                (StatusCode::OK, true) => tally.replayed += 1,
                (StatusCode::PAYMENT_REQUIRED, _) => tally.capped += 1,
                _ => tally.other += 1,
            }
        }
        bar.finish();
        Ok(tally)
    }

    /// What a retry interceptor does: the same intent, a fresh key.
    fn charge(&self, customer: usize) -> anyhow::Result<Request<Full<Bytes>>> {
        let body = format!("amount={AMOUNT_MINOR}&currency=usd&customer=cus_demo{customer:03}");
        Request::post(format!("{}/v1/charges", self.base_url))
            .header(AUTHORIZATION, format!("Bearer {}", self.bearer))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("idempotency-key", Uuid::new_v4().to_string())
            .body(Full::new(Bytes::from(body)))
            .context("a request could not be built")
    }
}

/// Each with a connection of its own; HTTP/2, so that 500 requests share it.
fn replicas() -> Vec<Replica> {
    let client = || {
        Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http()
    };
    (0..REPLICAS).map(|_| client()).collect()
}

async fn ask(
    replica: &Replica,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, bool)> {
    let answer = replica
        .request(request)
        .await
        .context("a request was not answered")?;
    let (parts, body) = answer.into_parts();
    body.collect().await.context("an answer was cut off")?;
    let replayed = parts
        .headers
        .get("idempotent-replayed")
        .is_some_and(|value| value == "true");
    Ok((parts.status, replayed))
}

fn progress_bar(title: &'static str) -> ProgressBar {
    let total = u64::try_from(CUSTOMERS * REPLICAS).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{msg:30} [{bar:32}] {pos:>5}/{len}");
    let bar = ProgressBar::new(total).with_message(title);
    match style {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
