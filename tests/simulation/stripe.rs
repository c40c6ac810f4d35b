//! Stripe, as far as money goes (contract §2): it remembers idempotency keys for a day, stores what its
//! executions came to, and fails before, during and after them.

mod answers;
mod charges;
mod events;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, request};

use super::auditor::Sent;
use super::scenario::Scenario;
use super::witness::Witness;
use super::world::{World, lock};
use answers::Answer;
use charges::{Charge, Refusal};
use events::Events;

/// Stripe may forget a key once it is this old.
const REMEMBERED_MS: i64 = 24 * 3_600_000;

/// A request as it travels.
pub(super) struct Message {
    method: Method,
    path: String,
    query: String,
    key: String,
    form: BTreeMap<String, String>,
}

impl Message {
    pub(super) fn new(parts: &request::Parts, body: &[u8]) -> Self {
        let key = parts.headers.get("idempotency-key");
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            key: key
                .map(|key| key.to_str().unwrap().to_owned())
                .unwrap_or_default(),
            form: form_urlencoded::parse(body).into_owned().collect(),
        }
    }

    /// The charge that the request captures.
    fn captures(&self) -> Option<&str> {
        self.path
            .strip_prefix("/v1/charges/")?
            .strip_suffix("/capture")
    }

    fn amount(&self) -> Option<i64> {
        Some(self.form.get("amount")?.parse().unwrap())
    }
}

/// What Stripe remembers under a key.
struct Remembered {
    path: String,
    form: BTreeMap<String, String>,
    since_ms: i64,
    /// `None` while the first request runs.
    answer: Option<Answer>,
}

pub(super) struct Stripe {
    world: Arc<World>,
    witness: Arc<Witness>,
    scenario: Scenario,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: u64,
    charges: BTreeMap<String, Charge>,
    keys: BTreeMap<String, Remembered>,
    events: Events,
}

impl Stripe {
    pub(super) fn new(world: Arc<World>, witness: Arc<Witness>, scenario: Scenario) -> Arc<Self> {
        Arc::new(Self {
            world,
            witness,
            scenario,
            inner: Mutex::default(),
        })
    }

    /// A request left a proxy: from here on it may be carried out.
    pub(super) fn left(&self, message: &Message) -> u64 {
        if message.method != Method::POST {
            return 0;
        }
        let mut inner = lock(&self.inner);
        inner.messages += 1;
        let number = inner.messages;
        let charge = message.captures().map(str::to_owned);
        let whole = charge.as_ref().and_then(|id| inner.charges.get(id));
        let amount = message.amount().or_else(|| Some(whole?.amount));
        drop(inner);
        let (key, amount) = (message.key.clone(), amount.unwrap_or(0));
        self.world.say(format_args!(
            "#{number} leaves: {} {amount} under {key}",
            message.path
        ));
        self.witness.see(|auditor| {
            auditor.left(Sent {
                at_ms: self.world.ms(),
                number,
                key,
                amount,
                charge,
            })
        });
        number
    }

    /// A request will never be carried out.
    pub(super) fn never(&self, number: u64) {
        self.over(number, "never arrives");
    }

    fn over(&self, number: u64, how: &str) {
        if number > 0 {
            self.world.say(format_args!("#{number} {how}"));
            self.witness.see(|auditor| auditor.over(number));
        }
    }

    /// A request arrives.
    pub(super) async fn handle(self: &Arc<Self>, number: u64, message: Message) -> Response<Bytes> {
        let answer = if message.method == Method::POST {
            self.post(number, message).await
        } else {
            self.read(&message)
        };
        if self.world.fault(
            "an answer becomes a page of HTML",
            self.scenario.trouble_permille / 4,
        ) {
            return Answer::html(502).response();
        }
        answer.response()
    }

    fn read(&self, message: &Message) -> Answer {
        if self
            .world
            .fault("a read fails", self.scenario.trouble_permille)
        {
            return self
                .world
                .pick(&[Answer::rate_limited(), Answer::server_error()])
                .clone();
        }
        if message.path == "/v1/events" {
            let page = lock(&self.inner)
                .events
                .page(&message.query, self.world.ms());
            return Answer::ok(page);
        }
        let Some(id) = message.path.strip_prefix("/v1/charges/") else {
            return Answer::account();
        };
        lock(&self.inner)
            .charges
            .get(id)
            .map_or_else(Answer::not_found, |charge| Answer::ok(charge.json()))
    }

    async fn post(self: &Arc<Self>, number: u64, message: Message) -> Answer {
        if self.world.fault(
            "Stripe refuses before it looks",
            self.scenario.trouble_permille,
        ) {
            let refused = self.world.pick(&Answer::BEFORE_EXECUTION)();
            self.over(number, &format!("is refused with {}", refused.status));
            return refused;
        }
        if let Some(answer) = self.remembered(&message) {
            self.over(number, &format!("is known, answered {}", answer.status));
            return answer;
        }
        self.remember(&message);
        self.world.say(format_args!("#{number} runs"));
        self.witness.see(|auditor| auditor.began(number));
        if self
            .world
            .fault("Stripe is slow", self.scenario.trouble_permille)
        {
            self.world.pause(1_000, 100_000).await;
        } else {
            self.world.pause(0, 200).await;
        }
        self.execute(number, &message)
    }

