//! Step 1: what the key's own status says, before anything else is looked at.

use super::*;

#[test]
fn a_key_that_may_not_spend_is_refused_whatever_is_known() {
    type Change = fn(&mut VaultKey);
    let cases: [(&str, Change, Refusal); 4] = [
        (
            "revoked",
            |key| key.status = KeyStatus::Revoked,
            Refusal::VaultKeyRevoked,
        ),
        (
            "stopped",
            |key| key.status = KeyStatus::Stopped,
            Refusal::VaultKeyStopped,
        ),
        (
            "expired to the millisecond",
            |key| key.expires_at = NOW,
            Refusal::VaultKeyExpired { expired_at: NOW },
        ),
        (
            "early by a millisecond",
            |key| key.starts_at = Some(NOW.plus_ms(1)),
            Refusal::VaultKeyNotYetValid {
                starts_at: NOW.plus_ms(1),
            },
        ),
    ];
    let settled = Scene::of(create()).known_by(row(State::Settled));
    for (name, change, refusal) in cases {
        check(
            name,
            &settled.clone().key(change),
            &Expect::Refuse(refusal),
            &[],
        );
        let observing = settled.clone().key(change);
        let observing = observing.key(|key| key.enforcement = Enforcement::Observe);
        assert!(
            matches!(observing.decide().action, Action::Refuse(_)),
            "{name}, observing"
        );
    }
    let mut gone = settled;
    gone.key = None;
    let invalid = Expect::Refuse(Refusal::VaultKeyInvalid);
    check("not in the ledger", &gone, &invalid, &[]);
    let last = Scene::of(create()).key(|key| {
        key.starts_at = Some(NOW);
        key.expires_at = NOW.plus_ms(1);
    });
    check("first and last millisecond", &last, &FRESH, &[]);
}

#[test]
fn a_second_look_counts_no_flag_twice() {
    let scene = Scene::of(create()).held_by(row(State::InFlight));
    let flags = [FlagKind::DuplicateCustomerPeriod];
    check("first look", &scene, &Expect::Wait, &flags);
    let again = scene.ask(|ask| ask.look = Look::Again);
    check("after a wait", &again, &Expect::Wait, &[]);
}
