//! A history: clients that ask, a network that loses and delays, operators, time. Everything the
//! proxy says is true of the small Stripe; what it does not know it does not say.

use super::answers::{capture_outcome, charge_outcome, create_outcome};
use super::stripe::{Call, Charge, Luck, Reply, Stripe};
use super::*;

/// How long after its last moment to leave a request may still reach Stripe.
const NETWORK_MS: i64 = 60_000;

pub(super) const KEYS: [&str; 2] = ["vk_one", "vk_two"];

/// Which idempotency key a client sends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Idempotency {
    Fresh,
    Pool(u8),
    None,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Create {
    pub(super) vault_key: usize,
    pub(super) customer: u8,
    pub(super) amount: i64,
    pub(super) capture: bool,
    pub(super) body: u8,
    pub(super) key: Idempotency,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    pub(super) vault_key: usize,
    pub(super) charge: usize,
    pub(super) percent: i64,
    pub(super) key: Idempotency,
}

/// A send that left, or may still leave.
pub(super) struct Sent {
    pub(super) row: Reservation,
    pub(super) call: Call,
    body: u8,
    /// It ran, or never will.
    pub(super) over: bool,
    reply: Option<Reply>,
    answered: bool,
}

pub(super) struct History {
    pub(super) store: MemoryStore,
    pub(super) stripe: Stripe,
    pub(super) sends: Vec<Sent>,
    reports: Vec<Report>,
    fresh: u32,
}

impl History {
    pub(super) fn new(on_duplicate: OnDuplicate, change: fn(&mut VaultKey)) -> Self {
        let mut keys = KEYS.map(|name| vault_key(name, 1000, on_duplicate));
        change(&mut keys[1]);
        Self {
            store: MemoryStore::new(START, keys),
            stripe: Stripe::default(),
            sends: Vec::new(),
            reports: Vec::new(),
            fresh: 0,
        }
    }

    pub(super) fn may_still_run(&self, sent: &Sent) -> bool {
        let in_time = self.store.now <= sent.row.send.forward_by.plus_ms(NETWORK_MS);
        !sent.over
            && in_time
            && self
                .stripe
                .would_run(self.store.now.0, &sent.row.send.upstream_key)
    }

    /// Several clients at once: one batch.
    pub(super) fn create(&mut self, creates: &[Create]) {
        let asks: Vec<(Ask, Call, u8)> = creates.iter().map(|create| self.judge(*create)).collect();
        let batch: Vec<Work> = asks
            .iter()
            .map(|(ask, ..)| Work::Reserve(Box::new(ask.clone())))
            .collect();
        let answers = self.store.run(&batch);
        for (answer, (ask, call, body)) in answers.into_iter().zip(asks) {
            let Answer::Verdict(verdict) = answer else {
                panic!("a reserve answered {answer:?}");
            };
            self.take(verdict, &ask, call, body);
        }
    }

    fn judge(&mut self, spec: Create) -> (Ask, Call, u8) {
        let customer = format!("cus_{}", spec.customer);
        let call = Call::Create {
            customer: customer.clone(),
            amount: spec.amount,
            capture: spec.capture,
        };
        let period = self.period(spec.vault_key);
        let seed = format!("{customer}:{period}:default");
        let by_amount = format!("{seed}:amount={}usd", spec.amount);
        let key = self.key(spec.key, &period, seed, Some(by_amount));
        let mut ask = create(KEYS[spec.vault_key], &customer, spec.amount, key);
        ask.fingerprint = fingerprint(&call, spec.body);
        ask.billing_period = period;
        (ask, call, spec.body)
    }

