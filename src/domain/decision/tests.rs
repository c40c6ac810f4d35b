//! Every step and branch of the decision, each file one step of design §3.3.

mod existing;
mod keys;
mod limits;
mod slot;
mod status;

use std::collections::BTreeMap;

use super::*;
use crate::domain::cap::{Cap, Headroom};
use crate::domain::idempotency::KeyScope;
use crate::domain::money::Currency;
use crate::domain::reservation::SendState;
use crate::domain::vault_key::{Enforcement, KeyStatus, OnDuplicate, RefusalStatus};

const NOW: UnixMs = UnixMs(1_785_600_000_000);
const ROW: ReservationId = ReservationId(7);
const OTHER_ROW: ReservationId = ReservationId(8);
const KEY_TEXT: &str = "client-key-1";

fn minor(amount: i64) -> AmountMinor {
    AmountMinor::new(amount).unwrap()
}

fn usd(amount: i64) -> Money {
    let currency = Currency::parse("usd").unwrap();
    Money {
        amount: minor(amount),
        currency,
    }
}

/// An enforcing key under `replay` with a cap of 1000 usd-cents.
fn vault_key() -> VaultKey {
    let currency = Currency::parse("usd").unwrap();
    VaultKey {
        id: "vk_one".parse().unwrap(),
        secret_hint: String::new(),
        billing_period: "2026-08".to_owned(),
        namespace: "default".to_owned(),
        status: KeyStatus::Active,
        starts_at: None,
        expires_at: NOW.plus_ms(1),
        headroom: Headroom::DEFAULT,
        on_duplicate: OnDuplicate::Replay,
        enforcement: Enforcement::Enforce,
        permissions: Vec::new(),
        max_charge: BTreeMap::new(),
        refusal_status: RefusalStatus::PaymentRequired,
        accounts: Vec::new(),
        require_customer: false,
        metadata: BTreeMap::new(),
        caps: vec![Cap::fresh(currency, minor(1000), minor(1000))],
        created_at: NOW,
    }
}

fn fingerprint(text: &str) -> Fingerprint {
    Fingerprint(Digest16::of("test", &[text]))
}

fn given(text: &str) -> ClientKey {
    ClientKey::Given {
        digest: Digest16::of("given", &[text]),
        text: text.to_owned(),
    }
}

fn derived_key(seed: &str) -> DerivedKey {
    let scope = KeyScope {
        account: "",
        livemode: false,
        billing_period: "2026-08",
    };
    DerivedKey::new(&scope, seed.to_owned())
}

fn keyless() -> ClientKey {
    ClientKey::Derived {
        first: derived_key("cus_1:2026-08:default"),
        other_amount: Some(derived_key("cus_1:2026-08:default:amount")),
    }
}

/// A create of 100 for `cus_1` under a given key.
fn create() -> Ask {
    Ask {
        vault_key: "vk_one".parse().unwrap(),
        namespace: "default".to_owned(),
        billing_period: "2026-08".to_owned(),
        operation: MoneyOperation::ChargesCreate,
        account: String::new(),
        customer: Some("cus_1".to_owned()),
        reference: String::new(),
        money: usd(100),
        target: None,
        key: given(KEY_TEXT),
        fingerprint: fingerprint("create"),
        look: Look::First,
    }
}

/// A capture of `amount` of `ch_1` under a given key.
fn capture(amount: i64) -> Ask {
    Ask {
        operation: MoneyOperation::ChargesCapture,
        money: usd(amount),
        target: Some(Target {
            object_id: "ch_1".to_owned(),
            owner: None,
        }),
        fingerprint: fingerprint("capture"),
        ..create()
    }
}

/// The row that [`create`] makes, as its first send left it, in another state.
fn row(state: State) -> Reservation {
    let ask = create();
    let reserved = if state.is_reserved() { 100 } else { 0 };
    let settled = if state == State::Settled { 100 } else { 0 };
    let exists = matches!(state, State::Settled | State::Open);
    let unproven = matches!(state, State::InFlight | State::Held);
    Reservation {
        id: ROW,
        version: 1,
        vault_key: ask.vault_key.clone(),
        account: String::new(),
        namespace: ask.namespace.clone(),
        billing_period: ask.billing_period.clone(),
        customer: ask.customer.clone(),
        reference: String::new(),
        slot_claim: ask.slot().map(|slot| slot.digest()),
        intent_claim: ask.intent_digest(),
        operation: ask.operation,
        currency: ask.money.currency,
        amount: minor(100),
        amount_reserved: minor(reserved),
        amount_settled: minor(settled),
        state,
        object_id: exists.then(|| "ch_1".to_owned()),
        send: SendState {
            operation: ask.operation,
            upstream_key: KEY_TEXT.to_owned(),
            fingerprint: ask.fingerprint,
            sends: 1,
            unproven: u32::from(unproven),
            first_unproven_at: unproven.then_some(NOW),
            forward_by: NOW.plus_ms(FORWARD_WINDOW_MS),
            deadline: NOW.plus_ms(120_000),
        },
        attempt: 0,
        outcome_stored: exists,
        server_error: false,
        amount_refunded: AmountMinor::ZERO,
        created_at: NOW,
        resolved_at: None,
    }
}

