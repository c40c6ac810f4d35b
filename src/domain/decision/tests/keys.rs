//! Step 2: known idempotency keys, given and derived.

use super::*;

const REPEATED: &[FlagKind] = &[FlagKind::IdempotencyKeyRepeated];
const REUSED: &[FlagKind] = &[FlagKind::IdempotencyKeyReused];

fn released(stored: bool) -> Reservation {
    Reservation {
        outcome_stored: stored,
        ..row(State::Released)
    }
}

#[test]
fn a_repeat_never_reserves_twice() {
    for (name, row, expected) in [
        ("settled", row(State::Settled), Expect::Read),
        ("open", row(State::Open), Expect::Read),
        ("in flight", row(State::InFlight), Expect::Wait),
        ("held", row(State::Held), Expect::Resend),
        (
            "written off",
            row(State::WrittenOff),
            unknown_outcome(false),
        ),
        ("declined", released(true), FRESH),
        ("refused", released(false), FRESH),
        // A capture is under way: the create was answered long before.
        ("capturing", capturing(State::InFlight, 100), Expect::Read),
        ("capture lost", capturing(State::Held, 100), Expect::Read),
        ("captured", capturing(State::Settled, 60), Expect::Read),
    ] {
        check(
            name,
            &Scene::of(create()).known_by(row),
            &expected,
            REPEATED,
        );
    }
}

#[test]
fn a_key_bound_to_other_parameters_is_refused() {
    let reused = Expect::Refuse(Refusal::IdempotencyKeyReused {
        key: KEY_TEXT.to_owned(),
    });
    let elsewhere = |row: Reservation| {
        let mut scene = Scene::of(create()).known_by(row);
        scene.ask.fingerprint = fingerprint("other");
        scene
    };
    for state in [
        State::Settled,
        State::Open,
        State::InFlight,
        State::Held,
        State::WrittenOff,
    ] {
        check(state.as_str(), &elsewhere(row(state)), &reused, REUSED);
        let observing = elsewhere(row(state)).key(|key| key.enforcement = Enforcement::Observe);
        check(
            "observing too: Stripe would refuse",
            &observing,
            &reused,
            REUSED,
        );
    }
    check(
        "a stored decline",
        &elsewhere(released(true)),
        &reused,
        REUSED,
    );
    check("nothing stored", &elsewhere(released(false)), &FRESH, &[]);
    let mut joined = elsewhere(released(true));
    joined.known.as_mut().unwrap().1.send.upstream_key = "the-first-key".to_owned();
    check("only joined to a declined one", &joined, &FRESH, &[]);
}

#[test]
fn a_held_row_is_sent_again_for_23_hours_from_its_first_send() {
    let held = |age_ms: i64| {
        let mut row = row(State::Held);
        row.send.sends = 3;
        row.send.unproven = 3;
        row.send.first_unproven_at = Some(UnixMs(NOW.0 - age_ms));
        Scene::of(create()).known_by(row)
    };
    let window = 23 * 3_600_000;
    check("young", &held(window - 1), &Expect::Resend, REPEATED);
    check("old", &held(window), &unknown_outcome(true), REPEATED);
    let back = "the clock went back";
    check(back, &held(-1), &unknown_outcome(true), REPEATED);
    let mut without_time = held(0);
    let row = &mut without_time.known.as_mut().unwrap().1;
    row.send.first_unproven_at = None;
    row.created_at = UnixMs(NOW.0 - window);
    check(
        "by creation",
        &without_time,
        &unknown_outcome(true),
        REPEATED,
    );
}

#[test]
fn a_held_row_is_only_sent_again_with_what_it_was_sent_with() {
    let mut scene = Scene::of(create()).known_by(row(State::Held));
    scene.known.as_mut().unwrap().1.send.fingerprint = fingerprint("first body");
    check("another body", &scene, &unknown_outcome(true), REPEATED);
}

