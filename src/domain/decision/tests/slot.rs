//! Step 3: the slot is held by another reservation.

use super::*;

const DUPLICATE: FlagKind = FlagKind::DuplicateCustomerPeriod;
const WOULD_STOP: FlagKind = FlagKind::WouldStopDuplicate;

/// A row of another amount in the same slot.
fn other_amount(state: State) -> Reservation {
    let ask = create();
    let slot = ask.slot().unwrap();
    let intent = slot.intent_digest(ask.operation, minor(200), ask.money.currency);
    Reservation {
        amount: minor(200),
        intent_claim: Some(intent),
        ..row(state)
    }
}

fn rejected(existing: &str) -> Expect {
    Expect::Refuse(Refusal::DuplicateCustomerPeriod {
        existing: existing.to_owned(),
    })
}

#[test]
fn a_duplicate_of_the_same_amount_meets_its_policy() {
    let second = Expect::Reserve(KEY_TEXT, false, false);
    let rejected = rejected("ch_1");
    for (state, replay, reject, flag) in [
        (State::Settled, &Expect::Read, &rejected, &second),
        (State::Open, &Expect::Read, &rejected, &second),
        // While nobody knows, every policy waits or resolves.
        (State::InFlight, &Expect::Wait, &Expect::Wait, &Expect::Wait),
        (
            State::Held,
            &Expect::Resend,
            &Expect::Resend,
            &Expect::Resend,
        ),
        (
            State::WrittenOff,
            &unknown_outcome(false),
            &unknown_outcome(false),
            &unknown_outcome(false),
        ),
    ] {
        for (policy, expected) in OnDuplicate::ALL.into_iter().zip([replay, reject, flag]) {
            let scene = Scene::of(create()).held_by(row(state));
            let scene = scene.key(|key| key.on_duplicate = policy);
            let name = format!("{} {}", state.as_str(), policy.as_str());
            check(&name, &scene, expected, &[DUPLICATE]);
        }
    }
}

#[test]
fn another_amount_is_a_charge_of_its_own_unless_rejected() {
    let second = Expect::Reserve(KEY_TEXT, false, true);
    let unknown = |retryable| unknown_outcome(retryable);
    for (state, reject) in [
        (State::Settled, rejected("ch_1")),
        (State::Open, rejected("ch_1")),
        // The first one may still be declined.
        (State::InFlight, Expect::Wait),
        (State::Held, unknown(true)),
        (State::WrittenOff, unknown(false)),
    ] {
        for (policy, expected) in OnDuplicate::ALL
            .into_iter()
            .zip([&second, &reject, &second])
        {
            let mut scene = Scene::of(create()).key(|key| key.on_duplicate = policy);
            scene.slot_holder = Some(other_amount(state));
            let name = format!("{} {}", state.as_str(), policy.as_str());
            check(&name, &scene, expected, &[DUPLICATE]);
        }
    }
}

/// A duplicate that the cap refuses makes no row; it is recorded on the one it met.
#[test]
fn a_duplicate_over_the_cap_is_flagged_on_the_first_one() {
    let scene = Scene::of(create()).held_by(row(State::Settled));
    let scene = scene.key(|key| {
        key.on_duplicate = OnDuplicate::Flag;
        key.caps[0].settled = minor(1000);
    });
    for (look, recorded) in [(Look::First, Some(ROW)), (Look::Again, None)] {
        let decision = scene.clone().ask(|ask| ask.look = look).decide();
        assert!(matches!(
            decision.action,
            Action::Refuse(Refusal::SpendCapReached(_))
        ));
        let [flag] = decision.flags.try_into().unwrap();
        assert_eq!((flag.kind, flag.reservation), (DUPLICATE, recorded));
    }
}

#[test]
fn a_free_slot_is_taken_although_the_intent_is_held() {
    let flagged = |key: &mut VaultKey| key.on_duplicate = OnDuplicate::Flag;
    let mut scene = Scene::of(create()).key(flagged);
    scene.intent_holder = Some(row(State::Settled));
    let expected = Expect::Reserve(KEY_TEXT, true, false);
    check("flag", &scene, &expected, &[DUPLICATE]);
}

