//! The process is killed between any two stages of a charge. On restart nothing is forgotten: the cap
//! holds what was reserved, a repeat settles it, nobody is charged twice.

mod at_random;

use std::time::Duration;

use http::Method;
use spendcap::sandbox::{Fault, FaultKind, Moment, Sandbox};

use crate::support::hold::Hold;
use crate::support::patience::within;
use crate::support::raw::RawClient;
use crate::support::relay::Relay;
use crate::support::tls;
use crate::support::{Charge, LedgerKind, Outside, VaultKey};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// The cap of these tests is one charge: whatever else is let through breaks it.
const EXPECTED_TOTAL: i64 = 9_000;

/// A repeat must not sit out half a minute before it is told that the first one may still run.
const SETTINGS: [(&str, &str); 1] = [("SPENDCAP_PROXY_REPEAT_WAIT_MS", "200")];

#[tokio::test(flavor = "multi_thread")]
async fn before_the_reserve() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        let mut hold = Hold::take(&outside.ledger_url).await;
        let _client = RawClient::charge(outside.daemon.proxy, &key, &charge("first")).await;
        hold.until_waited_for().await;
        until_it_answers(&outside, &key).await;
        outside.daemon.kill();
        hold.release().await;
        outside.restart().await;
        assert_eq!(posts(&outside.sandbox), 0);
        assert!(outside.operator().reservations("").await.is_empty());
        outside.charge(&key, charge("fresh")).await.expect(200);
        one_charge(&outside, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_reserve_and_the_send() {
    for ledger in LEDGERS {
        let (sandbox, certificate) = tls::sandbox();
        let relay = Relay::to(sandbox.addr());
        let url = format!("https://{}", relay.addr());
        let [repeat_wait] = SETTINGS;
        let settings = [
            repeat_wait,
            ("SPENDCAP_UPSTREAM_BASE_URL", &url),
            (
                "SPENDCAP_UPSTREAM_CA_FILE",
                certificate.path().to_str().unwrap(),
            ),
        ];
        let mut outside = Outside::with(sandbox, ledger, &settings).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        // A connection opens, and its handshake never ends.
        relay.stall();
        let _client = RawClient::charge(outside.daemon.proxy, &key, &charge("first")).await;
        outside.until_state("in_flight", 1).await;
        outside.daemon.kill();
        relay.mend();
        assert_eq!(posts(&outside.sandbox), 0);
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_works() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        let _client = held_by_stripe(&outside, &key, Moment::BeforeCommit).await;
        outside.daemon.kill();
        // Stripe still works: the repeat is told so, and that proves nothing.
        outside.restart().await;
        outside.pass_deadlines().await;
        let early = outside.charge(&key, charge("early")).await.expect(409);
        assert_eq!(early.code(), "idempotency_key_in_use");
        outside.until_state("held", 1).await;
        outside.sandbox.release_gate();
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_commit_and_before_the_answer() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        let _client = held_by_stripe(&outside, &key, Moment::AfterCommit).await;
        assert_eq!(outside.sandbox.charges().len(), 1);
        outside.daemon.kill();
        outside.sandbox.release_gate();
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_sends() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        // Each answer is lost, so whenever it is killed there is one that nobody knows of.
        let lost = Fault::new(FaultKind::CommitThenRst).method("POST");
        outside.sandbox.add_fault(lost);
        let _client = RawClient::charge(outside.daemon.proxy, &key, &charge("first")).await;
        outside.until_state("held", 1).await;
        outside.daemon.kill();
        outside.sandbox.clear_faults();
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_works_on_the_second_send() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        let lost = Fault::new(FaultKind::CommitThenFin).method("POST");
        outside.sandbox.add_fault(lost.once());
        let _client = held_by_stripe(&outside, &key, Moment::AfterCommit).await;
        let rows = outside.until_state("in_flight", 1).await;
        assert_eq!(rows[0]["sends"], 2, "{rows:?}");
        outside.daemon.kill();
        outside.sandbox.release_gate();
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_answer_and_before_the_settle() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        let _client = held_by_stripe(&outside, &key, Moment::AfterCommit).await;
        let mut hold = Hold::take(&outside.ledger_url).await;
        outside.sandbox.release_gate();
        hold.until_waited_for().await;
        until_it_answers(&outside, &key).await;
        outside.daemon.kill();
        hold.release().await;
        comes_back(&mut outside, ledger, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_settle_and_before_the_answer_arrives() {
    for ledger in LEDGERS {
        let mut outside = Outside::start(ledger, &SETTINGS).await;
        let key = outside.issue(EXPECTED_TOTAL).await;
        // A client that never reads never gets the answer.
        let _client = RawClient::charge(outside.daemon.proxy, &key, &charge("first")).await;
        outside.until_state("settled", 1).await;
        outside.daemon.kill();
        outside.restart().await;
        let posts_before = posts(&outside.sandbox);
        for name in ["first", "fresh"] {
            let answer = outside.charge(&key, charge(name)).await.expect(200);
            assert_eq!(answer.header("idempotent-replayed"), "true");
        }
        assert_eq!(posts(&outside.sandbox), posts_before);
        one_charge(&outside, &key).await;
    }
}

/// Restarts after a crash whose outcome nobody knows.
async fn comes_back(outside: &mut Outside, ledger: LedgerKind, key: &VaultKey) {
    outside.restart().await;
    let other = Charge {
        customer: "cus_other",
        amount: 1,
        ..charge("other")
    };
    let refused = outside.charge(key, other.clone()).await.expect(402);
    assert_eq!(refused.code(), "spend_cap_reached");
    if ledger == LedgerKind::Postgres
        && !outside
            .operator()
            .reservations("state=in_flight")
            .await
            .is_empty()
    {
        // Another replica may be the sender: until the deadline nobody sends again.
        let early = outside.charge(key, charge("fresh")).await.expect(409);
        assert_eq!(early.code(), "idempotency_key_in_use");
    }
    outside.pass_deadlines().await;
    assert_eq!(
        outside.until_state("held", 1).await[0]["amount_reserved"],
        9_900
    );
    let mut named = Vec::new();
    for name in ["fresh", "first"] {
        let answer = outside.charge(key, charge(name)).await.expect(200);
        named.push(answer.json()["id"].clone());
    }
    assert_eq!(named[0], named[1]);
    outside.charge(key, other).await.expect(402);
    one_charge(outside, key).await;
}

async fn one_charge(outside: &Outside, key: &VaultKey) {
    assert_eq!(outside.sandbox.charges().len(), 1);
    outside.assert_balanced(key).await;
}

/// Sends a charge that stands still at Stripe.
async fn held_by_stripe(outside: &Outside, key: &VaultKey, at: Moment) -> RawClient {
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    outside.sandbox.add_fault(gate);
    let client = RawClient::charge(outside.daemon.proxy, key, &charge("first")).await;
    within("requests at Stripe", outside.sandbox.wait_until_held(1)).await;
    client
}

/// Waits for an answer to a question that was asked later and needs no lock of the ledger.
async fn until_it_answers(outside: &Outside, key: &VaultKey) {
    let url = format!("{}/spendcap/v1/key", outside.proxy_url());
    let bearer = format!("Bearer {}", key.secret);
    let headers = [("authorization", bearer.as_str())];
    let asked = outside.client.send(Method::GET, &url, &headers, "");
    let answered = tokio::time::timeout(Duration::from_secs(30), asked).await;
    answered.unwrap().expect(200);
}

fn charge(idempotency_key: &str) -> Charge<'_> {
    Charge {
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}

fn posts(sandbox: &Sandbox) -> usize {
    let requests = sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}
