//! Ten thousand requests at once, of every outcome there is. The reconciler and the clients' repeats leave
//! nothing reserved, settled is what Stripe took, and the process stays small.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};
use tokio::task::JoinSet;

use crate::support::http::{Client, Reply};
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, Outside, VaultKey};

const REQUESTS: usize = 10_000;
/// A server takes at most 200 requests at once on one HTTP/2 connection.
const CONNECTIONS: usize = 50;
/// What the process may have held in memory at most: the peak that docs/RELIABILITY.md states is well
/// below it.
const PEAK_KB_MAX: u64 = 512 * 1024;

const SETTINGS: [(&str, &str); 4] = [
    ("SPENDCAP_RECONCILE_ENABLED", "true"),
    ("SPENDCAP_RECONCILE_INTERVAL_MS", "100"),
    ("SPENDCAP_RECONCILE_READS_PER_SECOND", "100"),
    // It has tests of its own, and would refuse most of this.
    ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
];

/// What a client asks for and what meets it, by turns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Paid,
    /// Another job's request for the paid customer before it, under a key of its own.
    Duplicate,
    Declined,
    /// Authorised, then captured.
    Captured,
    /// In a currency that has no cap.
    Refused,
    /// Stripe takes the money and the answer is lost; the client gives up.
    Lost,
    /// Stripe takes the money, answers 500, and says so for ever; the client gives up.
    Stored500,
    /// 503 before anything happens; the client asks again.
    Away,
    /// 429 and 409 before anything happens; the client asks again.
    Busy,
}

const KINDS: [Kind; 16] = [
    Kind::Paid,
    Kind::Duplicate,
    Kind::Declined,
    Kind::Paid,
    Kind::Duplicate,
    Kind::Captured,
    Kind::Paid,
    Kind::Refused,
    Kind::Paid,
    Kind::Lost,
    Kind::Paid,
    Kind::Stored500,
    Kind::Paid,
    Kind::Away,
    Kind::Paid,
    Kind::Busy,
];

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_mixed_outcomes_at_once_leave_nothing_reserved() {
    spendcap::cli::raise_open_files();
    let outside = Outside::start(LedgerKind::Sqlite, &SETTINGS).await;
    let key = outside.issue(1_000_000_000).await;
    for n in 0..REQUESTS {
        for fault in faults(n) {
            outside.sandbox.add_fault(fault);
        }
    }
    let clients: Vec<Client> = (0..CONNECTIONS).map(|_| Client::http2()).collect();
    let mut requests = JoinSet::new();
    for n in 0..REQUESTS {
        let (client, secret) = (clients[n % CONNECTIONS].clone(), key.secret.clone());
        let url = outside.proxy_url();
        requests.spawn(async move { (kind(n), ask(&client, &url, &secret, n).await) });
    }
    let mut told: BTreeMap<(Kind, u16), usize> = BTreeMap::new();
    for (kind, status) in requests.join_all().await {
        *told.entry((kind, status)).or_default() += 1;
    }
    check_answers(&told);
    until_nothing_is_reserved(&outside, &key).await;
    outside.assert_balanced(&key).await;
    let mut charges: BTreeMap<String, usize> = BTreeMap::new();
    for made in outside.sandbox.charges() {
        *charges.entry(made.customer.unwrap()).or_default() += 1;
    }
    let none = [Kind::Declined, Kind::Refused, Kind::Duplicate];
    let customers = (0..REQUESTS).filter(|n| !none.contains(&kind(*n))).count();
    assert_eq!(charges.len(), customers);
    assert!(charges.values().all(|count| *count == 1), "{charges:?}");
    let peak_kb = peak_kb(outside.daemon.id());
    shown(&format!("peak resident memory: {peak_kb} kB; {told:?}"));
    assert!(peak_kb < PEAK_KB_MAX, "{peak_kb} kB");
}

fn kind(n: usize) -> Kind {
    KINDS[n % KINDS.len()]
}