#[test]
fn a_capture_under_way_leaves_the_create_known() {
    for (state, policy, expected) in [
        (State::InFlight, OnDuplicate::Replay, Expect::Read),
        (State::Held, OnDuplicate::Replay, Expect::Read),
        (State::InFlight, OnDuplicate::Reject, rejected("ch_1")),
        (State::Held, OnDuplicate::Reject, rejected("ch_1")),
        (
            State::Held,
            OnDuplicate::Flag,
            Expect::Reserve(KEY_TEXT, false, false),
        ),
    ] {
        let scene = Scene::of(create()).held_by(capturing(state, 100));
        let scene = scene.key(|key| key.on_duplicate = policy);
        check(policy.as_str(), &scene, &expected, &[DUPLICATE]);
    }
}

#[test]
fn a_held_first_one_is_sent_again_only_for_the_very_same_request() {
    let scene = Scene::of(create()).held_by(row(State::Held));
    let other_body = scene
        .clone()
        .ask(|ask| ask.fingerprint = fingerprint("other"));
    check(
        "other body",
        &other_body,
        &unknown_outcome(true),
        &[DUPLICATE],
    );
    let mut old = scene;
    old.now = NOW.plus_ms(RESEND_WINDOW_MS);
    let old = old.key(|key| key.expires_at = UnixMs(i64::MAX));
    check("too old", &old, &unknown_outcome(true), &[DUPLICATE]);
}

#[test]
fn an_observing_key_forwards_what_is_known_to_exist() {
    let second = Expect::Reserve(KEY_TEXT, false, false);
    let observing = |policy| {
        let scene = Scene::of(create()).held_by(row(State::Settled));
        scene.key(|key| {
            key.enforcement = Enforcement::Observe;
            key.on_duplicate = policy;
        })
    };
    for (policy, flags) in [
        (OnDuplicate::Replay, &[DUPLICATE, WOULD_STOP][..]),
        (OnDuplicate::Reject, &[DUPLICATE, WOULD_STOP]),
        (OnDuplicate::Flag, &[DUPLICATE]),
    ] {
        check(policy.as_str(), &observing(policy), &second, flags);
    }
    let in_flight = observing(OnDuplicate::Replay).held_by(row(State::InFlight));
    check("but waits", &in_flight, &Expect::Wait, &[DUPLICATE]);
}

#[test]
fn a_create_without_customer_has_no_slot() {
    let nobody = Scene::of(create()).ask(|ask| ask.customer = None);
    let unattributed = FlagKind::Unattributed;
    let expected = Expect::Reserve(KEY_TEXT, false, false);
    check("capped and flagged", &nobody, &expected, &[unattributed]);
    let strict = nobody.key(|key| key.require_customer = true);
    let refused = Expect::Refuse(Refusal::CustomerRequired);
    check("refused where required", &strict, &refused, &[]);
    let observing = strict.key(|key| key.enforcement = Enforcement::Observe);
    let flags = [FlagKind::WouldRefuseCustomerRequired, unattributed];
    check("observed", &observing, &expected, &flags);
}

#[test]
fn every_part_tells_slots_apart() {
    let slot = |change: fn(&mut Ask)| {
        let mut ask = create();
        change(&mut ask);
        (ask.slot().unwrap().digest(), ask.intent_digest().unwrap())
    };
    let changes: [fn(&mut Ask); 5] = [
        |ask| ask.account = "acct_1".to_owned(),
        |ask| ask.namespace = "addons".to_owned(),
        |ask| ask.billing_period = "2026-09".to_owned(),
        |ask| ask.customer = Some("cus_2".to_owned()),
        |ask| ask.reference = "setup-fee".to_owned(),
    ];
    let same = slot(|_| ());
    for change in changes {
        let other = slot(change);
        assert!(other.0 != same.0 && other.1 != same.1);
    }
    let dearer = slot(|ask| ask.money.amount = minor(101));
    assert!(dearer.0 == same.0 && dearer.1 != same.1);
    assert_eq!(slot(|ask| ask.fingerprint = fingerprint("pm_2")), same);
}