/// The key a keyless request goes out under after so many stored declines.
fn text(other_amount: bool, declines: u32) -> &'static str {
    let ClientKey::Derived {
        first,
        other_amount: Some(other),
    } = keyless()
    else {
        panic!("keyless() derives");
    };
    let key = if other_amount { other } else { first };
    Box::leak(key.upstream_text(declines).into_boxed_str())
}

#[test]
fn a_derived_key_stands_for_the_first_intent_of_its_slot() {
    let ask = Ask {
        key: keyless(),
        ..create()
    };
    let first = Expect::Reserve(text(false, 0), true, true);
    let other = |slot, intent| Expect::Reserve(text(true, 0), slot, intent);
    check("nothing known", &Scene::of(ask.clone()), &first, &[]);
    for (state, expected) in [
        (State::Settled, Expect::Read),
        (State::Open, Expect::Read),
        (State::InFlight, Expect::Wait),
        (State::Held, Expect::Resend),
        (State::WrittenOff, unknown_outcome(false)),
    ] {
        let scene = Scene::of(ask.clone()).known_by(row(state));
        check(state.as_str(), &scene, &expected, REPEATED);
    }
    let mut larger = row(State::Settled);
    larger.amount = minor(200);
    let scene = Scene::of(ask.clone()).known_by(larger.clone());
    check("another amount", &scene, &other(true, true), &[]);
    (larger.state, larger.outcome_stored) = (State::Released, false);
    let scene = Scene::of(ask.clone()).known_by(larger);
    let repeated = Expect::Reserve(text(false, 0), true, true);
    check(
        "another amount that Stripe never stored",
        &scene,
        &repeated,
        REPEATED,
    );
    let mut euros = row(State::InFlight);
    euros.currency = Currency::parse("eur").unwrap();
    let scene = Scene::of(ask).known_by(euros);
    check("another currency", &scene, &other(true, true), &[]);
}

#[test]
fn stored_declines_join_the_next_derived_key() {
    let ask = Ask {
        key: keyless(),
        ..create()
    };
    for (name, stored, attempt, declines) in [
        ("first decline", true, 0, 1),
        ("third decline", true, 2, 3),
        ("a 429 after one decline", false, 1, 1),
        ("a 429", false, 0, 0),
    ] {
        let mut row = released(stored);
        row.attempt = attempt;
        row.send.upstream_key = text(false, attempt).to_owned();
        let mut scene = Scene::of(ask.clone()).known_by(row);
        scene.known.as_mut().unwrap().0.key = text(false, attempt).to_owned();
        let expected = Expect::Reserve(text(false, declines), true, true);
        check(name, &scene, &expected, REPEATED);
    }
}

/// Under `flag` nothing but its key protects a second amount: it must not lose it when the first
/// amount's send turns out to have done nothing.
#[test]
fn an_amount_with_a_derived_key_of_its_own_keeps_it() {
    let ask = Ask {
        key: keyless(),
        ..create()
    };
    let mut never_stored = released(false);
    never_stored.id = OTHER_ROW;
    never_stored.amount = minor(200);
    let scene = Scene::of(ask).known_by(never_stored);
    let mut scene = scene.key(|key| key.on_duplicate = OnDuplicate::Flag);
    let mut request = request(&scene.ask);
    request.key = text(true, 0).to_owned();
    scene.known_other_amount = Some((request, row(State::Settled)));
    let scene = scene.held_by(row(State::Settled));
    check(
        "sent under the amount's key",
        &scene,
        &Expect::Read,
        REPEATED,
    );
}

#[test]
fn a_keyless_create_without_customer_cannot_join_another_amount() {
    let first = derived_key("POST /v1/charges hash");
    let ask = Ask {
        customer: None,
        key: ClientKey::Derived {
            first: first.clone(),
            other_amount: None,
        },
        ..create()
    };
    let scene = Scene::of(ask).known_by(row(State::Settled));
    check("the same", &scene, &Expect::Read, REPEATED);
    let other = scene.ask(|ask| ask.money = usd(101));
    let refused = Refusal::IdempotencyKeyReused {
        key: first.upstream_text(0),
    };
    check(
        "never by its key alone",
        &other,
        &Expect::Refuse(refused),
        &[],
    );
}