fn customer(n: usize) -> String {
    match kind(n) {
        Kind::Duplicate => customer(n - 1),
        Kind::Declined => format!("cus_decline_{n}"),
        _ => format!("cus_{n}"),
    }
}

/// What meets the n-th request at Stripe.
fn faults(n: usize) -> Vec<Fault> {
    let kinds: &[FaultKind] = match kind(n) {
        Kind::Lost if n % 32 < 16 => &[FaultKind::CommitThenFin],
        Kind::Lost => &[FaultKind::TruncateBody],
        Kind::Stored500 => &[FaultKind::CommitThen500],
        Kind::Away => &[FaultKind::Status503],
        Kind::Busy => &[FaultKind::RateLimit429, FaultKind::Conflict409],
        _ => &[],
    };
    let once = |kind: &FaultKind| Fault::new(*kind).idempotency_key(format!("k-{n}")).once();
    kinds.iter().map(once).collect()
}

/// One client's work; returns the last status it was told.
async fn ask(client: &Client, url: &str, secret: &str, n: usize) -> u16 {
    let (customer, idempotency_key) = (customer(n), format!("k-{n}"));
    let gives_up = matches!(kind(n), Kind::Lost | Kind::Stored500);
    let mut attempt = 0;
    let answer = loop {
        attempt += 1;
        let charge = Charge {
            customer: &customer,
            currency: if kind(n) == Kind::Refused {
                "eur"
            } else {
                "usd"
            },
            idempotency_key: Some(&idempotency_key),
            more: if kind(n) == Kind::Captured {
                "&capture=false"
            } else {
                ""
            },
            ..Charge::default()
        };
        let answer = try_charge(client, url, secret, charge).await.unwrap();
        // Nothing was sent for one that is too many, so everybody asks again.
        let again = answer.header("stripe-should-retry") == "true" || !answer.status.is_success();
        let too_many = answer.status == 503 && answer.code() == "overloaded";
        let asks_again = match kind(n) {
            Kind::Away | Kind::Busy | Kind::Paid | Kind::Duplicate | Kind::Captured => again,
            Kind::Declined | Kind::Refused | Kind::Lost | Kind::Stored500 => too_many,
        };
        if !asks_again || attempt == 1_000 {
            break answer;
        }
        assert!(!gives_up || too_many);
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    if kind(n) != Kind::Captured {
        return answer.status.as_u16();
    }
    capture(client, url, secret, &answer).await
}

async fn capture(client: &Client, url: &str, secret: &str, made: &Reply) -> u16 {
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", bearer.as_str())];
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let url = format!("{url}/v1/charges/{id}/capture");
    loop {
        let captured = client.send(Method::POST, &url, &headers, "").await;
        if captured.header("stripe-should-retry") != "true" {
            return captured.status.as_u16();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn check_answers(told: &BTreeMap<(Kind, u16), usize>) {
    for ((kind, status), count) in told {
        let right: &[u16] = match kind {
            Kind::Declined => &[402],
            Kind::Refused => &[400],
            Kind::Stored500 => &[500],
            // 200 where the connection broke and the request was sent again.
            Kind::Lost => &[504, 200],
            _ => &[200],
        };
        assert!(
            right.contains(status),
            "{kind:?} {status} {count} times: {told:?}"
        );
    }
}

/// The reconciler takes the time that its rate of reads allows, and no help.
async fn until_nothing_is_reserved(outside: &Outside, key: &VaultKey) {
    for _ in 0..1_200 {
        let cap = outside.operator().cap(key, "usd").await;
        if cap["reserved"] == json!(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let held = outside.operator().reservations("state=held").await;
    panic!("{} and more are held: {:?}", held.len(), held.first());
}

/// The most memory the process has had at once (`VmHWM`).
fn peak_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

#[expect(clippy::print_stdout, reason = "what docs/RELIABILITY.md states")]
fn shown(text: &str) {
    println!("{text}");
}
