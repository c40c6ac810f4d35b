//! Operations on objects that exist: the owner's state, what is reserved on top, whose cap it takes.

use super::*;
use crate::domain::refusal::CapReached;

const AGAIN: &[FlagKind] = &[FlagKind::DuplicateOperation];

fn captured_already() -> Expect {
    Expect::Refuse(Refusal::ChargeAlreadyCaptured {
        charge: "ch_1".to_owned(),
    })
}

#[test]
fn the_owners_state_decides() {
    let in_full = Expect::Reserve(KEY_TEXT, false, true);
    let released = Reservation {
        object_id: Some("ch_1".to_owned()),
        ..row(State::Released)
    };
    let written_off = Reservation {
        object_id: Some("ch_1".to_owned()),
        ..row(State::WrittenOff)
    };
    for (name, owner, expected, flags) in [
        ("open", row(State::Open), Expect::SendOn(0), &[][..]),
        (
            "in flight",
            capturing(State::InFlight, 100),
            Expect::Wait,
            AGAIN,
        ),
        ("held", capturing(State::Held, 100), Expect::Resend, AGAIN),
        (
            "captured",
            capturing(State::Settled, 100),
            Expect::Read,
            AGAIN,
        ),
        (
            "captured less",
            capturing(State::Settled, 99),
            captured_already(),
            AGAIN,
        ),
        (
            "charged at once",
            row(State::Settled),
            captured_already(),
            AGAIN,
        ),
        ("released", released, in_full.clone(), &[]),
        ("written off", written_off, unknown_outcome(false), &[]),
    ] {
        check(
            name,
            &Scene::of(capture(100)).owned_by(owner),
            &expected,
            flags,
        );
    }
    check("nobody's", &Scene::of(capture(100)), &in_full, &[]);
}

#[test]
fn a_capture_again_is_replayed_only_under_replay() {
    for policy in [OnDuplicate::Reject, OnDuplicate::Flag] {
        let scene = Scene::of(capture(100)).owned_by(capturing(State::Settled, 100));
        let scene = scene.key(|key| key.on_duplicate = policy);
        check(policy.as_str(), &scene, &captured_already(), AGAIN);
    }
}

#[test]
fn a_held_operation_is_sent_again_for_the_very_same_request_only() {
    let scene = Scene::of(capture(100)).owned_by(capturing(State::Held, 100));
    let mut old = scene.clone().key(|key| key.expires_at = UnixMs(i64::MAX));
    old.now = NOW.plus_ms(RESEND_WINDOW_MS);
    check("too old", &old, &unknown_outcome(true), AGAIN);
    let other = scene.ask(|ask| ask.fingerprint = fingerprint("other"));
    check("another one", &other, &unknown_outcome(true), AGAIN);
}

#[test]
fn a_repeated_operation_is_recognised_under_given_and_derived_keys() {
    let derived = ClientKey::Derived {
        first: derived_key("POST /v1/charges/ch_1/capture hash"),
        other_amount: None,
    };
    let repeated = &[FlagKind::IdempotencyKeyRepeated];
    for key in [given(KEY_TEXT), derived] {
        for (state, expected) in [
            (State::InFlight, Expect::Wait),
            (State::Held, Expect::Resend),
            (State::Settled, Expect::Read),
            // It was refused since: the owner is open as before, and the operation goes out anew.
            (State::Open, Expect::SendOn(0)),
        ] {
            let owner = capturing(state, 100);
            let ask = Ask {
                key: key.clone(),
                ..capture(100)
            };
            let scene = Scene::of(ask).owned_by(owner.clone()).known_by(owner);
            check(state.as_str(), &scene, &expected, repeated);
        }
    }
}

#[test]
fn only_what_goes_beyond_the_reservation_is_reserved_and_to_the_minor_unit() {
    let scene = |amount, used| {
        let scene = Scene::of(capture(amount));
        let scene = scene.key(|key| key.caps[0].reserved = minor(used));
        scene.owned_by(row(State::Open))
    };
    check("less", &scene(60, 1000), &Expect::SendOn(0), &[]);
    check(
        "all of it at the cap",
        &scene(100, 1000),
        &Expect::SendOn(0),
        &[],
    );
    check("up to the cap", &scene(115, 985), &Expect::SendOn(15), &[]);
    let refused = |status| {
        Expect::Refuse(Refusal::SpendCapReached(CapReached {
            max_amount: minor(1000),
            used: minor(986),
            asked: minor(15),
            currency: usd(0).currency,
            status,
        }))
    };
    let payment_required = refused(RefusalStatus::PaymentRequired);
    check("one too many", &scene(115, 986), &payment_required, &[]);
    let forbidden = scene(115, 986).key(|key| key.refusal_status = RefusalStatus::Forbidden);
    check(
        "one too many, 403",
        &forbidden,
        &refused(RefusalStatus::Forbidden),
        &[],
    );
}

#[test]
fn the_cap_of_the_owners_key_is_charged_by_its_own_rules() {
    let scene = |change: fn(&mut VaultKey)| {
        let mut scene = Scene::of(capture(115)).owned_by(row(State::Open));
        let owner_key = scene.owner_key.as_mut().unwrap();
        owner_key.id = "vk_other".parse().unwrap();
        owner_key.caps[0].reserved = minor(1000);
        change(owner_key);
        scene
    };
    let refused = |scene: &Scene| {
        matches!(
            scene.decide().action,
            Action::Refuse(Refusal::SpendCapReached(_))
        )
    };
    assert!(refused(&scene(|_| ())), "the owner's cap, not the asker's");
    let observing = |key: &mut VaultKey| key.enforcement = Enforcement::Observe;
    assert!(
        refused(&scene(|_| ()).key(observing)),
        "an observing key must not lift the cap of another"
    );
    let flags = [FlagKind::WouldRefuseSpendCap];
    check(
        "observed by its owner",
        &scene(observing),
        &Expect::SendOn(15),
        &flags,
    );
    let no_cap = scene(|key| key.caps.clear());
    let currency = usd(0).currency;
    let refused = Expect::Refuse(Refusal::CurrencyNotAllowed { currency });
    check("no cap there", &no_cap, &refused, &[]);
    for status in [KeyStatus::Stopped, KeyStatus::Revoked] {
        let mut ended = scene(|key| key.caps[0].reserved = minor(100));
        ended.owner_key.as_mut().unwrap().status = status;
        let stopped = Expect::Refuse(Refusal::VaultKeyStopped);
        check("no new spend on an ended key", &ended, &stopped, &[]);
        let within = ended.ask(|ask| ask.money = usd(100));
        check(
            "what is reserved may be captured",
            &within,
            &Expect::SendOn(0),
            &[],
        );
    }
}
