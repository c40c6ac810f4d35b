//! A billing run of a thousand customers during which Stripe dies for a while. The outage costs some held
//! rows and no more; when it is over the job is simply run again, and every customer is charged once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use spendcap::sandbox::{Fault, FaultKind, Moment, Outage};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::http::{Client, Reply};
use crate::support::operator::Operator;
use crate::support::patience::until;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, Outside, VaultKey};

const CUSTOMERS: usize = 1_000;
const DIES_AT: usize = 300;
/// What the job has under way at once.
const IN_FLIGHT: usize = 6;
/// The default of `breaker.unknown_outcomes_max`.
const UNKNOWN_MAX: usize = 10;
const AMOUNT: i64 = 9_900;
/// How often, and how soon, a job that retries asks again.
const TRIES_MAX: usize = 200;
const RETRY_PAUSE: Duration = Duration::from_millis(50);

const SETTINGS: [(&str, &str); 4] = [
    ("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", "200"),
    ("SPENDCAP_UPSTREAM_CONNECT_TIMEOUT_MS", "1500"),
    ("SPENDCAP_UPSTREAM_TIMEOUT_MS", "1500"),
    ("SPENDCAP_PROXY_REPEAT_WAIT_MS", "500"),
];

/// How Stripe dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Connections are closed before anything happens.
    Closes,
    /// Every request is answered 503.
    Answers503,
    /// Charges are made, and nothing is ever answered.
    HangsAfterCommit,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_after_stripe_hung_on_sqlite() {
    run_again(LedgerKind::Sqlite, Death::HangsAfterCommit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_after_stripe_closed_its_connections_on_sqlite() {
    run_again(LedgerKind::Sqlite, Death::Closes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_after_stripe_hung_on_postgres() {
    run_again(LedgerKind::Postgres, Death::HangsAfterCommit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_after_stripe_answered_503_on_postgres() {
    run_again(LedgerKind::Postgres, Death::Answers503).await;
}

async fn run_again(ledger: LedgerKind, death: Death) {
    let outside = Outside::start(ledger, &SETTINGS).await;
    let key = outside.issue(10_000_000).await;
    let first = Job::start(&outside, &key, "first", false);
    until("Stripe is to die", async || {
        (outside.sandbox.charges().len() >= DIES_AT).then_some(())
    })
    .await;
    die(&outside, death);
    let samples = Samples::take(outside.operator());
    let first = first.ended().await;
    let charged = first.iter().filter(|answer| answer.status == 200).count();
    assert!((DIES_AT..CUSTOMERS).contains(&charged), "{charged}");
    let unhealthy = (503, "upstream_unhealthy".to_owned());
    assert!(
        codes(&first)[&unhealthy] > CUSTOMERS / 3,
        "{:?}",
        codes(&first)
    );
    let held_most = samples.end().await;
    assert!(
        (1..=UNKNOWN_MAX + IN_FLIGHT).contains(&held_most),
        "{held_most} {:?}",
        codes(&first)
    );

    outside.sandbox.set_outage(Outage::Off);
    outside.sandbox.clear_faults();
    let again = Job::start(&outside, &key, "again", true).ended().await;
    assert_eq!(
        codes(&again),
        BTreeMap::from([((200, String::new()), CUSTOMERS)])
    );
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for made in outside.sandbox.charges() {
        assert_eq!(made.amount_captured, AMOUNT);
        *times.entry(made.customer.unwrap()).or_default() += 1;
    }
    assert_eq!(times.len(), CUSTOMERS);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    for state in ["held", "in_flight"] {
        outside.until_state(state, 0).await;
    }
    outside.assert_balanced(&key).await;
}

fn die(outside: &Outside, death: Death) {
    match death {
        Death::Closes => outside.sandbox.set_outage(Outage::Close),
        Death::Answers503 => outside.sandbox.set_outage(Outage::Status503),
        Death::HangsAfterCommit => {
            let at = Moment::AfterCommit;
            outside
                .sandbox
                .add_fault(Fault::new(FaultKind::Hang { at }));
        }
    }
}

/// How often each status and code was answered.
fn codes(answers: &[Reply]) -> BTreeMap<(u16, String), usize> {
    let mut codes = BTreeMap::new();
    for answer in answers {
        let code = (answer.status.as_u16(), answer.code());
        *codes.entry(code).or_default() += 1;
    }
    codes
}

/// The billing job: every customer in turn, some at once, under fresh keys each time it runs.
#[derive(Clone)]
struct Job {
    run: &'static str,
    /// Whether it asks again where `Stripe-Should-Retry` says so.
    retries: bool,
    client: Client,
    url: String,
    secret: String,
    next: Arc<AtomicUsize>,
}

impl Job {
    fn start(outside: &Outside, key: &VaultKey, run: &'static str, retries: bool) -> Running {
        let job = Self {
            run,
            retries,
            client: outside.client.clone(),
            url: outside.proxy_url(),
            secret: key.secret.clone(),
            next: Arc::default(),
        };
        let mut workers = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            workers.spawn(job.clone().work());
        }
        Running(workers)
    }

    async fn work(self) -> Vec<Reply> {
        let mut answers = Vec::new();
        loop {
            let customer = self.next.fetch_add(1, Ordering::Relaxed);
            if customer >= CUSTOMERS {
                return answers;
            }
            answers.push(self.bill(customer).await);
        }
    }

    /// One customer's last answer.
    async fn bill(&self, customer: usize) -> Reply {
        let customer = format!("cus_{customer}");
        let mut tries = 0;
        loop {
            tries += 1;
            let idempotency_key = format!("{customer}-{}-{tries}", self.run);
            let charge = Charge {
                customer: &customer,
                idempotency_key: Some(&idempotency_key),
                ..Charge::default()
            };
            let answer = try_charge(&self.client, &self.url, &self.secret, charge).await;
            let answer = answer.unwrap();
            let again = self.retries && answer.header("stripe-should-retry") == "true";
            if !again || tries == TRIES_MAX {
                return answer;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// A job that runs.
struct Running(JoinSet<Vec<Reply>>);

impl Running {
    /// The answers, one for each customer.
    async fn ended(self) -> Vec<Reply> {
        let answers: Vec<Reply> = self.0.join_all().await.into_iter().flatten().collect();
        assert_eq!(answers.len(), CUSTOMERS);
        answers
    }
}

/// Looks at what is held, again and again.
struct Samples {
    ended: Arc<AtomicBool>,
    looking: JoinHandle<usize>,
}

impl Samples {
    fn take(operator: Operator) -> Self {
        let ended = Arc::<AtomicBool>::default();
        let end = Arc::clone(&ended);
        let looking = tokio::spawn(async move {
            let mut most = 0;
            while !end.load(Ordering::Relaxed) {
                most = most.max(operator.reservations("state=held").await.len());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            most.max(operator.reservations("state=held").await.len())
        });
        Self { ended, looking }
    }

    /// The most that was held at once.
    async fn end(self) -> usize {
        self.ended.store(true, Ordering::Relaxed);
        self.looking.await.unwrap()
    }
}
