//! What a second request meets, one after the other, under every `on_duplicate`: what it is answered,
//! what Stripe sees, what is flagged.

mod keys;
mod observe;
mod time;

use serde_json::json;

use crate::support::http::Reply;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

/// The sandbox's own account, which is the platform's.
const PLATFORM: &str = "acct_1SpendcapSandbox";

const DUPLICATE: &str = "duplicate_customer_period";

/// What the second request comes to.
#[derive(Clone, Copy, Debug)]
enum Meets {
    /// The charge that exists.
    First,
    /// A charge of its own, flagged or not.
    New { flags: &'static str },
    /// A refusal.
    Refused,
}

const FLAGGED: Meets = Meets::New { flags: DUPLICATE };
const LAWFUL: Meets = Meets::New { flags: "" };

/// The second request, and what it meets under replay, reject and flag.
fn second_requests() -> Vec<(&'static str, Charge<'static>, [Meets; 3])> {
    use Meets::{First, Refused};
    let base = Charge::default();
    let with_header = |header| Charge {
        headers: vec![header],
        ..Charge::default()
    };
    vec![
        ("same amount", base.clone(), [First, Refused, FLAGGED]),
        (
            "other metadata, description and source",
            Charge {
                more: "&metadata[run]=2&description=again&source=tok_visa",
                ..base.clone()
            },
            [First, Refused, FLAGGED],
        ),
        (
            "other amount",
            Charge {
                amount: 5_000,
                ..base
            },
            [FLAGGED, Refused, FLAGGED],
        ),
        (
            "a reference",
            with_header(("spendcap-reference", "addon")),
            [LAWFUL; 3],
        ),
        (
            "another account",
            with_header(("stripe-account", "acct_other")),
            [LAWFUL; 3],
        ),
        (
            "the platform's own account by name",
            with_header(("stripe-account", PLATFORM)),
            [First, Refused, FLAGGED],
        ),
        (
            "the same, as a context",
            with_header(("stripe-context", PLATFORM)),
            [First, Refused, FLAGGED],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_meets_its_policy() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        for (column, policy) in ["replay", "reject", "flag"].into_iter().enumerate() {
            let more = json!({ "on_duplicate": policy, "billing_period": policy,
                "accounts": ["acct_other"] });
            let key = world.issue(1_000_000, more).await;
            for (row, (name, second, meets)) in second_requests().into_iter().enumerate() {
                // Fresh keys, as Stripe knows them in every period.
                let keys = ["first", "second"].map(|key| format!("{policy}-{row}-{key}"));
                let customer = format!("cus_{policy}{row}");
                let case = Case {
                    name: format!("{kind:?} {policy} {name}"),
                    customer: &customer,
                    keys: &keys,
                };
                case.check(&world, &key, second, meets[column]).await;
            }
        }
    }
}

struct Case<'a> {
    name: String,
    customer: &'a str,
    keys: &'a [String; 2],
}

impl Case<'_> {
    async fn check(&self, world: &World, key: &VaultKey, second: Charge<'_>, meets: Meets) {
        let name = &self.name;
        let first = Charge {
            customer: self.customer,
            idempotency_key: Some(&self.keys[0]),
            ..Charge::default()
        };
        let first = world.charge(key, first).await.expect(200);
        assert_eq!(first.header("spendcap-flags"), "", "{name}");
        let second = Charge {
            customer: self.customer,
            idempotency_key: Some(&self.keys[1]),
            ..second
        };
        let sent = world.sandbox.requests_total();
        let reply = world.charge(key, second.clone()).await;
        let made = world.sandbox.charges_of(self.customer).len();
        let flags = reply.header("spendcap-flags").to_owned();
        match meets {
            Meets::First => {
                assert_same(&reply.expect(200), &first, name);
                assert_eq!((made, flags.as_str()), (1, DUPLICATE), "{name}");
            }
            Meets::New { flags: expected } => {
                let reply = reply.expect(200);
                assert_ne!(reply.json()["id"], first.json()["id"], "{name}");
                assert_eq!(reply.header("idempotent-replayed"), "", "{name}");
                assert_eq!((made, flags.as_str()), (2, expected), "{name}");
                // Its own repeats are no third charge, whatever the policy.
                let again = world.charge(key, second).await.expect(200);
                assert_same(&again, &reply, name);
                assert_eq!(world.sandbox.charges_of(self.customer).len(), 2);
            }
            Meets::Refused => {
                assert_rejected(&reply.expect(400), &first, name);
                assert_eq!((made, flags.as_str()), (1, DUPLICATE), "{name}");
                assert_eq!(world.sandbox.requests_total(), sent, "{name}");
            }
        }
    }
}

