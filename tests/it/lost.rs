//! Commits that were confirmed and are gone: a standby that lagged and was promoted, an old backup. Money
//! is refused until Stripe's feed was read, and nobody is charged twice afterwards.

mod attribution;
mod backup;
mod gap;
mod servers;
mod standby;

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::support::http::Reply;
use crate::support::{Charge, VaultKey, World};

fn charge<'a>(customer: &'a str, idempotency_key: Option<&'a str>) -> Charge<'a> {
    Charge {
        customer,
        idempotency_key,
        ..Charge::default()
    }
}

/// Asks for the gap to be read.
async fn reconcile(world: &World, body: Value) -> Reply {
    world.admin(Method::POST, "/v1/reconcile", Some(body)).await
}

/// The job, from its beginning, with keys that nobody has seen: every customer at every replica.
async fn run_the_job_again(world: &World, key: &VaultKey, customers: u32) {
    for replica in 0..world.apps.len() {
        for n in 0..customers {
            let (customer, fresh) = (format!("cus_{n}"), uuid::Uuid::now_v7().to_string());
            let answer = world.try_charge(replica, key, charge(&customer, Some(&fresh)));
            answer.await.unwrap().expect(200);
        }
    }
}

/// By the sandbox's own books every customer was charged once.
fn assert_charged_once(world: &World, customers: u32) {
    let mut charges: BTreeMap<String, u32> = BTreeMap::new();
    for made in world.made() {
        *charges.entry(made.customer.unwrap()).or_default() += 1;
    }
    let once = (0..customers).map(|n| (format!("cus_{n}"), 1));
    assert_eq!(charges, once.collect());
}

/// When the newest reservation was made, in unix seconds; earlier is safe.
fn long_ago(world: &World) -> Value {
    json!(world.clock.now().unix_seconds() - 3600)
}
