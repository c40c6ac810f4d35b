//! Steps 4 to 6: currency, largest charge, cap, each exact to one minor unit.

use super::*;
use crate::domain::refusal::CapReached;

fn used(reserved: i64, settled: i64) -> impl Fn(&mut VaultKey) {
    move |key| {
        key.caps[0].reserved = minor(reserved);
        key.caps[0].settled = minor(settled);
    }
}

fn cap_reached(max: i64, used: i64, asked: i64) -> Expect {
    Expect::Refuse(Refusal::SpendCapReached(CapReached {
        max_amount: minor(max),
        used: minor(used),
        asked: minor(asked),
        currency: usd(0).currency,
        status: RefusalStatus::PaymentRequired,
    }))
}

#[test]
fn the_cap_is_exact_to_one_minor_unit() {
    for (name, reserved, settled, amount, fits) in [
        ("the whole cap", 0, 0, 1000, true),
        ("one above", 0, 0, 1001, false),
        ("the rest", 400, 500, 100, true),
        ("one above the rest", 400, 500, 101, false),
        ("reserved counts", 1000, 0, 1, false),
        ("settled counts", 0, 1000, 1, false),
        ("usage above a lowered cap", 700, 700, 1, false),
        ("sums that leave the range", i64::MAX, 0, 1, false),
        ("an amount that leaves the range", 1, 0, i64::MAX, false),
    ] {
        let scene = Scene::of(create()).key(used(reserved, settled));
        let scene = scene.ask(|ask| ask.money = usd(amount));
        let expected = if fits {
            FRESH
        } else {
            cap_reached(1000, reserved + settled, amount)
        };
        check(name, &scene, &expected, &[]);
    }
    let zero = Scene::of(create()).key(|key| key.caps[0].max_amount = AmountMinor::ZERO);
    check("a cap of nothing", &zero, &cap_reached(0, 0, 100), &[]);
}

#[test]
fn a_currency_without_a_cap_and_too_large_a_charge_are_refused_first() {
    let eur = Currency::parse("eur").unwrap();
    let foreign = Scene::of(create()).ask(|ask| ask.money.currency = eur);
    let refused = Expect::Refuse(Refusal::CurrencyNotAllowed { currency: eur });
    check("no cap in euros", &foreign, &refused, &[]);
    let bounded = |max| {
        let scene = Scene::of(create()).key(used(1000, 0));
        scene.key(|key| {
            key.max_charge.insert(usd(0).currency, minor(max));
            key.refusal_status = RefusalStatus::Forbidden;
        })
    };
    let too_large = Expect::Refuse(Refusal::ChargeLimitExceeded {
        max_charge: minor(99),
        asked: minor(100),
        currency: usd(0).currency,
        status: RefusalStatus::Forbidden,
    });
    check("one above the largest", &bounded(99), &too_large, &[]);
    let allowed = bounded(100).key(used(0, 0));
    check("the largest", &allowed, &FRESH, &[]);
}

#[test]
fn an_observing_key_flags_what_it_would_refuse() {
    let observing = |key: &mut VaultKey| key.enforcement = Enforcement::Observe;
    let scene = Scene::of(create()).key(observing).key(used(901, 0));
    let cap = FlagKind::WouldRefuseSpendCap;
    check("the cap", &scene, &FRESH, &[cap]);
    let dear = scene.key(|key| {
        key.max_charge.insert(usd(0).currency, minor(99));
    });
    let flags = [FlagKind::WouldRefuseChargeLimit, cap];
    check("the largest charge too", &dear, &FRESH, &flags);
    let foreign = dear.ask(|ask| ask.money.currency = Currency::parse("eur").unwrap());
    check("no cap", &foreign, &FRESH, &[FlagKind::WouldRefuseCurrency]);
}

#[test]
fn a_refused_request_leaves_nothing_behind() {
    let scene = Scene::of(create()).key(used(1000, 0));
    let declined = Reservation {
        outcome_stored: true,
        ..row(State::Released)
    };
    let repeated = [FlagKind::IdempotencyKeyRepeated];
    let again = scene.known_by(declined);
    check("refused", &again, &cap_reached(1000, 1000, 100), &repeated);
    let raised = again.key(|key| key.caps[0].max_amount = minor(1100));
    check(
        "the same key once the cap is raised",
        &raised,
        &FRESH,
        &repeated,
    );
}
