//! The fix: a key that names the charge, and a header of its own, `X-Attempt-Id`, that names the attempt.
//! It needs no spendcap; spendcap must not make it worse.

use std::collections::BTreeSet;

use serde_json::Value;
use spendcap::sandbox::{FaultKind, Moment};

use super::jvm::Call;
use super::route::{Route, Run, Trouble};

/// How a call ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End<'a> {
    /// With the customer's one charge.
    Charged,
    /// With another answer: status and code.
    Answer(u16, &'a str),
    /// Without an answer.
    Exception,
}

use End::{Answer, Charged, Exception};

/// What meets the first request of the customer, and how the call ends straight and through.
const CASES: [(Trouble, End<'static>, End<'static>); 14] = [
    case("cus_well", None, Charged, Charged),
    case(
        "cus_closed",
        Some(FaultKind::CommitThenFin),
        Charged,
        Charged,
    ),
    case(
        "cus_reset",
        Some(FaultKind::CommitThenRst),
        Charged,
        Charged,
    ),
    case(
        "cus_reset_before",
        Some(FaultKind::ResetBeforeCommit),
        Charged,
        Charged,
    ),
    case("cus_503", Some(FaultKind::CommitThen503), Charged, Charged),
    case(
        "cus_503_before",
        Some(FaultKind::Status503),
        Charged,
        Charged,
    ),
    case("cus_502", Some(FaultKind::Html502), Charged, Charged),
    case("cus_409", Some(FaultKind::Conflict409), Charged, Charged),
    case("cus_slow", Some(SLOW), Charged, Charged),
    case(
        "cus_429",
        Some(FaultKind::RateLimit429),
        Answer(429, "rate_limit"),
        Answer(429, "rate_limit"),
    ),
    case(
        "cus_declined",
        Some(FaultKind::Decline),
        Answer(402, "card_declined"),
        Answer(402, "card_declined"),
    ),
    // Stripe stored the 500 under the key: nobody gets another answer.
    case(
        "cus_500",
        Some(FaultKind::CommitThen500),
        Answer(500, ""),
        Answer(500, ""),
    ),
    // These two are better through spendcap: it asks again for what is no whole answer, or says 504, which is
    // retried.
    case(
        "cus_truncated",
        Some(FaultKind::TruncateBody),
        Exception,
        Charged,
    ),
    case(
        "cus_not_json",
        Some(FaultKind::NonJson200),
        Answer(200, ""),
        Charged,
    ),
];

const SLOW: FaultKind = FaultKind::Slow {
    ms: 300,
    at: Moment::AfterCommit,
};

const fn case(
    customer: &'static str,
    fault: Option<FaultKind>,
    straight: End<'static>,
    through: End<'static>,
) -> (Trouble, End<'static>, End<'static>) {
    (
        Trouble {
            customer,
            fault,
            times: 1,
        },
        straight,
        through,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn stays_at_one_charge_and_its_answers_get_no_worse() {
    let troubles = CASES.map(|(trouble, ..)| trouble);
    let straight = Run::of("stable-key", Route::Straight, &troubles).await;
    let through = Run::of("stable-key", Route::Through, &troubles).await;
    let logged = money_lines(&through);
    for (Trouble { customer, .. }, end_straight, end_through) in CASES {
        for (run, end) in [(&straight, end_straight), (&through, end_through)] {
            let (call, made) = (run.call(customer), run.charges(customer));
            assert!(made.len() <= 1, "{call:?} {made:?}");
            assert_eq!(ended(call, made), end, "{call:?} {made:?}");
        }
        if end_straight == end_through {
            let body = format!("customer={customer}");
            let sent = straight.sent.iter();
            let sent = sent.filter(|seen| seen.body.ends_with(&body)).count();
            let sent = u64::try_from(sent).unwrap();
            // What was lost between Stripe and spendcap is sent again without the client.
            let lines = logged.iter().filter(|line| line["customer"] == customer);
            let sends: u64 = lines.filter_map(|line| line["sends"].as_u64()).sum();
            assert_eq!(sends, sent, "sends for {customer}");
            let (straight, through) = (straight.call(customer), through.call(customer));
            assert_eq!(
                straight.replayed, through.replayed,
                "{straight:?} {through:?}"
            );
        }
    }
    for run in [&straight, &through] {
        assert_one_key_for_each_customer(run);
    }
    assert_each_attempt_has_its_own_id(&straight);
    assert_attempts_are_logged(&through, &logged);
}

fn ended<'a>(call: &'a Call, made: &[String]) -> End<'a> {
    match call.status {
        200 if made == [call.charge.as_str()] => Charged,
        0 => Exception,
        status => Answer(status, &call.code),
    }
}

/// `HttpClient` sends another attempt id each time.
fn assert_each_attempt_has_its_own_id(run: &Run) {
    let mut ids = BTreeSet::new();
    for seen in &run.sent {
        let id = seen.header("x-attempt-id").unwrap();
        assert!(ids.insert(id), "{id} was sent twice");
    }
    assert!(ids.len() > CASES.len(), "{ids:?}");
}

fn assert_one_key_for_each_customer(run: &Run) {
    for seen in &run.sent {
        let key = seen.idempotency_key.as_deref().unwrap();
        let customer = key.strip_prefix("fee:2026-08:").unwrap();
        let body = format!("amount=9900&currency=usd&customer={customer}");
        assert_eq!(seen.body, body);
    }
}

/// Whatever reached Stripe stands in the log under the id that its client sent, as often as it was sent.
fn assert_attempts_are_logged(run: &Run, lines: &[Value]) {
    for seen in &run.sent {
        let id = seen.header("x-attempt-id").unwrap();
        let of_this = lines.iter().filter(|line| line["attempt_id"] == id);
        let of_this: Vec<&Value> = of_this.collect();
        assert_eq!(of_this.len(), 1, "{id} {lines:#?}");
        let sent = run.sent.iter();
        let sent = sent.filter(|one| one.header("x-attempt-id") == Some(id));
        assert_eq!(of_this[0]["sends"], sent.count(), "{id}");
        assert_eq!(of_this[0]["decision"], "send");
        let customer = of_this[0]["customer"].as_str().unwrap();
        assert!(seen.body.ends_with(&format!("customer={customer}")));
    }
}

fn money_lines(run: &Run) -> Vec<Value> {
    let lines = run.log.lines();
    let lines = lines.filter(|line| line.contains("Money request"));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