/// The open row with a capture of `amount` sent on it, in the state that capture is in.
fn capturing(state: State, amount: i64) -> Reservation {
    let mut row = row(State::Open);
    row.state = state;
    row.send = SendState {
        operation: MoneyOperation::ChargesCapture,
        upstream_key: "capture-key".to_owned(),
        fingerprint: fingerprint("capture"),
        sends: 2,
        unproven: 1,
        first_unproven_at: Some(NOW),
        ..row.send
    };
    if state == State::Settled {
        (row.amount_reserved, row.amount_settled) = (AmountMinor::ZERO, minor(amount));
    }
    row
}

/// A request row of `ask`'s key that points at the scene's known row.
fn request(ask: &Ask) -> Request {
    let (digest, key) = match &ask.key {
        ClientKey::Given { digest, text } => (*digest, text.clone()),
        ClientKey::Derived { first, .. } => (first.digest, first.upstream_text(0)),
    };
    Request {
        digest,
        key,
        reservation: ROW,
        operation: ask.operation,
        fingerprint: ask.fingerprint,
        created_at: NOW,
    }
}

fn known((request, reservation): &(Request, Reservation)) -> Known<'_> {
    Known {
        request,
        reservation,
    }
}

/// What the ledger knows in one case; nothing by default.
#[derive(Clone)]
struct Scene {
    now: UnixMs,
    key: Option<VaultKey>,
    known: Option<(Request, Reservation)>,
    known_other_amount: Option<(Request, Reservation)>,
    slot_holder: Option<Reservation>,
    intent_holder: Option<Reservation>,
    owner: Option<Reservation>,
    owner_key: Option<VaultKey>,
    ask: Ask,
}

impl Scene {
    fn of(ask: Ask) -> Self {
        Self {
            now: NOW,
            key: Some(vault_key()),
            known: None,
            known_other_amount: None,
            slot_holder: None,
            intent_holder: None,
            owner: None,
            owner_key: None,
            ask,
        }
    }

    /// `row` holds slot and intent of the ask.
    fn held_by(mut self, row: Reservation) -> Self {
        self.slot_holder = Some(row.clone());
        self.intent_holder = Some(row);
        self
    }

    /// The ask's own key points at `row`.
    fn known_by(mut self, row: Reservation) -> Self {
        self.known = Some((request(&self.ask), row));
        self
    }

    /// `row` owns the object, under the asking key.
    fn owned_by(mut self, row: Reservation) -> Self {
        self.owner_key.clone_from(&self.key);
        self.owner = Some(row);
        self
    }

    fn key(mut self, change: impl FnOnce(&mut VaultKey)) -> Self {
        self.key.as_mut().map(change);
        self
    }

    fn ask(mut self, change: impl FnOnce(&mut Ask)) -> Self {
        change(&mut self.ask);
        self
    }

    fn decide(&self) -> Decision {
        let facts = Facts {
            now: self.now,
            vault_key: self.key.as_ref(),
            known: self.known.as_ref().map(known),
            known_other_amount: self.known_other_amount.as_ref().map(known),
            slot_holder: self.slot_holder.as_ref(),
            intent_holder: self.intent_holder.as_ref(),
            owner: self.owner.as_ref(),
            owner_key: self.owner_key.as_ref(),
        };
        decide(&facts, &self.ask)
    }
}

/// What a case must come to.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Expect {
    /// A new reservation under this key; whether it takes the slot and the intent.
    Reserve(&'static str, bool, bool),
    /// An operation on the owner, with so much reserved on top.
    SendOn(i64),
    Resend,
    Read,
    Wait,
    Refuse(Refusal),
}

impl Expect {
    fn from(action: &Action) -> Self {
        match action {
            Action::Reserve {
                key,
                slot_claim,
                intent_claim,
            } => {
                let text: &'static str = Box::leak(key.upstream_text.clone().into_boxed_str());
                Self::Reserve(text, slot_claim.is_some(), intent_claim.is_some())
            }
            Action::SendOn {
                reservation,
                additional,
                ..
            } => {
                assert_eq!(*reservation, ROW);
                Self::SendOn(additional.get())
            }
            Action::Resend { reservation, .. } => {
                assert_eq!(*reservation, ROW);
                Self::Resend
            }
            Action::Read {
                reservation,
                object_id,
                ..
            } => {
                assert_eq!((*reservation, object_id.as_str()), (ROW, "ch_1"));
                Self::Read
            }
            Action::Wait { reservation } => {
                assert_eq!(*reservation, ROW);
                Self::Wait
            }
            Action::Refuse(refusal) => Self::Refuse(refusal.clone()),
        }
    }
}

#[track_caller]
fn check(name: &str, scene: &Scene, expected: &Expect, flags: &[FlagKind]) {
    let decision = scene.decide();
    assert_eq!(&Expect::from(&decision.action), expected, "{name}");
    let kinds: Vec<FlagKind> = decision.flags.iter().map(|flag| flag.kind).collect();
    assert_eq!(kinds, flags, "{name}");
}

fn unknown_outcome(retryable: bool) -> Expect {
    Expect::Refuse(Refusal::OutcomeUnknown { retryable })
}

const FRESH: Expect = Expect::Reserve(KEY_TEXT, true, true);
