//! Random histories, each step audited.

use proptest::prelude::*;
use proptest::sample::Index;

use super::audit;
use super::history::{Capture, Create, History, Idempotency, KEYS};
use super::stripe::Luck;
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Create(Vec<Create>),
    Capture(Capture),
    Run(Index, Luck),
    Answer(Index),
    Lose(Index),
    NotSent(Index),
    Limited(Index),
    RecordAgain(Index),
    Reconcile(Index),
    Resolve(Index),
    Bypass(u8, i64),
    Void(usize),
    Sweep,
    Pass(i64),
    Cap(usize, i64),
    Revoke,
}

const SECOND_MS: i64 = 1000;

fn idempotency(keyless: bool) -> BoxedStrategy<Idempotency> {
    if keyless {
        return Just(Idempotency::None).boxed();
    }
    prop_oneof![
        Just(Idempotency::Fresh),
        (0..4u8).prop_map(Idempotency::Pool),
        Just(Idempotency::None),
    ]
    .boxed()
}

fn create_spec(keyless: bool) -> impl Strategy<Value = Create> {
    let amount = prop_oneof![3 => Just(100), 1 => Just(250), 1 => Just(400)];
    let capture = prop_oneof![3 => Just(true), 2 => Just(false)];
    let body = prop_oneof![4 => Just(0), 1 => Just(1)];
    (
        0..2usize,
        0..3u8,
        amount,
        capture,
        body,
        idempotency(keyless),
    )
        .prop_map(|(vault_key, customer, amount, capture, body, key)| Create {
            vault_key,
            customer,
            amount,
            capture,
            body,
            key,
        })
}

fn capture_spec(keyless: bool) -> impl Strategy<Value = Capture> {
    let percent = prop_oneof![3 => Just(100), 1 => Just(50), 2 => Just(130)];
    (0..2usize, 0..8usize, percent, idempotency(keyless)).prop_map(
        |(vault_key, charge, percent, key)| Capture {
            vault_key,
            charge,
            percent,
            key,
        },
    )
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        6 => Just(Luck::Works),
        2 => Just(Luck::Declines),
        1 => Just(Luck::Refuses),
        1 => Just(Luck::WorksThen500),
        1 => Just(Luck::Fails500),
    ]
}

fn step(keyless: bool) -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let pass = prop_oneof![
        Just(SECOND_MS),
        Just(40 * SECOND_MS),
        Just(130 * SECOND_MS),
        Just(3600 * SECOND_MS),
        Just(11 * 3600 * SECOND_MS),
        Just(25 * 3600 * SECOND_MS),
    ];
    prop_oneof![
        10 => prop::collection::vec(create_spec(keyless), 1..4).prop_map(Step::Create),
        5 => capture_spec(keyless).prop_map(Step::Capture),
        12 => (index(), luck()).prop_map(|(at, luck)| Step::Run(at, luck)),
        10 => index().prop_map(Step::Answer),
        4 => index().prop_map(Step::Lose),
        1 => index().prop_map(Step::NotSent),
        2 => index().prop_map(Step::Limited),
        3 => index().prop_map(Step::RecordAgain),
        4 => index().prop_map(Step::Reconcile),
        1 => index().prop_map(Step::Resolve),
        1 => (0..3u8, Just(100)).prop_map(|(customer, amount)| Step::Bypass(customer, amount)),
        1 => (0..4usize).prop_map(Step::Void),
        3 => Just(Step::Sweep),
        4 => pass.prop_map(Step::Pass),
        1 => (0..2usize, 0..2000i64).prop_map(|(key, total)| Step::Cap(key, total)),
        1 => Just(Step::Revoke),
    ]
}

/// Steps that all histories share; a revocation ends most of what follows, so it is rare.
fn steps(keyless: bool) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(keyless), 1..80)
}

