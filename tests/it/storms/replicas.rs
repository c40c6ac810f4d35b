//! Three processes on one PostgreSQL behave as one: no cap is passed by asking them at once, repeats wait
//! for each other, what an operator does at one holds at all, and whoever is left ends what a dead one began.

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tokio::task::JoinSet;

use crate::support::Charge;
use crate::support::fleet::Fleet;
use crate::support::http::Client;
use crate::support::patience::{until, within};
use crate::support::raw::RawClient;
use crate::support::world::try_charge;

const REPLICAS: usize = 3;
const AMOUNT: i64 = 9_900;

#[tokio::test(flavor = "multi_thread")]
async fn of_300_charges_at_once_exactly_the_50_that_fit_reach_stripe() {
    const FIT: i64 = 50;
    let fleet = Fleet::start(REPLICAS, &[]).await;
    let key = fleet.issue(FIT * AMOUNT, json!({ "headroom": "1" })).await;
    let mut charges = JoinSet::new();
    let clients: [Client; REPLICAS] = std::array::from_fn(|_| Client::http2());
    for n in 0..300 {
        let (client, secret) = (clients[n % REPLICAS].clone(), key.secret.clone());
        let url = format!("http://{}", fleet.proxy(n % REPLICAS));
        charges.spawn(async move {
            let customer = format!("cus_{n}");
            let answer = try_charge(&client, &url, &secret, charge(&customer, &customer)).await;
            let answer = answer.unwrap();
            (answer.status.as_u16(), answer.code())
        });
    }
    let mut passed = 0;
    for answer in charges.join_all().await {
        match answer {
            (200, _) => passed += 1,
            refused => assert_eq!(refused, (402, "spend_cap_reached".to_owned())),
        }
    }
    assert_eq!(passed, FIT);
    assert_eq!(fleet.taken(), FIT * AMOUNT);
    for index in 0..REPLICAS {
        fleet.assert_balanced(index, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_wait_for_the_first_one_at_another_process() {
    let fleet = Fleet::start(REPLICAS, &[]).await;
    let key = fleet.issue(1_000_000, json!({})).await;
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST");
    fleet.sandbox.add_fault(gate.once());
    let first = fleet.charge(0, &key, charge("cus_1", "k1"));
    let repeats = async {
        within("requests at Stripe", fleet.sandbox.wait_until_held(1)).await;
        tokio::join!(
            fleet.charge(1, &key, charge("cus_1", "k1")),
            fleet.charge(2, &key, charge("cus_1", "k2")),
        )
    };
    let release = async {
        within("requests at Stripe", fleet.sandbox.wait_until_held(1)).await;
        until("both repeats are seen", async || {
            let mut seen = 0;
            for kind in ["idempotency_key_repeated", "duplicate_customer_period"] {
                seen += fleet.operator(0).flagged(&key, kind).await;
            }
            (seen == 2).then_some(())
        })
        .await;
        assert_eq!(fleet.posts(), 1);
        fleet.sandbox.release_gate();
    };
    let (first, (second, third), ()) = tokio::join!(first, repeats, release);
    let id = first.expect(200).json()["id"].clone();
    for repeat in [second, third] {
        let repeat = repeat.expect(200);
        assert_eq!(repeat.json()["id"], id);
        assert_eq!(repeat.header("idempotent-replayed"), "true");
    }
    assert_eq!((fleet.posts(), fleet.sandbox.charges().len()), (1, 1));
    fleet.assert_balanced(2, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_does_holds_for_the_next_request_at_every_process() {
    let fleet = Fleet::start(REPLICAS, &[]).await;
    let key = fleet.issue(2 * AMOUNT, json!({ "headroom": "1" })).await;
    let path = format!("/v1/vault_keys/{}", key.id);
    for (round, action) in ["raise", "revoke"].into_iter().enumerate() {
        // Every process has seen the key, and knows by itself what it was before.
        for (index, status) in [(0, 200), (1, 200), (2, 402)] {
            let customer = format!("cus_{round}_{index}");
            let answer = fleet.charge(index, &key, charge(&customer, &customer));
            answer.await.expect(status);
        }
        let (path, wish) = match action {
            "raise" => (
                path.clone(),
                json!({ "expected_total": 4 * AMOUNT, "currency": "usd", "reason": "test" }),
            ),
            _ => (format!("{path}/revoke"), json!({ "reason": "test" })),
        };
        let at = fleet.operator(round);
        at.admin(Method::POST, &path, Some(wish)).await.expect(200);
    }
    let posts = fleet.posts();
    for index in (0..REPLICAS).rev() {
        let refused = fleet.charge(index, &key, charge("cus_after", "k")).await;
        assert_eq!(refused.expect(401).code(), "vault_key_revoked");
    }
    assert_eq!(fleet.posts(), posts);
    fleet.assert_balanced(2, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_had_under_way_is_held_by_another_and_repeated_at_a_third() {
    const UNDER_WAY: u32 = 5;
    let settings = [("SPENDCAP_PROXY_REPEAT_WAIT_MS", "200")];
    let mut fleet = Fleet::start(REPLICAS, &settings).await;
    let key = fleet.issue(1_000_000, json!({})).await;
    for at in [Moment::BeforeCommit, Moment::AfterCommit] {
        let gate = Fault::new(FaultKind::Gate { at }).method("POST");
        fleet.sandbox.add_fault(gate.times(UNDER_WAY));
        let customers = (0..UNDER_WAY).map(|n| format!("cus_{at:?}_{n}"));
        let customers: Vec<String> = customers.collect();
        let owner = fleet.another(&[]).await;
        let mut clients = Vec::new();
        for customer in &customers {
            let asked = charge(customer, customer);
            clients.push(RawClient::charge(owner.proxy, &key, &asked).await);
        }
        let held = customers.len();
        within("requests at Stripe", fleet.sandbox.wait_until_held(held)).await;
        drop(owner);
        fleet.sandbox.release_gate();
        // Nobody but the owner may say before the deadline that it is lost.
        for index in 0..REPLICAS {
            let early = fleet.charge(index, &key, charge(&customers[0], "early"));
            assert_eq!(early.await.expect(409).code(), "idempotency_key_in_use");
        }
        fleet.until_state(0, "in_flight", held).await;
        fleet.bring_deadlines_forward().await;
        fleet.until_state(0, "held", held).await;
        for (n, customer) in customers.iter().enumerate() {
            let again = format!("{customer}-again");
            let answer = fleet.charge(n % REPLICAS, &key, charge(customer, &again));
            let answer = answer.await.expect(200).json();
            let made = fleet.sandbox.charges_of(customer);
            assert_eq!(made.len(), 1, "{made:?}");
            assert_eq!(answer["id"], made[0].id.as_str());
        }
        fleet.assert_balanced(1, &key).await;
        // One process after the other is lost, and the rest go on.
        fleet.replicas[2].kill();
        fleet.replicas[2] = fleet.another(&[]).await;
    }
}

fn charge<'a>(customer: &'a str, idempotency_key: &'a str) -> Charge<'a> {
    Charge {
        customer,
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}
