//! The faults, and what design §3.2 says each of them proves.

use spendcap::sandbox::{FaultKind, Moment};

/// One fault that meets a customer's first requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) fault: FaultKind,
    /// How many sends it meets.
    pub(super) times: u32,
    /// The status of the first answer.
    pub(super) status: u16,
    /// Its `error.code`.
    pub(super) code: &'static str,
    /// The state of the reservation after it.
    pub(super) row: &'static str,
    pub(super) then: Then,
}

/// What a repeat finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// The charge is made and known.
    Known,
    /// The outcome is unknown, and sending again under the first key settles it.
    Settles,
    /// Nothing was done: it goes on as a new request.
    Free,
    /// Stripe stored the decline under the key; another key is a new attempt.
    Declined,
    /// Stripe stored a 500 under the key, which proves nothing, and says nothing else.
    Stored500 { charged: bool },
}

const SLOW_MS: u64 = 300;

/// The first send, and the default of `upstream.resends_max`.
const SENDS_MAX: u32 = 1 + 2;

pub(super) const CASES: [Case; 22] = [
    known("fin", FaultKind::CommitThenFin),
    known("rst", FaultKind::CommitThenRst),
    known("truncated", FaultKind::TruncateBody),
    known("reset_before", FaultKind::ResetBeforeCommit),
    lost("fin_each_time", FaultKind::CommitThenFin),
    lost("rst_each_time", FaultKind::CommitThenRst),
    lost("truncated_each_time", FaultKind::TruncateBody),
    lost("reset_before_each_time", FaultKind::ResetBeforeCommit),
    unknown("commit_then_503", FaultKind::CommitThen503, 503),
    unknown("status_503", FaultKind::Status503, 503),
    unknown("html_502", FaultKind::Html502, 502),
    unknown("not_json", FaultKind::NonJson200, 504),
    unknown("hang_before", hang(Moment::BeforeCommit), 504),
    unknown("hang_after", hang(Moment::AfterCommit), 504),
    stored_500("commit_then_500", FaultKind::CommitThen500, true),
    stored_500("error_500", FaultKind::Error500, false),
    known("slow_before", slow(Moment::BeforeCommit)),
    known("slow_after", slow(Moment::AfterCommit)),
    refused("rate_limit", FaultKind::RateLimit429, 429, "rate_limit"),
    refused(
        "conflict",
        FaultKind::Conflict409,
        409,
        "idempotency_key_in_use",
    ),
    refused("forbidden", FaultKind::Forbidden403, 403, ""),
    Case {
        then: Then::Declined,
        ..refused("bank_says_no", FaultKind::Decline, 402, "card_declined")
    },
];

const fn unknown(name: &'static str, fault: FaultKind, status: u16) -> Case {
    // What is no answer of Stripe's becomes the proxy's own.
    let code = if status == 504 { "outcome_unknown" } else { "" };
    Case {
        name,
        fault,
        times: 1,
        status,
        code,
        row: "held",
        then: Then::Settles,
    }
}

/// Lost as often as it is sent for one request.
const fn lost(name: &'static str, fault: FaultKind) -> Case {
    Case {
        times: SENDS_MAX,
        ..unknown(name, fault, 504)
    }
}

const fn stored_500(name: &'static str, fault: FaultKind, charged: bool) -> Case {
    Case {
        then: Then::Stored500 { charged },
        ..unknown(name, fault, 500)
    }
}

const fn known(name: &'static str, fault: FaultKind) -> Case {
    Case {
        name,
        fault,
        times: 1,
        status: 200,
        code: "",
        row: "settled",
        then: Then::Known,
    }
}

const fn refused(name: &'static str, fault: FaultKind, status: u16, code: &'static str) -> Case {
    Case {
        name,
        fault,
        times: 1,
        status,
        code,
        row: "released",
        then: Then::Free,
    }
}

const fn hang(at: Moment) -> FaultKind {
    FaultKind::Hang { at }
}

const fn slow(at: Moment) -> FaultKind {
    FaultKind::Slow { ms: SLOW_MS, at }
}