fn take(history: &mut History, step: &Step) {
    let row = |history: &History, index: &Index| history.nth_row(index.index(usize::MAX));
    match step {
        Step::Create(creates) => history.create(creates),
        Step::Capture(capture) => history.capture(*capture),
        Step::Run(index, luck) => history.run(index.index(usize::MAX), *luck),
        Step::Answer(index) => history.answer(index.index(usize::MAX)),
        Step::Lose(index) => history.lose(index.index(usize::MAX)),
        Step::NotSent(index) => history.stop(index.index(usize::MAX), Outcome::NotSent),
        Step::Limited(index) => history.stop(index.index(usize::MAX), Outcome::RefusedThisSend),
        Step::RecordAgain(index) => history.record_again(index.index(usize::MAX)),
        Step::Reconcile(index) => {
            if let Some(id) = row(history, index) {
                history.reconcile(id);
            }
        }
        Step::Resolve(index) => {
            if let Some(id) = row(history, index) {
                history.resolve(id);
            }
        }
        Step::Bypass(customer, amount) => {
            history.stripe.bypass(&format!("cus_{customer}"), *amount);
        }
        Step::Void(index) => history.stripe.void(*index),
        Step::Sweep => {
            history.store.run(&[Work::Sweep]);
        }
        Step::Pass(ms) => history.store.now = history.store.now.plus_ms(*ms),
        Step::Cap(key, total) => operate(
            history,
            Control::UpdateKey {
                id: id(KEYS[*key]),
                expected_totals: vec![(usd(), minor(*total))],
                headroom: None,
                resume: false,
                reason: "INC-1".to_owned(),
            },
        ),
        Step::Revoke => operate(
            history,
            Control::Revoke {
                id: id(KEYS[1]),
                reason: "leaked".to_owned(),
            },
        ),
    }
}

fn operate(history: &mut History, control: Control) {
    match history.store.control(control) {
        Ok(_) | Err(ControlError::Revoked) => {}
        Err(error) => panic!("{error}"),
    }
}

fn play(mut history: History, steps: &[Step], also: fn(&History)) {
    for step in steps {
        let before = audit::usage(&history);
        take(&mut history, step);
        audit::audit(&history, &before);
        also(&history);
    }
    let before = audit::usage(&history);
    history.come_to_rest();
    audit::audit(&history, &before);
    also(&history);
    audit::at_rest(&history);
}

/// A failing history is shown smallest and becomes a test of its own, so no file keeps it.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn as_it_is(_: &mut VaultKey) {}

fn observing(key: &mut VaultKey) {
    key.enforcement = Enforcement::Observe;
}

fn next_period(key: &mut VaultKey) {
    "2026-09".clone_into(&mut key.billing_period);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn replay_charges_once_per_customer_and_amount(steps in steps(false)) {
        let history = History::new(OnDuplicate::Replay, as_it_is);
        play(history, &steps, audit::one_charge_per_intent);
    }

    #[test]
    fn reject_charges_once_per_customer(steps in steps(false)) {
        let history = History::new(OnDuplicate::Reject, as_it_is);
        play(history, &steps, audit::one_charge_per_slot);
    }

    #[test]
    fn flag_holds_the_cap_and_the_books(steps in steps(false)) {
        let history = History::new(OnDuplicate::Flag, as_it_is);
        play(history, &steps, audit::one_charge_per_key);
    }

    #[test]
    fn a_client_without_keys_charges_once_even_under_flag(steps in steps(true)) {
        let history = History::new(OnDuplicate::Flag, as_it_is);
        play(history, &steps, audit::one_charge_per_intent);
    }

    #[test]
    fn an_observing_key_beside_it_leaves_an_enforced_cap_alone(steps in steps(false)) {
        let history = History::new(OnDuplicate::Replay, observing);
        play(history, &steps, audit::one_charge_per_key);
    }

    /// Stripe replays the first period's charge to the second, until it forgets the key.
    #[test]
    fn two_periods_that_share_keys_count_each_charge_once(steps in steps(false)) {
        let history = History::new(OnDuplicate::Replay, next_period);
        play(history, &steps, |_| ());
    }
}
