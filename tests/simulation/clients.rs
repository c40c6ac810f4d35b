//! Billing jobs: each bills its customers in turn, and sends again whatever it got no clear answer to.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use super::fleet::Fleet;
use super::replica::Reply;

/// How a job chooses its idempotency keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keys {
    /// One for each intent, on every attempt.
    Stable,
    /// Another one on every attempt.
    Fresh,
    /// None at all.
    None,
}

/// One charge a job wants made.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) vault_key: usize,
    pub(super) customer: u64,
    pub(super) reference: &'static str,
    pub(super) amount: i64,
    /// Authorise only; and how much to capture afterwards.
    pub(super) later: Option<Capture>,
    pub(super) keys: Keys,
    /// Of the intent, for its stable key.
    pub(super) number: u64,
    pub(super) note: &'static str,
}

/// How much of an authorised charge a job captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Capture {
    /// Never.
    Nothing,
    /// All of it, without naming an amount.
    All,
    /// This many percent.
    Percent(i64),
}

impl Intent {
    pub(super) fn draw(fleet: &Fleet, keys: Keys, number: u64) -> Self {
        let (world, scenario) = (&fleet.world, &fleet.scenario);
        let later = world.chance(300).then(|| {
            *world.pick(&[
                Capture::Nothing,
                Capture::All,
                Capture::All,
                Capture::Percent(100),
                Capture::Percent(50),
                Capture::Percent(130),
            ])
        });
        Self {
            vault_key: usize::try_from(world.below(u64::try_from(scenario.vault_keys).unwrap()))
                .unwrap(),
            customer: world.below(scenario.customers),
            reference: *world.pick(&["", "", "", "addon"]),
            amount: *world.pick(&[100, 100, 250]),
            later,
            keys,
            number,
            note: *world.pick(&["", "", "", "", "b"]),
        }
    }

    /// A small charge of a customer of its own: that it is in the feed shows that the feed is whole.
    pub(super) fn neighbour(number: u64) -> Self {
        Self {
            vault_key: 0,
            customer: number,
            reference: "",
            amount: 1,
            later: None,
            keys: Keys::Stable,
            number,
            note: "",
        }
    }

    fn slot(&self) -> String {
        format!("default/2026-08/cus_{}/{}", self.customer, self.reference)
    }

    fn body(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("amount", &self.amount.to_string());
        form.append_pair("currency", "usd");
        form.append_pair("customer", &format!("cus_{}", self.customer));
        if self.later.is_some() {
            form.append_pair("capture", "false");
        }
        if !self.note.is_empty() {
            form.append_pair("description", self.note);
        }
        form.append_pair("metadata[slot]", &self.slot());
        form.finish()
    }
}

/// What a client makes of an answer.
enum Heard {
    /// The charge, whole or authorised.
    Charge(String),
    /// A clear no.
    No,
    /// Ask again.
    Unclear,
}

/// Bills one intent until there is a clear answer, or patience is over; then captures, where it should.
pub(super) async fn bill(fleet: Arc<Fleet>, intent: Intent, tries: u32) {
    let Some(charge) = ask(&fleet, &intent, "/v1/charges", &intent.body(), tries).await else {
        return;
    };
    let amount = intent.amount;
    let slot = intent.slot();
    fleet
        .witness
        .see(|auditor| auditor.told(&charge, &slot, amount));
    let body = match intent.later {
        None | Some(Capture::Nothing) => return,
        Some(Capture::All) => String::new(),
        Some(Capture::Percent(percent)) => format!("amount={}", amount * percent / 100),
    };
    fleet.world.pause(0, 20_000).await;
    capture(&fleet, &intent, &charge, &body, tries).await;
}

/// Captures a charge.
pub(super) async fn capture(fleet: &Fleet, intent: &Intent, charge: &str, body: &str, tries: u32) {
    let path = format!("/v1/charges/{charge}/capture");
    if let Some(told) = ask(fleet, intent, &path, body, tries).await
        && told != charge
    {
        fleet
            .world
            .fail(&format!("a capture of {charge} was answered with {told}"));
    }
}

async fn ask(fleet: &Fleet, intent: &Intent, path: &str, body: &str, tries: u32) -> Option<String> {
    for attempt in 0..tries {
        let key = key(intent, path, attempt);
        match once(fleet, intent, path, body, key).await {
            Heard::Charge(id) => return Some(id),
            Heard::No => return None,
            Heard::Unclear => fleet.world.pause(20, 9_000).await,
        }
    }
    None
}

fn key(intent: &Intent, path: &str, attempt: u32) -> Option<String> {
    let what = path.rsplit('/').next().unwrap_or_default();
    match intent.keys {
        Keys::Stable => Some(format!("key-{}-{what}", intent.number)),
        Keys::Fresh => Some(format!("key-{}-{what}-{attempt}", intent.number)),
        Keys::None => None,
    }
}

async fn once(
    fleet: &Fleet,
    intent: &Intent,
    path: &str,
    body: &str,
    key: Option<String>,
) -> Heard {
    let world = &fleet.world;
    let replica = world.pick(&fleet.replicas);
    let mut request = Request::post(path)
        .header(
            "authorization",
            format!("Bearer {}", fleet.secret(intent.vault_key)),
        )
        .header("content-type", "application/x-www-form-urlencoded");
    if let Some(key) = &key {
        request = request.header("idempotency-key", key);
    }
    if !intent.reference.is_empty() {
        request = request.header("spendcap-reference", intent.reference);
    }
    let request = request
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    world.hop().await;
    // SDKs hang up after 80 s, others sooner.
    let patience_ms = if world.fault("a client hangs up", 100) {
        world.below(20_000)
    } else {
        80_000
    };
    let call = tokio::time::timeout(Duration::from_millis(patience_ms), replica.call(request));
    let reply = call.await.ok().flatten();
    let status = reply.as_ref().map(|reply| reply.status);
    let number = intent.number;
    world.say(format_args!(
        "client {number} of vk_{}: {path} {body} under {key:?}: {status:?}",
        intent.vault_key
    ));
    reply.map_or(Heard::Unclear, |reply| heard(&reply))
}

fn heard(reply: &Reply) -> Heard {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    match reply.status {
        200 => body["id"]
            .as_str()
            .map_or(Heard::Unclear, |id| Heard::Charge(id.to_owned())),
        400..=404 => Heard::No,
        _ => Heard::Unclear,
    }
}
