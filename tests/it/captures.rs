//! Captures: of charges that spendcap made, and of ones that were authorised past it.

mod elsewhere;
mod faults;
mod repeats;

use hyper::Method;
use serde_json::{Value, json};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind};

use crate::support::http::Reply;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];

const AUTHORISE: Charge<'_> = Charge {
    customer: "cus_1",
    amount: 10_000,
    currency: "usd",
    idempotency_key: None,
    more: "&capture=false",
    headers: Vec::new(),
};

/// A capture to ask for.
#[derive(Clone, Copy, Default)]
struct Capture<'a> {
    replica: usize,
    /// The whole charge where none is named.
    amount: Option<i64>,
    idempotency_key: Option<&'a str>,
}

impl Capture<'_> {
    async fn ask(self, world: &World, key: &VaultKey, charge: &str) -> Reply {
        let bearer = format!("Bearer {}", key.secret);
        let mut headers = vec![
            ("authorization", bearer.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        headers.extend(self.idempotency_key.map(|key| ("idempotency-key", key)));
        let amount = self.amount.map(|amount| format!("amount={amount}"));
        let url = format!(
            "{}/v1/charges/{charge}/capture",
            world.proxy_url(self.replica)
        );
        let body = amount.unwrap_or_default();
        world.client.send(Method::POST, &url, &headers, body).await
    }
}

const WHOLE: Capture<'_> = Capture {
    replica: 0,
    amount: None,
    idempotency_key: None,
};

fn part(amount: i64) -> Capture<'static> {
    Capture {
        amount: Some(amount),
        ..WHOLE
    }
}

/// Authorises $100.00 through the proxy; returns the charge's id.
async fn authorise(world: &World, key: &VaultKey) -> String {
    let charge = world.charge(key, AUTHORISE).await.expect(200).json();
    id(&charge)
}

/// Authorises $100.00 straight at Stripe, so that no reservation knows of it.
async fn authorise_past_the_proxy(world: &World) -> String {
    let stripe = world.sandbox.base_url();
    let made = try_charge(&world.client, &stripe, REAL_KEY, AUTHORISE).await;
    id(&made.unwrap().expect(200).json())
}

/// Refunds the whole charge straight at Stripe; an authorised one is voided by it.
async fn refund(world: &World, charge: &str) {
    let bearer = format!("Bearer {REAL_KEY}");
    let url = format!("{}/v1/refunds", world.sandbox.base_url());
    let body = format!("charge={charge}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let refunded = world.client.send(Method::POST, &url, &headers, body).await;
    refunded.expect(200);
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// How many captures reached Stripe.
fn captures_sent(world: &World) -> usize {
    let seen = world.sandbox.requests();
    seen.iter()
        .filter(|one| one.path.ends_with("/capture"))
        .count()
}

/// What the key's usd cap shows as reserved and settled.
async fn books(world: &World, key: &VaultKey) -> (i64, i64) {
    let cap = world.cap(key, "usd").await;
    (
        cap["reserved"].as_i64().unwrap(),
        cap["settled"].as_i64().unwrap(),
    )
}

async fn state(world: &World, key: &VaultKey) -> Value {
    world.reservations(key).await[0]["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyless_capture_is_made_once_and_repeated_with_what_exists() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(100_000, json!({})).await;
        let charge = authorise(&world, &key).await;
        assert_eq!(world.cap(&key, "usd").await["reserved"], 10_000);
        let first = part(6_000).ask(&world, &key, &charge).await.expect(200);
        assert_eq!(first.json()["amount_captured"], 6_000);
        let again = part(6_000).ask(&world, &key, &charge).await.expect(200);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.json()["amount_captured"], 6_000);
        world.assert_balanced(&key).await;
    }
}

/// The first capture asked for a part and came to nothing; the next one asks for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_authorised_past_the_proxy_is_reserved_as_stripe_shows_it() {
    for kind in LEDGERS {
        let world = World::on(kind).await;
        let key = world.issue(9_000, json!({})).await;
        let charge = authorise_past_the_proxy(&world).await;
        let limited = Fault::new(FaultKind::RateLimit429).method("POST").times(1);
        world.sandbox.add_fault(limited);
        part(5_000).ask(&world, &key, &charge).await.expect(429);
        let refused = WHOLE.ask(&world, &key, &charge).await.expect(402);
        assert_eq!(refused.code(), "spend_cap_reached");
        assert_eq!(
            world.taken(),
            0,
            "more than the cap would have been captured"
        );
        part(9_900).ask(&world, &key, &charge).await.expect(200);
        world.assert_balanced(&key).await;
    }
}
