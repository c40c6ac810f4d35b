//! The book over a ledger in memory: single steps, and random histories against a small Stripe.

mod answers;
mod audit;
mod history;
mod operator;
mod property;
mod steps;
mod store;
mod stripe;

use std::collections::BTreeMap;

use super::*;
use crate::domain::cap::Headroom;
use crate::domain::decision::{Ask, Look, Target};
use crate::domain::idempotency::{ClientKey, DerivedKey, Fingerprint, KeyScope};
use crate::domain::money::Money;
use crate::domain::operation::MoneyOperation;
use crate::domain::outcome::Outcome;
use crate::domain::refusal::Refusal;
use crate::domain::settlement::Report;
use crate::domain::vault_key::{Enforcement, OnDuplicate, RefusalStatus};
use crate::ledger::command::{
    Control, ControlDone, ControlError, ControlRequest, Resolution, Settled, Ticket, Verdict,
};
use store::MemoryStore;

const START: UnixMs = UnixMs(1_785_600_000_000);

const TIMES: SendTimes = SendTimes {
    deadline_ms: 120_000,
};

fn minor(amount: i64) -> AmountMinor {
    AmountMinor::new(amount).unwrap()
}

fn usd() -> Currency {
    Currency::parse("usd").unwrap()
}

fn id(name: &str) -> VaultKeyId {
    name.parse().unwrap()
}

/// An enforcing key with a cap of `max` usd-cents and no headroom.
fn vault_key(name: &str, max: i64, on_duplicate: OnDuplicate) -> VaultKey {
    VaultKey {
        id: id(name),
        secret_hint: String::new(),
        billing_period: "2026-08".to_owned(),
        namespace: "default".to_owned(),
        status: KeyStatus::Active,
        starts_at: None,
        expires_at: UnixMs(i64::MAX),
        headroom: Headroom::parse("1").unwrap(),
        on_duplicate,
        enforcement: Enforcement::Enforce,
        permissions: Vec::new(),
        max_charge: BTreeMap::new(),
        refusal_status: RefusalStatus::PaymentRequired,
        accounts: Vec::new(),
        require_customer: false,
        metadata: BTreeMap::new(),
        caps: vec![Cap::fresh(usd(), minor(max), minor(max))],
        created_at: START,
    }
}

const SCOPE: KeyScope<'_> = KeyScope {
    account: "",
    livemode: false,
    billing_period: "2026-08",
};

fn given(text: &str) -> ClientKey {
    ClientKey::Given {
        digest: SCOPE.given(text),
        text: text.to_owned(),
    }
}

/// A create of `amount` for `customer`, with a key of its own.
fn create(vault_key: &str, customer: &str, amount: i64, key: ClientKey) -> Ask {
    Ask {
        vault_key: id(vault_key),
        namespace: "default".to_owned(),
        billing_period: "2026-08".to_owned(),
        operation: MoneyOperation::ChargesCreate,
        account: String::new(),
        customer: Some(customer.to_owned()),
        reference: String::new(),
        money: Money {
            amount: minor(amount),
            currency: usd(),
        },
        target: None,
        key,
        fingerprint: Fingerprint(Digest16::of("test", &[customer, &amount.to_string()])),
        look: Look::First,
    }
}

fn capture(vault_key: &str, charge: &str, amount: i64, key: ClientKey) -> Ask {
    Ask {
        operation: MoneyOperation::ChargesCapture,
        customer: Some("cus_1".to_owned()),
        target: Some(Target {
            object_id: charge.to_owned(),
            owner: None,
        }),
        fingerprint: Fingerprint(Digest16::of(
            "test",
            &["capture", charge, &amount.to_string()],
        )),
        ..create(vault_key, "cus_1", amount, key)
    }
}
