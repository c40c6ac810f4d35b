//! One function for each refusal: it sets the scene, and says what to call.

use http::Method;
use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT as REAL_KEY;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use crate::sdks::stage::{AMOUNT_MINOR, Ask, Stage, create};
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey};

/// Over the stage's `proxy.body_bytes_max`.
const TOO_LARGE: usize = 20_000;

pub(super) async fn declined(stage: &Stage, who: &str) -> Ask {
    stage.fault("POST", FaultKind::Decline, who);
    stage.ask(who, json!({}), create(who, &json!({}))).await
}

pub(super) async fn cap(stage: &Stage, who: &str, status: u16) -> Ask {
    let key = json!({ "refusal_status": status });
    let call = create(who, &json!({ "amount": 11 * AMOUNT_MINOR + 1 }));
    stage.ask(who, key, call).await
}

pub(super) async fn largest(stage: &Stage, who: &str, status: u16) -> Ask {
    let key = json!({ "refusal_status": status, "max_charge": { "usd": AMOUNT_MINOR - 1 } });
    stage.ask(who, key, create(who, &json!({}))).await
}

pub(super) async fn duplicate(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({ "on_duplicate": "reject" })).await;
    charge(stage, &key, who).await;
    stage.ask_under(&key, create(who, &json!({})))
}

pub(super) async fn reused(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    charge(stage, &key, who).await;
    let mut call = create(who, &json!({ "amount": 1 }));
    call["idempotency_key"] = first_key(who).into();
    stage.ask_under(&key, call)
}

pub(super) async fn currency(stage: &Stage, who: &str) -> Ask {
    let call = create(who, &json!({ "currency": "eur" }));
    stage.ask(who, json!({}), call).await
}

pub(super) async fn nobody(stage: &Stage, who: &str) -> Ask {
    let key = json!({ "require_customer": true });
    let call = create(who, &json!({ "customer": null }));
    stage.ask(who, key, call).await
}

pub(super) async fn malformed(stage: &Stage, who: &str) -> Ask {
    let call = create(who, &json!({ "amount": 0 }));
    stage.ask(who, json!({}), call).await
}

pub(super) async fn captured(stage: &Stage, who: &str) -> Ask {
    let charge = Charge {
        customer: who,
        amount: AMOUNT_MINOR,
        ..Charge::default()
    };
    let stripe = stage.open.sandbox.base_url();
    let made = try_charge(&stage.open.client, &stripe, REAL_KEY, charge).await;
    let id = made.unwrap().expect(200).json()["id"].clone();
    let call = json!({ "call": "charges.capture", "id": id });
    stage.ask(who, json!({}), call).await
}

pub(super) async fn missing(stage: &Stage, who: &str) -> Ask {
    let call = json!({ "call": "charges.capture", "id": "ch_that_is_not_there" });
    stage.ask(who, json!({}), call).await
}

pub(super) async fn invalid(stage: &Stage, who: &str) -> Ask {
    let mut ask = stage.ask(who, json!({}), create(who, &json!({}))).await;
    // One sign of its checksum is another.
    let last = ask.secret.pop().unwrap();
    ask.secret.push(if last == '0' { '1' } else { '0' });
    ask
}

pub(super) async fn revoked(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    let path = format!("/v1/vault_keys/{}/revoke", key.id);
    let reason = json!({ "reason": "leaked" });
    let revoked = stage.open.admin(Method::POST, &path, Some(reason)).await;
    revoked.expect(200);
    stage.ask_under(&key, create(who, &json!({})))
}

pub(super) async fn early(stage: &Stage, who: &str) -> Ask {
    let tomorrow = stage.open.clock.now().unix_seconds() + 86_400;
    let key = json!({ "starts_at": tomorrow });
    stage.ask(who, key, create(who, &json!({}))).await
}

/// The operator found more at Stripe than was reserved.
pub(super) async fn stopped(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    lose(stage, &key, who).await;
    let row = stage.row(who, "held").await;
    let path = format!("/v1/reservations/{}/resolve", row["id"].as_str().unwrap());
    let found = json!({ "state": "settled", "amount": AMOUNT_MINOR + 1, "object_id": format!("ch_{who}"), "unread": true, "reason": "seen" });
    let resolved = stage.open.admin(Method::POST, &path, Some(found)).await;
    resolved.expect(200);
    stage.ask_under(&key, create(&format!("{who}_2"), &json!({})))
}

pub(super) async fn operation(stage: &Stage, who: &str) -> Ask {
    let call = json!({ "call": "refunds.create", "params": { "charge": "ch_1" } });
    stage.ask(who, json!({}), call).await
}

pub(super) async fn account(stage: &Stage, who: &str) -> Ask {
    let mut call = create(who, &json!({}));
    call["stripe_account"] = "acct_other".into();
    stage.ask(who, json!({}), call).await
}

/// Another replica's request, under another key, is still at Stripe.
pub(super) async fn in_use(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    let at = Moment::BeforeCommit;
    stage.fault("POST", FaultKind::Gate { at }, who);
    let (client, url) = (stage.open.client.clone(), stage.open.proxy_url(0));
    let (secret, customer) = (key.secret.clone(), who.to_owned());
    tokio::spawn(async move {
        let first = Charge {
            customer: &customer,
            amount: AMOUNT_MINOR,
            ..Charge::default()
        };
        // It ends with the sandbox.
        let _ended = try_charge(&client, &url, &secret, first).await;
    });
    stage.row(who, "in_flight").await;
    stage.ask_under(&key, create(who, &json!({})))
}

/// Nobody knows what became of the first request, and its body is not stored: only the very same can be
/// sent in its place.
pub(super) async fn held(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    lose(stage, &key, who).await;
    stage.ask_under(&key, create(who, &json!({ "description": "another" })))
}

pub(super) async fn large(stage: &Stage, who: &str) -> Ask {
    let call = create(who, &json!({ "description": "x".repeat(TOO_LARGE) }));
    stage.ask(who, json!({}), call).await
}

pub(super) async fn unreadable(stage: &Stage, who: &str) -> Ask {
    let key = stage.key(who, json!({})).await;
    charge(stage, &key, who).await;
    stage.fault("GET", FaultKind::Status503, who);
    stage.ask_under(&key, create(who, &json!({})))
}

pub(super) async fn unanswered(stage: &Stage, who: &str) -> Ask {
    stage.fault("POST", FaultKind::CommitThenFin, who);
    stage.ask(who, json!({}), create(who, &json!({}))).await
}

/// The first send, and the default of `upstream.resends_max`.
const SENDS_MAX: u32 = 1 + 2;

fn first_key(who: &str) -> String {
    format!("{who}-first")
}

/// A charge that is made, by another program.
async fn charge(stage: &Stage, key: &VaultKey, who: &str) {
    first(stage, key, who, 200).await;
}

/// A charge that Stripe does not answer, however often spendcap asks.
async fn lose(stage: &Stage, key: &VaultKey, who: &str) {
    let fault = Fault::new(FaultKind::ResetBeforeCommit).method("POST");
    stage
        .open
        .sandbox
        .add_fault(fault.customer(who).times(SENDS_MAX));
    first(stage, key, who, 504).await;
}

async fn first(stage: &Stage, key: &VaultKey, who: &str, status: u16) {
    let first_key = first_key(who);
    let first = Charge {
        customer: who,
        amount: AMOUNT_MINOR,
        idempotency_key: Some(&first_key),
        ..Charge::default()
    };
    stage.open.charge(key, first).await.expect(status);
}
