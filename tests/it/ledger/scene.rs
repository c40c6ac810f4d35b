//! A billing run against a ledger: vault keys, requests and outcomes in a line each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use spendcap::domain::cap::{Cap, Headroom};
use spendcap::domain::decision::{Ask, Look, Target};
use spendcap::domain::id::VaultKeyId;
use spendcap::domain::idempotency::{ClientKey, Fingerprint, KeyScope};
use spendcap::domain::money::{AmountMinor, Currency, Money};
use spendcap::domain::operation::{MoneyOperation, Permission};
use spendcap::domain::outcome::Outcome;
use spendcap::domain::reservation::Reservation;
use spendcap::domain::settlement::Report;
use spendcap::domain::time::UnixMs;
use spendcap::domain::vault_key::{Enforcement, KeyStatus, OnDuplicate, RefusalStatus, VaultKey};
use spendcap::ledger::Ledger;
use spendcap::ledger::command::{
    Control, ControlDone, ControlError, ControlRequest, Existing, Settled, Ticket, Verdict, Waiting,
};

pub(crate) fn amount(minor: i64) -> AmountMinor {
    AmountMinor::new(minor).unwrap()
}

/// A vault key with one cap per currency, in the period 2026-08.
pub(crate) fn vault_key(caps: &[(&str, i64)]) -> VaultKey {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut caps: Vec<Cap> = caps
        .iter()
        .map(|(code, max)| Cap::fresh(Currency::parse(code).unwrap(), amount(*max), amount(*max)))
        .collect();
    caps.sort_by_key(|cap| cap.currency);
    VaultKey {
        id: format!("vk_test{number}").parse().unwrap(),
        secret_hint: "…test".to_owned(),
        billing_period: "2026-08".to_owned(),
        namespace: "default".to_owned(),
        status: KeyStatus::Active,
        starts_at: None,
        expires_at: UnixMs::from_unix_seconds(4_000_000_000),
        headroom: Headroom::parse("1").unwrap(),
        on_duplicate: OnDuplicate::Replay,
        enforcement: Enforcement::Enforce,
        permissions: vec![Permission::ChargesWrite],
        max_charge: BTreeMap::new(),
        refusal_status: RefusalStatus::PaymentRequired,
        accounts: Vec::new(),
        require_customer: false,
        metadata: BTreeMap::new(),
        caps,
        created_at: UnixMs(0),
    }
}

/// The stored form of a made-up secret.
pub(crate) fn secret_hash(id: &VaultKeyId) -> [u8; 32] {
    let mut hash = [7; 32];
    for (to, from) in hash.iter_mut().zip(id.as_str().bytes()) {
        *to = from;
    }
    hash
}

pub(crate) async fn control(
    ledger: &Ledger,
    control: Control,
) -> Result<ControlDone, ControlError> {
    let request = ControlRequest {
        control,
        actor: "ops".to_owned(),
        idempotency: None,
    };
    ledger.control(request).await.unwrap()
}

pub(crate) async fn issue(ledger: &Ledger, key: &VaultKey) {
    let create = Control::CreateKey {
        key: Box::new(key.clone()),
        secret_hash: secret_hash(&key.id),
    };
    control(ledger, create).await.unwrap();
}

/// A create of `minor` in the key's first currency, for `customer`, under the idempotency key `text`.
pub(crate) fn ask(key: &VaultKey, customer: &str, minor: i64, text: &str) -> Ask {
    let currency = key
        .caps
        .first()
        .map_or_else(|| currency("usd"), |cap| cap.currency);
    let scope = KeyScope {
        account: "",
        livemode: false,
        billing_period: &key.billing_period,
    };
    let parameters = format!("amount={minor}&currency={currency}&customer={customer}");
    Ask {
        vault_key: key.id.clone(),
        namespace: key.namespace.clone(),
        billing_period: key.billing_period.clone(),
        operation: MoneyOperation::ChargesCreate,
        account: String::new(),
        customer: Some(customer.to_owned()),
        reference: String::new(),
        money: Money {
            amount: amount(minor),
            currency,
        },
        target: None,
        key: ClientKey::Given {
            digest: scope.given(text),
            text: text.to_owned(),
        },
        fingerprint: Fingerprint::of("POST", "/v1/charges", "", "", &parameters),
        look: Look::First,
    }
}

/// Asks and expects to be told to send.
pub(crate) async fn reserve(ledger: &Ledger, ask: Ask) -> Ticket {
    sent(ledger.reserve(ask).await.unwrap())
}

pub(crate) fn sent(verdict: Verdict) -> Ticket {
    match verdict {
        Verdict::Send(ticket) => ticket,
        other => panic!("expected to send, got {other:?}"),
    }
}

pub(crate) async fn settle(ledger: &Ledger, ticket: &Ticket, outcome: Outcome) -> Settled {
    let report = Report {
        reservation: ticket.reservation().clone(),
        outcome,
    };
    ledger.settle(report).await.stored().await.unwrap()
}

pub(crate) fn paid(object_id: &str, minor: i64) -> Outcome {
    Outcome::Settled {
        object_id: object_id.to_owned(),
        amount: amount(minor),
    }
}

/// What always holds: every cap says what its reservations say.
pub(crate) async fn check_sums(ledger: &Ledger) {
    for sums in ledger.reads().cap_sums().await.unwrap() {
        assert!(sums.agree(), "{sums:?}");
    }
}

/// Reserved and settled of the key's first cap.
pub(crate) async fn used(ledger: &Ledger, key: &VaultKey) -> (i64, i64) {
    let key = ledger.reads().vault_key(&key.id).await.unwrap().unwrap();
    let cap = key.caps.first().unwrap();
    (cap.reserved.get(), cap.settled.get())
}

/// A capture of `minor` of the charge `object_id`, whose reservation the caller knows or not.
pub(crate) fn capture(
    key: &VaultKey,
    object_id: &str,
    owner: Option<&Reservation>,
    minor: i64,
    text: &str,
) -> Ask {
    let create = ask(key, "cus_1", minor, text);
    let path = format!("/v1/charges/{object_id}/capture");
    Ask {
        operation: MoneyOperation::ChargesCapture,
        target: Some(Target {
            object_id: object_id.to_owned(),
            owner: owner.map(|row| (row.id, row.vault_key.clone())),
        }),
        fingerprint: Fingerprint::of("POST", &path, "", "", &format!("amount={minor}")),
        ..create
    }
}

pub(crate) fn currency(code: &str) -> Currency {
    Currency::parse(code).unwrap()
}

/// The name of the refusal.
pub(crate) fn refused(verdict: Verdict) -> String {
    let Verdict::Refuse(refused) = verdict else {
        panic!("expected a refusal, got {verdict:?}")
    };
    let shown = format!("{:?}", refused.refusal);
    let end = shown.find(|letter: char| !letter.is_alphanumeric());
    shown[..end.unwrap_or(shown.len())].to_owned()
}

pub(crate) fn waiting(verdict: Verdict) -> Waiting {
    match verdict {
        Verdict::Wait(waiting) => waiting,
        other => panic!("expected to wait, got {other:?}"),
    }
}

pub(crate) fn existing(verdict: Verdict) -> Existing {
    match verdict {
        Verdict::Read(existing) => existing,
        other => panic!("expected to read, got {other:?}"),
    }
}
