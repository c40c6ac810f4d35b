//! Stripe, as small as a history of charges needs it: a key runs once in 24 hours, what ran is
//! stored, a charge is captured once.

use std::collections::BTreeMap;

const KEY_KEPT_MS: i64 = 24 * 3_600_000;

/// What a request asks Stripe to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Call {
    Create {
        customer: String,
        amount: i64,
        capture: bool,
    },
    Capture {
        charge: String,
        amount: i64,
    },
}

/// What Stripe makes of a request that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Luck {
    Works,
    Declines,
    /// Refused before it ran: nothing is stored under the key.
    Refuses,
    /// It worked, but a 500 is stored.
    WorksThen500,
    /// It did nothing, and a 500 is stored.
    Fails500,
}

/// What Stripe answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// The charge as it stood then.
    Charge(Charge),
    /// 402 `card_error`.
    Declined,
    /// A 4xx that is stored: replayed under the key.
    Refused { replayed: bool },
    /// 500.
    Broken,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) customer: String,
    pub(super) amount: i64,
    pub(super) captured: Option<i64>,
    pub(super) voided: bool,
    pub(super) made_at_ms: i64,
    /// The reservation whose send made it; `None` for one made past the proxy.
    pub(super) made_by: Option<i64>,
}

impl Charge {
    /// It took money or still may.
    pub(super) fn is_live(&self) -> bool {
        !self.voided
    }
}

struct Stored {
    at_ms: i64,
    call: (Call, u8),
    reply: Reply,
}

#[derive(Default)]
pub(super) struct Stripe {
    pub(super) charges: Vec<Charge>,
    stored: BTreeMap<String, Stored>,
}

impl Stripe {
    /// `body` tells apart what the call itself does not: payment method, metadata.
    pub(super) fn run(
        &mut self,
        now_ms: i64,
        key: &str,
        (call, body): (&Call, u8),
        luck: Luck,
        by: i64,
    ) -> Reply {
        if let Some(stored) = self.stored(now_ms, key) {
            if stored.call != (call.clone(), body) {
                return Reply::Refused { replayed: false };
            }
            return match stored.reply.clone() {
                Reply::Refused { .. } => Reply::Refused { replayed: true },
                other => other,
            };
        }
        let reply = match luck {
            Luck::Refuses => return Reply::Refused { replayed: false },
            Luck::Declines if matches!(call, Call::Create { .. }) => Reply::Declined,
            Luck::Declines => Reply::Refused { replayed: false },
            Luck::Fails500 => Reply::Broken,
            Luck::Works | Luck::WorksThen500 => self.work(now_ms, key, call, by),
        };
        let reply = if luck == Luck::WorksThen500 {
            Reply::Broken
        } else {
            reply
        };
        let stored = Stored {
            at_ms: now_ms,
            call: (call.clone(), body),
            reply: reply.clone(),
        };
        self.stored.insert(key.to_owned(), stored);
        reply
    }

    fn work(&mut self, now_ms: i64, key: &str, call: &Call, by: i64) -> Reply {
        match call {
            Call::Create {
                customer,
                amount,
                capture,
            } => {
                let charge = Charge {
                    id: format!("ch_{}", self.charges.len()),
                    key: key.to_owned(),
                    customer: customer.clone(),
                    amount: *amount,
                    captured: capture.then_some(*amount),
                    voided: false,
                    made_at_ms: now_ms,
                    made_by: Some(by),
                };
                self.charges.push(charge.clone());
                Reply::Charge(charge)
            }
            Call::Capture { charge, amount } => {
                let found = self.charges.iter_mut().find(|found| found.id == *charge);
                let found = found.expect("captures name charges that exist");
                if found.captured.is_some() || found.voided {
                    return Reply::Refused { replayed: false };
                }
                found.captured = Some(*amount);
                Reply::Charge(found.clone())
            }
        }
    }

    fn stored(&self, now_ms: i64, key: &str) -> Option<&Stored> {
        let stored = self.stored.get(key)?;
        (now_ms - stored.at_ms < KEY_KEPT_MS).then_some(stored)
    }

    /// A request under this key would run, not be replayed.
    pub(super) fn would_run(&self, now_ms: i64, key: &str) -> bool {
        self.stored(now_ms, key).is_none()
    }

    pub(super) fn charge(&self, id: &str) -> Option<&Charge> {
        self.charges.iter().find(|charge| charge.id == id)
    }

    /// An authorisation that somebody made with the real key, past the proxy.
    pub(super) fn bypass(&mut self, customer: &str, amount: i64) {
        let call = Call::Create {
            customer: customer.to_owned(),
            amount,
            capture: false,
        };
        let key = format!("bypass-{}", self.charges.len());
        self.work(0, &key, &call, 0);
        if let Some(charge) = self.charges.last_mut() {
            charge.made_by = None;
        }
    }

    /// An authorisation that is not captured ends.
    pub(super) fn void(&mut self, index: usize) {
        let mut open = self
            .charges
            .iter_mut()
            .filter(|charge| charge.captured.is_none());
        if let Some(charge) = open.nth(index) {
            charge.voided = true;
        }
    }
}