fn assert_same(reply: &Reply, first: &Reply, name: &str) {
    assert_eq!(reply.json()["id"], first.json()["id"], "{name}");
    assert_eq!(reply.header("idempotent-replayed"), "true", "{name}");
}

/// The refusal names the first charge and the header that tells lawful charges apart.
fn assert_rejected(reply: &Reply, first: &Reply, name: &str) {
    assert_eq!(reply.code(), DUPLICATE, "{name}");
    let error = &reply.json()["error"];
    assert_eq!(error["type"], "idempotency_error", "{name}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Spendcap-Reference"), "{name} {message}");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert!(message.contains(&id), "{name} {message}");
    assert_eq!(reply.header("stripe-should-retry"), "false", "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_the_key_does_not_allow_is_refused() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world
            .issue(100_000, json!({ "accounts": ["acct_other"] }))
            .await;
        let before = world.sandbox.requests_total();
        for header in ["stripe-account", "stripe-context"] {
            let charge = Charge {
                headers: vec![(header, "acct_third")],
                ..Charge::default()
            };
            let refused = world.charge(&key, charge).await.expect(403);
            assert_eq!(refused.code(), "account_not_permitted");
        }
        assert_eq!(world.sandbox.requests_total(), before);
        let allowed = Charge {
            headers: vec![("stripe-account", "acct_other")],
            ..Charge::default()
        };
        world.charge(&key, allowed).await.expect(200);
        assert_eq!(world.made()[0].account, "acct_other");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_without_a_customer_is_capped_and_flagged_or_refused() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(18_000, json!({})).await;
        let nobody = |key| Charge {
            customer: "",
            idempotency_key: Some(key),
            more: "&source=tok_visa",
            ..Charge::default()
        };
        for name in ["one", "two"] {
            let made = world.charge(&key, nobody(name)).await.expect(200);
            assert_eq!(made.header("spendcap-flags"), "unattributed");
        }
        assert_eq!(world.operator().flagged(&key, "unattributed").await, 2);
        let capped = world.charge(&key, nobody("three")).await.expect(402);
        assert_eq!(capped.code(), "spend_cap_reached");
        let strict = world
            .issue(100_000, json!({ "require_customer": true }))
            .await;
        let refused = world.charge(&strict, nobody("four")).await.expect(400);
        assert_eq!(refused.code(), "customer_required");
        assert!(world.reservations(&strict).await.is_empty());
        assert_eq!(world.made().len(), 2);
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_answers_with_the_callers_own_expand() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let plain = world.charge(&key, Charge::default()).await.expect(200);
        assert!(plain.json()["customer"].is_string());
        let expanding = Charge {
            idempotency_key: Some("expanding"),
            more: "&expand[]=customer&expand[]=balance_transaction",
            ..Charge::default()
        };
        let expanded = world.charge(&key, expanding).await.expect(200);
        assert_same(&expanded, &plain, "expanded");
        assert_eq!(expanded.json()["customer"]["id"], "cus_1");
        assert_eq!(
            expanded.json()["balance_transaction"]["object"],
            "balance_transaction"
        );
        assert_eq!(world.made().len(), 1);
    }
}