    pub(super) fn capture(&mut self, spec: Capture) {
        let known = |charge: &&Charge| {
            let mut rows = self.store.rows.values();
            let owned = rows.any(|row| row.object_id.as_ref() == Some(&charge.id));
            // The proxy reads what nobody owns, and a client captures what it was told of.
            owned || (charge.made_by.is_none() && charge.captured.is_none())
        };
        let known: Vec<&Charge> = self.stripe.charges.iter().filter(known).collect();
        let Some(at) = spec.charge.checked_rem(known.len()) else {
            return;
        };
        let (charge, amount) = (known[at].id.clone(), known[at].amount * spec.percent / 100);
        let period = self.period(spec.vault_key);
        let seed = format!("POST /v1/charges/{charge}/capture {amount}:{period}:default");
        let key = self.key(spec.key, &period, seed, None);
        let call = Call::Capture {
            charge: charge.clone(),
            amount,
        };
        let mut ask = capture(KEYS[spec.vault_key], &charge, amount, key);
        ask.fingerprint = fingerprint(&call, 0);
        ask.billing_period = period;
        let mut verdict = self.store.reserve(&ask);
        if matches!(verdict, Verdict::LookAgain) {
            let owns = |row: &&Reservation| {
                row.object_id.as_ref() == Some(&charge) && row.state != State::Released
            };
            let rows = || self.store.rows.values();
            let owner = rows()
                .find(owns)
                .or_else(|| rows().find(|row| row.object_id.as_ref() == Some(&charge)));
            let owner = owner.map(|row| (row.id, row.vault_key.clone()));
            ask.target.as_mut().unwrap().owner = owner;
            verdict = self.store.reserve(&ask);
        }
        self.take(verdict, &ask, call, 0);
    }

    fn period(&self, vault_key: usize) -> String {
        self.store.keys[&id(KEYS[vault_key])].billing_period.clone()
    }

    fn key(
        &mut self,
        key: Idempotency,
        billing_period: &str,
        seed: String,
        other: Option<String>,
    ) -> ClientKey {
        let scope = KeyScope {
            billing_period,
            ..SCOPE
        };
        let text = match key {
            Idempotency::Fresh => {
                self.fresh += 1;
                format!("fresh-{}", self.fresh)
            }
            Idempotency::Pool(number) => format!("pool-{number}"),
            Idempotency::None => {
                return ClientKey::Derived {
                    first: DerivedKey::new(&scope, seed),
                    other_amount: other.map(|seed| DerivedKey::new(&scope, seed)),
                };
            }
        };
        ClientKey::Given {
            digest: scope.given(&text),
            text,
        }
    }

    fn take(&mut self, verdict: Verdict, ask: &Ask, call: Call, body: u8) {
        match verdict {
            Verdict::Send(ticket) => {
                let row = ticket.reservation().clone();
                assert_eq!(
                    row.send.fingerprint, ask.fingerprint,
                    "sent for what it was reserved for"
                );
                self.sends.push(Sent {
                    row,
                    call,
                    body,
                    over: false,
                    reply: None,
                    answered: false,
                });
            }
            Verdict::Read(existing) => {
                let charge = self.stripe.charge(&existing.object_id).expect("it exists");
                if let Call::Create {
                    customer, amount, ..
                } = call
                {
                    assert_eq!((&charge.customer, charge.amount), (&customer, amount));
                }
            }
            Verdict::Refuse(refused) => {
                if let Refusal::SpendCapReached(cap) = refused.refusal {
                    assert!(cap.used.get() + cap.asked.get() > cap.max_amount.get());
                }
            }
            Verdict::Wait(_) => {}
            Verdict::LookAgain => panic!("the owner was looked up"),
        }
    }

