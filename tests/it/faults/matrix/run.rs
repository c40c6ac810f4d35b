//! One customer's story: a fault meets the first request, then it is repeated.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use spendcap::sandbox::Fault;

use super::cases::{Case, Then};
use super::{AMOUNT, Keys};
use crate::support::http::Reply;
use crate::support::{Charge, VaultKey, World};

/// One customer's story.
pub(super) struct Run {
    pub(super) world: Arc<World>,
    pub(super) key: VaultKey,
    pub(super) policy: &'static str,
    pub(super) case: &'static Case,
    pub(super) keys: Keys,
    pub(super) customer: String,
}

impl Run {
    pub(super) async fn in_turn(self) {
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
    pub(super) async fn at_once(self) {
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
        let fault = Fault::new(self.case.fault).method("POST");
        let fault = fault.times(self.case.times);
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
        for _ in 0..500 {
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
