//! Retries under fresh idempotency keys.

use spendcap::sandbox::{FaultKind, Moment};

use super::route::{Route, Run, Trouble};

/// Stripe's answers are lost once or twice, or it answers 503 after it has charged.
const LOST: [Trouble; 4] = [
    trouble("cus_well", None, 0),
    trouble("cus_closed", Some(FaultKind::CommitThenFin), 1),
    trouble("cus_reset", Some(FaultKind::CommitThenRst), 1),
    trouble("cus_closed_twice", Some(FaultKind::CommitThenFin), 2),
];
const UNAVAILABLE: [Trouble; 3] = [
    trouble("cus_well", None, 0),
    trouble("cus_503", Some(FaultKind::CommitThen503), 1),
    trouble("cus_503_twice", Some(FaultKind::CommitThen503), 2),
];
/// Longer than that job waits for an answer.
const LATE: [Trouble; 1] = [trouble(
    "cus_late",
    Some(FaultKind::Slow {
        ms: 4_000,
        at: Moment::AfterCommit,
    }),
    1,
)];

const fn trouble(customer: &'static str, fault: Option<FaultKind>, times: u32) -> Trouble {
    Trouble {
        customer,
        fault,
        times,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_mints_a_key_for_each_send_and_lost_answers_are_repeated() {
    charged_once_through_and_not_straight("retries-lost-answers-and-statuses", &LOST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_mints_a_key_for_each_send_and_503_is_repeated() {
    charged_once_through_and_not_straight("retries-unavailable", &UNAVAILABLE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_overwrites_a_stable_key() {
    let troubles = [LOST.as_slice(), &UNAVAILABLE[1..]].concat();
    charged_once_through_and_not_straight("overwritten-by-the-interceptor", &troubles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_overwrites_a_stable_key() {
    let troubles = [LOST.as_slice(), &UNAVAILABLE[1..]].concat();
    charged_once_through_and_not_straight("overwritten-in-the-loop", &troubles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_builds_each_request_anew() {
    let troubles = [LOST.as_slice(), &UNAVAILABLE[1..], &LATE].concat();
    charged_once_through_and_not_straight("rebuilds-the-request", &troubles).await;
}

/// Straight, one charge for each attempt that Stripe executed; through spendcap one, which the call ends
/// with.
async fn charged_once_through_and_not_straight(mode: &str, troubles: &[Trouble]) {
    let straight = Run::of(mode, Route::Straight, troubles).await;
    let through = Run::of(mode, Route::Through, troubles).await;
    for trouble in troubles {
        let customer = trouble.customer;
        let attempts = usize::try_from(trouble.times).unwrap() + 1;
        ends_with_its_charge(&straight, customer, attempts);
        ends_with_its_charge(&through, customer, 1);
    }
    assert_eq!(through.cap["settled"], 9_900 * troubles.len());
    assert_eq!(through.cap["reserved"], 0);
}

/// The customer was charged so often, and the call ended with the latest of these charges.
fn ends_with_its_charge(run: &Run, customer: &str, charges: usize) {
    let (call, made) = (run.call(customer), run.charges(customer));
    assert_eq!(made.len(), charges, "{call:?} {made:?}");
    assert_eq!(call.status, 200, "{call:?}");
    assert_eq!(Some(&call.charge), made.last(), "{call:?}");
}