    fn remembered(&self, message: &Message) -> Option<Answer> {
        let mut inner = lock(&self.inner);
        let known = inner.keys.get(&message.key)?;
        let old = self.world.ms() - known.since_ms >= REMEMBERED_MS;
        let Some(answer) = known.answer.clone() else {
            return Some(Answer::in_use());
        };
        if old {
            inner.keys.remove(&message.key);
            drop(inner);
            self.world.say(format_args!("forgets {}", message.key));
            self.witness.see(|auditor| auditor.forgot(&message.key));
            return None;
        }
        if (&known.path, &known.form) != (&message.path, &message.form) {
            return Some(Answer::key_reused());
        }
        Some(answer.replayed())
    }

    fn remember(&self, message: &Message) {
        let remembered = Remembered {
            path: message.path.clone(),
            form: message.form.clone(),
            since_ms: self.world.ms(),
            answer: None,
        };
        lock(&self.inner)
            .keys
            .insert(message.key.clone(), remembered);
    }

    /// Carries a request out and stores what came of it.
    fn execute(self: &Arc<Self>, number: u64, message: &Message) -> Answer {
        let trouble = self.scenario.trouble_permille;
        if self
            .world
            .fault("Stripe fails and does it later", trouble / 3)
        {
            self.do_later(number, message);
            return self.store(message, Answer::server_error());
        }
        let done = if self
            .world
            .fault("Stripe fails and does nothing", trouble / 3)
        {
            self.store(message, Answer::server_error())
        } else if self
            .world
            .fault("a card is declined", self.scenario.decline_permille)
        {
            self.store(message, Answer::declined())
        } else {
            let answer = self.carry_out(number, message);
            let fails =
                answer.status == 200 && self.world.fault("Stripe does it and fails", trouble / 3);
            self.store(
                message,
                if fails {
                    Answer::server_error()
                } else {
                    answer
                },
            )
        };
        self.over(number, &format!("is answered {}", done.status));
        done
    }

    fn store(&self, message: &Message, answer: Answer) -> Answer {
        if let Some(known) = lock(&self.inner).keys.get_mut(&message.key) {
            known.answer = Some(answer.clone());
        }
        answer
    }

    /// An operation that was interrupted is rolled forward within the hour (contract §2.4).
    fn do_later(self: &Arc<Self>, number: u64, message: &Message) {
        let ms = self.world.below(3_600_000);
        let stripe = Arc::clone(self);
        let message = Message {
            method: message.method.clone(),
            path: message.path.clone(),
            query: String::new(),
            key: message.key.clone(),
            form: message.form.clone(),
        };
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            stripe.carry_out(number, &message);
            stripe.over(number, "is rolled forward");
        });
    }

    fn carry_out(&self, number: u64, message: &Message) -> Answer {
        let mut inner = lock(&self.inner);
        let charge = match message.captures() {
            None => {
                let next = inner.charges.len() + 1;
                let charge = Charge::made(next, number, self.world.ms(), &message.form);
                inner.charges.insert(charge.id.clone(), charge.clone());
                charge
            }
            Some(id) => {
                let Some(charge) = inner.charges.get_mut(id) else {
                    return Answer::not_found();
                };
                match charge.capture(message.amount()) {
                    Ok(()) => charge.clone(),
                    Err(Refusal) => return Answer::not_capturable(),
                }
            }
        };
        drop(inner);
        let kind = message
            .captures()
            .map_or("charge.succeeded", |_| "charge.captured");
        self.happened(kind, Some(&message.key), &charge);
        Answer::ok(charge.json())
    }

    /// Something happened to a charge; the feed shows it, sooner or later.
    fn happened(&self, kind: &'static str, key: Option<&str>, charge: &Charge) {
        let late_ms = if self.world.fault("an event is late", 100) {
            self.world.below(120_000)
        } else {
            self.world.below(500)
        };
        let now = self.world.ms();
        let shown_at = now + i64::try_from(late_ms).unwrap();
        let json = charge.json();
        lock(&self.inner)
            .events
            .add(kind, key, &json, (now, shown_at));
        self.tell(charge);
    }

    fn tell(&self, charge: &Charge) {
        self.world.say(format_args!("{charge:?}"));
        self.witness.see(|auditor| auditor.charge(charge.plain()));
    }

    /// Somebody authorises a charge past the proxy; it is there to be captured.
    pub(super) fn authorise_elsewhere(&self, amount: i64) -> String {
        let mut inner = lock(&self.inner);
        let charge = Charge::elsewhere(inner.charges.len() + 1, self.world.ms(), amount);
        inner.charges.insert(charge.id.clone(), charge.clone());
        drop(inner);
        self.happened("charge.succeeded", None, &charge);
        charge.id
    }

    /// One of the authorisations expires, or is given up in the Dashboard.
    pub(super) fn void_one(&self) {
        let open: Vec<String> = {
            let inner = lock(&self.inner);
            let open = inner.charges.values().filter(|charge| charge.is_open());
            open.map(|charge| charge.id.clone()).collect()
        };
        if !open.is_empty() {
            self.void(self.world.pick(open.as_slice()).as_str());
        }
    }

    pub(super) fn void(&self, id: &str) {
        let mut inner = lock(&self.inner);
        let Some(charge) = inner.charges.get_mut(id).filter(|charge| charge.is_open()) else {
            return;
        };
        charge.voided = true;
        let charge = charge.clone();
        drop(inner);
        self.happened("charge.expired", None, &charge);
    }
}
