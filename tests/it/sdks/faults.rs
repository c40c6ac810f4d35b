//! What goes wrong at Stripe and on the way, with every SDK and its own retries: one charge at most, and the
//! call ends with it or with an exception that says what to do.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::client::{Client, Record, Sdk};
use super::stage::{AMOUNT_MINOR, create};
use crate::support::{LedgerKind, VaultKey, World};

/// A hang ends with this.
const UPSTREAM_TIMEOUT_MS: &str = "2000";
/// Stripe may not have noticed yet that spendcap gave up; until then it says that the key is in use.
const CALLS_MAX: usize = 20;

/// Where something goes wrong.
#[derive(Clone, Copy, Debug)]
enum Where {
    /// Between spendcap and the SDK: the first answer is lost.
    Here,
    /// At Stripe, or on the way to it: the first request meets this.
    Stripe(FaultKind),
}

/// What the user's second call must come to, when the first one failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    Charge,
    /// Stripe stored the 500, which proves nothing, and says nothing else: the amount stays reserved.
    Same,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// On the page.
    pub(super) what: &'static str,
    name: &'static str,
    place: Where,
    then: Then,
}

/// The user's call and, where it failed, the next one.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) first: Record,
    pub(super) again: Option<Record>,
}

pub(super) const CASES: [Case; 14] = [
    Case {
        place: Where::Here,
        ..at_stripe(
            "lost",
            "spendcap's answer is lost on the way to the SDK",
            FaultKind::Error500,
        )
    },
    at_stripe(
        "reset",
        "the connection to Stripe breaks before the charge is made",
        FaultKind::ResetBeforeCommit,
    ),
    at_stripe(
        "fin",
        "it is closed after the charge is made",
        FaultKind::CommitThenFin,
    ),
    at_stripe(
        "rst",
        "it is reset after the charge is made",
        FaultKind::CommitThenRst,
    ),
    at_stripe("cut", "Stripe's answer is cut off", FaultKind::TruncateBody),
    at_stripe(
        "garbage",
        "Stripe's answer is not JSON",
        FaultKind::NonJson200,
    ),
    at_stripe(
        "hang",
        "Stripe does not answer in time, nothing is charged",
        hang(Moment::BeforeCommit),
    ),
    at_stripe(
        "late",
        "Stripe does not answer in time, the charge is made",
        hang(Moment::AfterCommit),
    ),
    at_stripe("html", "502 with a page of HTML", FaultKind::Html502),
    at_stripe("busy", "503, nothing is charged", FaultKind::Status503),
    at_stripe("made", "503, the charge is made", FaultKind::CommitThen503),
    at_stripe("limit", "429 `rate_limit`", FaultKind::RateLimit429),
    at_stripe(
        "conflict",
        "409 `idempotency_key_in_use`",
        FaultKind::Conflict409,
    ),
    Case {
        then: Then::Same,
        ..at_stripe(
            "stored",
            "500, stored under the key; the charge is made",
            FaultKind::CommitThen500,
        )
    },
];

const fn at_stripe(name: &'static str, what: &'static str, kind: FaultKind) -> Case {
    Case {
        what,
        name,
        place: Where::Stripe(kind),
        then: Then::Charge,
    }
}

const fn hang(at: Moment) -> FaultKind {
    FaultKind::Hang { at }
}

/// A spendcap that does not wait for long.
pub(super) async fn world() -> (World, VaultKey) {
    let settings = [
        ("SPENDCAP_UPSTREAM_CONNECT_TIMEOUT_MS", UPSTREAM_TIMEOUT_MS),
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", UPSTREAM_TIMEOUT_MS),
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
    ];
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(1_000 * AMOUNT_MINOR, json!({})).await;
    (world, key)
}

/// Everything that goes wrong, one after the other, with one SDK.
pub(super) async fn met(world: &World, key: &VaultKey, sdk: Sdk) -> Vec<Story> {
    let mut client = Client::start(sdk);
    let mut stories = Vec::new();
    for case in CASES {
        stories.push(case.meet(world, key, &mut client).await);
    }
    stories
}

impl Case {
    async fn meet(self, world: &World, key: &VaultKey, client: &mut Client) -> Story {
        let customer = format!("cus_{}_{}", client.sdk.name, self.name);
        let proxy = world.apps[0].proxy_addr();
        match self.place {
            Where::Here => client.tap(proxy).await.lose_answer(),
            Where::Stripe(kind) => {
                let fault = Fault::new(kind).method("POST").once();
                world.sandbox.add_fault(fault.customer(&customer));
            }
        }
        let mut call = create(&customer, &json!({}));
        call["case"] = self.name.into();
        call["api_key"] = key.secret.clone().into();
        let first = client.call(proxy, call.clone()).await;
        let failed = first.class.is_some();
        let mut again = None;
        for _ in 0..CALLS_MAX {
            // Under a key of its own: the SDK makes one for each call.
            let record = client.call(proxy, call.clone()).await;
            let busy = record.code.as_deref() == Some("idempotency_key_in_use");
            again = Some(record);
            if !busy {
                break;
            }
        }
        let again = again.unwrap();
        self.check(world, &customer, &first, &again);
        Story {
            first,
            again: failed.then_some(again),
        }
    }

    /// One charge in Stripe's books, and it is what the calls ended with.
    #[track_caller]
    fn check(self, world: &World, customer: &str, first: &Record, again: &Record) {
        let made = world.sandbox.charges_of(customer);
        let [only] = made.as_slice() else {
            panic!("{customer}: {made:?} {first:?} {again:?}");
        };
        for record in [first, again] {
            if record.class.is_none() {
                assert_eq!(record.id(), only.id, "{customer}");
                continue;
            }
            let message = record.message.as_deref().unwrap_or_default();
            assert!(!message.is_empty(), "{customer}: {record:?}");
            if record.code.as_deref() == Some("outcome_unknown") {
                assert!(message.contains("Send the same request again"), "{message}");
            }
        }
        let charged = again.class.is_none();
        assert_eq!(charged, self.then == Then::Charge, "{customer}: {again:?}");
    }
}