    fn pick(&self, index: usize, wanted: impl Fn(&Sent) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.sends.len())
            .filter(|at| wanted(&self.sends[*at]))
            .collect();
        fitting.get(index.checked_rem(fitting.len())?).copied()
    }

    /// Stripe receives a request; nobody hears of it yet.
    pub(super) fn run(&mut self, index: usize, luck: Luck) {
        let in_time = |sent: &Sent| {
            !sent.over && self.store.now <= sent.row.send.forward_by.plus_ms(NETWORK_MS)
        };
        let Some(at) = self.pick(index, in_time) else {
            return;
        };
        let sent = &mut self.sends[at];
        sent.over = true;
        let key = &sent.row.send.upstream_key;
        let call = (&sent.call, sent.body);
        let reply = self
            .stripe
            .run(self.store.now.0, key, call, luck, sent.row.id.0);
        sent.reply = Some(reply);
    }

    /// Its answer arrives, however late.
    pub(super) fn answer(&mut self, index: usize) {
        let Some(at) = self.pick(index, |sent| sent.reply.is_some() && !sent.answered) else {
            return;
        };
        let sent = &mut self.sends[at];
        sent.answered = true;
        let reply = sent.reply.clone().unwrap();
        let outcome = match &sent.call {
            Call::Create { .. } => create_outcome(reply),
            Call::Capture { charge, .. } => {
                capture_outcome(reply, self.stripe.charge(charge).unwrap())
            }
        };
        let row = sent.row.clone();
        self.report(row, outcome);
    }

    /// The connection breaks: what left may still run.
    pub(super) fn lose(&mut self, index: usize) {
        if let Some(at) = self.pick(index, |sent| !sent.answered) {
            self.sends[at].answered = true;
            let row = self.sends[at].row.clone();
            self.report(row, Outcome::Unknown);
        }
    }

    /// It never leaves, or meets a 429 or 409.
    pub(super) fn stop(&mut self, index: usize, outcome: Outcome) {
        if let Some(at) = self.pick(index, |sent| !sent.over && !sent.answered) {
            self.sends[at].over = true;
            self.sends[at].answered = true;
            let row = self.sends[at].row.clone();
            self.report(row, outcome);
        }
    }

    fn report(&mut self, reservation: Reservation, outcome: Outcome) {
        self.store.settle(&reservation, outcome.clone());
        self.reports.push(Report {
            reservation,
            outcome,
        });
    }

    /// A settle is recorded once more, as after an ambiguous commit.
    pub(super) fn record_again(&mut self, index: usize) {
        if let Some(at) = index.checked_rem(self.reports.len()) {
            let report = self.reports[at].clone();
            self.store.settle(&report.reservation, report.outcome);
        }
    }

    /// The object of a held or open row is read, or found by its key in the events around its sends.
    pub(super) fn reconcile(&mut self, id: ReservationId) {
        let row = self.store.rows[&id].clone();
        if matches!(row.state, State::Held | State::Open)
            && let Some(charge) = self.truth(&row)
        {
            let outcome = charge_outcome(charge);
            self.store.settle(&row, outcome);
        }
    }

    fn truth(&self, row: &Reservation) -> Option<&Charge> {
        match &row.object_id {
            Some(object_id) => self.stripe.charge(object_id),
            None => self.stripe.charges.iter().find(|charge| {
                // Another period may have used the key for something else.
                let same = charge.amount == row.amount.get()
                    && row.customer.as_ref() == Some(&charge.customer);
                let since = charge.made_at_ms >= row.created_at.0;
                charge.key == row.send.upstream_key && since && same
            }),
        }
    }

    /// An operator who knows that nothing moved, and will not, says so.
    pub(super) fn resolve(&mut self, id: ReservationId) {
        let row = &self.store.rows[&id];
        let may_run = self
            .sends
            .iter()
            .any(|sent| sent.row.id == id && self.may_still_run(sent));
        if row.state == State::Held && row.object_id.is_none() && !may_run {
            if self.truth(row).is_some() {
                return self.reconcile(id);
            }
            let control = Control::Resolve {
                reservation: Box::new(row.clone()),
                resolution: Resolution::Released,
                reason: "not at Stripe".to_owned(),
            };
            self.store.control(control).unwrap();
        }
    }

    pub(super) fn nth_row(&self, index: usize) -> Option<ReservationId> {
        let at = index.checked_rem(self.store.rows.len())?;
        self.store.rows.keys().nth(at).copied()
    }

    /// Everything that can still arrive arrives, and everything unknown is looked up.
    pub(super) fn come_to_rest(&mut self) {
        while self
            .sends
            .iter()
            .any(|sent| sent.reply.is_some() && !sent.answered)
        {
            self.answer(0);
        }
        while self.sends.iter().any(|sent| !sent.answered) {
            self.lose(0);
        }
        self.store.now = self.store.now.plus_ms(3_600_000);
        self.store.run(&[Work::Sweep]);
        let ids: Vec<ReservationId> = self.store.rows.keys().copied().collect();
        for id in ids {
            self.reconcile(id);
            self.resolve(id);
        }
    }
}

fn fingerprint(call: &Call, body: u8) -> Fingerprint {
    Fingerprint(Digest16::of("test", &[&format!("{call:?} {body}")]))
}
