//! Every fault of Stripe × every policy × how the request is repeated, on both ledgers: what each answer
//! says, that one intent is never charged twice, and that the books agree once the dust has settled.

mod cases;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use spendcap::sandbox::Fault;
use tokio::task::JoinSet;

use crate::support::http::Reply;
use crate::support::{Charge, LedgerKind, VaultKey, World};
use cases::{CASES, Case, Then};

/// How a client repeats a charge: under its key, under fresh ones, or without any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keys {
    Same,
    Fresh,
    Missing,
}

/// One after the other, or all three at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timing {
    InTurn,
    AtOnce,
}

const AMOUNT: i64 = 9_900;

/// A hang ends with this. Long enough that no other case runs into it on a slow machine.
const UPSTREAM_TIMEOUT_MS: &str = "6000";

#[tokio::test(flavor = "multi_thread")]
async fn replay_on_sqlite() {
    every_case(LedgerKind::Sqlite, "replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_on_postgres() {
    every_case(LedgerKind::Postgres, "replay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_on_sqlite() {
    every_case(LedgerKind::Sqlite, "reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reject_on_postgres() {
    every_case(LedgerKind::Postgres, "reject").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_on_sqlite() {
    every_case(LedgerKind::Sqlite, "flag").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_on_postgres() {
    every_case(LedgerKind::Postgres, "flag").await;
}

/// A customer of their own for each combination, all at work on one proxy.
async fn every_case(ledger: LedgerKind, policy: &'static str) {
    let settings = [
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", UPSTREAM_TIMEOUT_MS),
        // The breaker has tests of its own.
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
    ];
    let world = Arc::new(World::start(ledger, 1, &settings).await);
    let key = world
        .issue(10_000_000, json!({ "on_duplicate": policy }))
        .await;
    let mut running = JoinSet::new();
    for case in &CASES {
        for keys in [Keys::Same, Keys::Fresh, Keys::Missing] {
            for timing in [Timing::InTurn, Timing::AtOnce] {
                let run = Run {
                    world: Arc::clone(&world),
                    key: key.clone(),
                    policy,
                    case,
                    keys,
                    customer: format!("cus_x_{}_{keys:?}_{timing:?}", case.name),
                };
                running.spawn(async move {
                    match timing {
                        Timing::InTurn => run.in_turn().await,
                        Timing::AtOnce => run.at_once().await,
                    }
                });
            }
        }
    }
    running.join_all().await;
    when_the_dust_has_settled(&world, &key).await;
}

/// One customer's story.
struct Run {
    world: Arc<World>,
    key: VaultKey,
    policy: &'static str,
    case: &'static Case,
    keys: Keys,
    customer: String,
}

impl Run {
    async fn in_turn(self) {
        self.set_fault();
        let first = self.ask(1).await;
        self.check(&first, (self.case.status, self.case.code));
        assert!(first.header("spendcap-reservation").starts_with("rsv_"));
        let row = self.rows().await.remove(0);
        assert_eq!(row["state"], self.case.row, "{} {row}", self.customer);
        let reserved = if self.case.row == "held" { AMOUNT } else { 0 };
        assert_eq!(row["amount_reserved"], reserved, "{row}");

        let mut charged = BTreeSet::new();
        if first.status == 200 {
            charged.insert(id_of(&first));
        }
        for attempt in 2..=4 {
            let answer = self.ask_until_known(attempt).await;
            self.check_repeat(&answer, &mut charged);
        }
        self.check_charges(&charged);
    }

    /// Three replicas at the same moment, then one more once they are answered.
    async fn at_once(self) {
        self.set_fault();
        let (a, b, c) = tokio::join!(self.ask(1), self.ask(2), self.ask(3));
        let mut charged = BTreeSet::new();
        for answer in [a, b, c] {
            match answer.status.as_u16() {
                200 => drop(charged.insert(id_of(&answer))),
                400 => {
                    assert_eq!((self.policy, self.keys), ("reject", Keys::Fresh));
                    assert_eq!(code_of(&answer), "duplicate_customer_period");
                }
                // Stripe still runs what the proxy gave up waiting for.
                409 if self.case.status == 504 => {
                    assert_eq!(code_of(&answer), "idempotency_key_in_use");
                }
                status => assert_eq!(status, self.case.status, "{}", self.describe(&answer)),
            }
        }
        let last = self.ask_until_known(4).await;
        self.check_repeat(&last, &mut charged);
        self.check_charges(&charged);
    }

    fn set_fault(&self) {
        let fault = Fault::new(self.case.fault).method("POST").once();
        self.world.sandbox.add_fault(fault.customer(&self.customer));
    }

    async fn ask(&self, attempt: u32) -> Reply {
        let idempotency_key = match self.keys {
            Keys::Same => Some(format!("{}-k", self.customer)),
            Keys::Fresh => Some(format!("{}-{attempt}", self.customer)),
            Keys::Missing => None,
        };
        let charge = Charge {
            customer: &self.customer,
            amount: AMOUNT,
            idempotency_key: idempotency_key.as_deref(),
            ..Charge::default()
        };
        self.world.charge(&self.key, charge).await
    }

    /// As a client that does what `Stripe-Should-Retry` says: Stripe may not have noticed yet that
    /// the proxy gave up.
    async fn ask_until_known(&self, attempt: u32) -> Reply {
        for _ in 0..200 {
            let answer = self.ask(attempt).await;
            if code_of(&answer) != "idempotency_key_in_use" {
                return answer;
            }
            assert_eq!(answer.header("stripe-should-retry"), "true");
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{} is in use for ever", self.customer);
    }

    /// A repeat after the fault, when `charged` is what this customer's answers have named so far.
    fn check_repeat(&self, answer: &Reply, charged: &mut BTreeSet<String>) {
        match self.case.then {
            Then::Stored500 { .. } => return self.check(answer, (500, "")),
            Then::Declined if self.keys == Keys::Same => {
                return self.check(answer, (402, "card_declined"));
            }
            Then::Known | Then::Settles | Then::Declined | Then::Free => {}
        }
        let first_was_settled = self
            .world
            .sandbox
            .charges_of(&self.customer)
            .iter()
            .any(|made| charged.contains(&made.id));
        match (self.policy, self.keys) {
            ("reject", Keys::Fresh) if first_was_settled => {
                self.check(answer, (400, "duplicate_customer_period"));
            }
            ("flag", Keys::Fresh) => {
                self.check(answer, (200, ""));
                let another = charged.insert(id_of(answer));
                assert!(another, "{}", self.describe(answer));
            }
            _ => {
                self.check(answer, (200, ""));
                charged.insert(id_of(answer));
                assert_eq!(charged.len(), 1, "{}", self.describe(answer));
            }
        }
    }

    /// What was answered with 200 is what was charged, and one intent is charged once: under `flag` a
    /// fresh key is another one, by the operator's choice.
    fn check_charges(&self, charged: &BTreeSet<String>) {
        let made = self.world.sandbox.charges_of(&self.customer);
        let made: BTreeSet<String> = made.into_iter().map(|charge| charge.id).collect();
        if self.case.then == (Then::Stored500 { charged: true }) {
            assert_eq!(made.len(), 1, "{}", self.customer);
        } else {
            assert_eq!(&made, charged, "{}", self.customer);
        }
        if (self.policy, self.keys) != ("flag", Keys::Fresh) {
            assert!(made.len() <= 1, "{} {made:?}", self.customer);
        }
    }

    fn check(&self, answer: &Reply, (status, code): (u16, &str)) {
        let said = (answer.status.as_u16(), code_of(answer));
        assert_eq!(said, (status, code.to_owned()), "{}", self.describe(answer));
    }

    async fn rows(&self) -> Vec<Value> {
        let filter = format!("customer={}", self.customer);
        self.world.operator().reservations(&filter).await
    }

    fn describe(&self, answer: &Reply) -> String {
        let Self {
            policy, customer, ..
        } = self;
        format!("{policy} {customer}: {} {}", answer.status, answer.text)
    }
}

/// Held is exactly what Stripe answered with a stored 500: it may have charged, it will say nothing else
/// under that key, and absence is no proof (design §3.2, §3.4). Everything else is known.
async fn when_the_dust_has_settled(world: &World, key: &VaultKey) {
    world.pass_deadlines().await;
    let operator = world.operator();
    assert!(operator.reservations("state=in_flight").await.is_empty());
    let held = operator.reservations("state=held").await;
    let stored: Vec<&Case> = CASES
        .iter()
        .filter(|case| matches!(case.then, Then::Stored500 { .. }))
        .collect();
    assert_eq!(held.len(), stored.len() * 6, "{held:#?}");
    let mut charged_but_held = 0;
    for row in &held {
        let customer = row["customer"].as_str().unwrap();
        let by_right = |case: &&Case| customer.starts_with(&format!("cus_x_{}_", case.name));
        assert!(stored.iter().any(by_right), "{row}");
        let made = world.sandbox.charges_of(customer);
        charged_but_held += made.iter().map(|made| made.amount).sum::<i64>();
    }
    let cap = world.cap(key, "usd").await;
    let reserved = AMOUNT * i64::try_from(held.len()).unwrap();
    assert_eq!(cap["reserved"], reserved, "{cap}");
    assert_eq!(cap["settled"], world.taken() - charged_but_held, "{cap}");
    for row in &held {
        resolve_by_hand(world, row).await;
    }
    world.assert_balanced(key).await;
}

/// The operator looks at Stripe and says what became of a row.
async fn resolve_by_hand(world: &World, row: &Value) {
    let made = world.sandbox.charges_of(row["customer"].as_str().unwrap());
    let found = made.first().map_or_else(
        || json!({ "state": "released", "reason": "not there" }),
        |made| {
            let (amount, id) = (made.amount, &made.id);
            json!({ "state": "settled", "amount": amount, "object_id": id, "reason": "seen" })
        },
    );
    let path = format!("/v1/reservations/{}/resolve", row["id"].as_str().unwrap());
    let resolved = world.admin(Method::POST, &path, Some(found)).await;
    resolved.expect(200);
}

fn id_of(answer: &Reply) -> String {
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// `error.code`; empty where there is none, or the answer is some box's page.
fn code_of(answer: &Reply) -> String {
    let json: Option<Value> = serde_json::from_str(&answer.text).ok();
    let code = json
        .as_ref()
        .and_then(|json| json["error"]["code"].as_str());
    code.unwrap_or_default().to_owned()
}
