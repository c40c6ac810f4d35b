//! An operator's commands: caps, keys, resolutions, and the chain of the audit log.

use super::audit_hash;
use super::steps::{books, send, sent, settled};
use super::*;
use crate::ledger::LostCommits;
use crate::ledger::command::{ControlKey, EndLost, Subject};

fn store(max: i64) -> MemoryStore {
    MemoryStore::new(START, [vault_key("vk_one", max, OnDuplicate::Replay)])
}

fn expect(total: i64, resume: bool) -> Control {
    Control::UpdateKey {
        id: id("vk_one"),
        expected_totals: vec![(usd(), minor(total))],
        headroom: None,
        resume,
        reason: "INC-4411".to_owned(),
    }
}

fn resolve(row: &Reservation, resolution: Resolution) -> Control {
    Control::Resolve {
        reservation: Box::new(row.clone()),
        resolution,
        reason: "seen in the Dashboard".to_owned(),
    }
}

fn moved(object_id: &str) -> Resolution {
    Resolution::Settled {
        amount: minor(100),
        object_id: object_id.to_owned(),
    }
}

#[test]
fn a_cap_below_its_usage_changes_no_usage_and_refuses_the_next_charge() {
    let mut store = store(100);
    let row = send(&mut store, 100, "a");
    store.settle(&row, settled("ch_1", 100));
    store.control(expect(50, false)).unwrap();
    books(&store, (0, 100, KeyStatus::Active));
    let ask = create("vk_one", "cus_2", 1, given("b"));
    for (total, fits) in [(50, false), (100, false), (101, true)] {
        store.control(expect(total, false)).unwrap();
        let verdict = store.reserve(&ask);
        assert_eq!(matches!(verdict, Verdict::Send(_)), fits, "{total}");
    }
}

#[test]
fn only_a_resume_lifts_a_stop_and_nothing_lifts_a_revocation() {
    let mut store = store(100);
    let row = send(&mut store, 100, "a");
    store.settle(&row, settled("ch_1", 101));
    books(&store, (0, 101, KeyStatus::Stopped));
    store.control(expect(1000, false)).unwrap();
    books(&store, (0, 101, KeyStatus::Stopped));
    store.control(expect(1000, true)).unwrap();
    books(&store, (0, 101, KeyStatus::Active));
    let revoke = Control::Revoke {
        id: id("vk_one"),
        reason: "leaked".to_owned(),
    };
    store.control(revoke).unwrap();
    assert_eq!(
        store.control(expect(1000, true)),
        Err(ControlError::Revoked)
    );
    // Money that moves after the revocation is recorded all the same.
    store.settle(&row, settled("ch_1", 105));
    books(&store, (0, 105, KeyStatus::Revoked));
}

#[test]
fn a_resolution_is_taken_where_it_is_news() {
    for (before, settles, releases) in [
        (Outcome::Unknown, true, true),
        (Outcome::NotSent, true, false),
        (settled("ch_1", 100), false, false),
    ] {
        let at = |resolution| {
            let mut store = store(1000);
            let row = send(&mut store, 100, "a");
            store.settle(&row, before.clone());
            let done = store.control(resolve(&row, resolution));
            (store, done)
        };
        let (store, done) = at(moved("ch_1"));
        assert_eq!(done.is_ok(), settles, "{before:?}");
        if settles {
            books(&store, (0, 100, KeyStatus::Active));
        }
        let (store, done) = at(Resolution::Released);
        assert_eq!(done.is_ok(), releases, "{before:?}");
        if releases {
            books(&store, (0, 0, KeyStatus::Active));
        }
    }
    let mut store = store(1000);
    let row = send(&mut store, 100, "a");
    let in_flight = ControlError::NotResolvable(State::InFlight);
    assert_eq!(
        store.control(resolve(&row, Resolution::Released)),
        Err(in_flight)
    );
}

/// The row was sent again after the operator looked: that nothing had moved until then proves nothing of it.
#[test]
fn a_release_speaks_of_the_sends_it_was_decided_on() {
    let mut store = store(1000);
    let seen = send(&mut store, 100, "a");
    store.settle(&seen, Outcome::Unknown);
    let again = send(&mut store, 100, "a");
    assert_eq!((again.id, again.send.sends), (seen.id, 2));
    store.settle(&again, Outcome::Unknown);
    let released = store.control(resolve(&seen, Resolution::Released));
    assert_eq!(released, Err(ControlError::SentAgain(2)));
    books(&store, (100, 0, KeyStatus::Active));
    // That money moved counts whenever it was seen.
    store.control(resolve(&seen, moved("ch_1"))).unwrap();
    books(&store, (0, 100, KeyStatus::Active));
}

#[test]
fn evidence_of_another_object_resolves_nothing() {
    let mut store = store(1000);
    let row = send(&mut store, 100, "a");
    let open = Outcome::Open {
        object_id: "ch_1".to_owned(),
        ceiling: minor(100),
    };
    store.settle(&row, open);
    let refused = store.control(resolve(&row, moved("ch_2")));
    assert_eq!(refused, Err(ControlError::OtherObject("ch_1".to_owned())));
    books(&store, (100, 0, KeyStatus::Active));
}

/// The slot went to another charge meanwhile: the row comes back without it.
#[test]
fn late_evidence_is_taken_although_the_slot_is_taken() {
    let mut store = store(150);
    let first = send(&mut store, 100, "a");
    store.settle(&first, Outcome::NotSent);
    let second = send(&mut store, 100, "b");
    store.settle(&second, settled("ch_2", 100));
    store.control(resolve(&first, moved("ch_1"))).unwrap();
    books(&store, (0, 200, KeyStatus::Stopped));
    assert_eq!(store.rows[&first.id].slot_claim, None);
}

#[test]
fn evidence_that_is_counted_elsewhere_is_not_counted_again() {
    let mut store = store(1000);
    let owner = send(&mut store, 100, "a");
    store.settle(&owner, settled("ch_1", 100));
    let ask = create("vk_one", "cus_2", 100, given("b"));
    let Verdict::Send(ticket) = store.reserve(&ask) else {
        panic!("it is another customer");
    };
    let row = ticket.reservation();
    let above_its_reserve = Resolution::Settled {
        amount: minor(101),
        object_id: "ch_1".to_owned(),
    };
    // Neither counted twice nor given back on a word that contradicts itself, in whatever state.
    for (before, reserved) in [(Outcome::Unknown, 100), (Outcome::NotSent, 0)] {
        store.settle(row, before);
        let stands = store.rows[&row.id].clone();
        for resolution in [moved("ch_1"), above_its_reserve.clone()] {
            let refused = store.control(resolve(row, resolution));
            assert_eq!(refused, Err(ControlError::ObjectTaken(owner.id)));
            assert_eq!(store.rows[&row.id], stands);
            books(&store, (reserved, 100, KeyStatus::Active));
        }
        assert!(store.audit.is_empty());
    }
}

/// A capture through another vault key counts the object until it is told who made it: both do.
#[test]
fn evidence_of_an_object_that_a_capture_adopted_is_taken_by_the_row_that_made_it() {
    let mut store = store(1000);
    let row = send(&mut store, 100, "a");
    store.settle(&row, Outcome::Unknown);
    let ask = capture("vk_one", "ch_1", 100, given("b"));
    let adopted = sent(store.reserve(&ask)).reservation().clone();
    store.settle(&adopted, settled("ch_1", 100));
    store.control(resolve(&row, moved("ch_1"))).unwrap();
    books(&store, (0, 200, KeyStatus::Active));
}

#[test]
fn a_repeated_command_is_carried_out_once_and_audited_once() {
    let mut store = store(100);
    let key = |fingerprint: &str| ControlKey {
        digest: Digest16::of("test", &["key"]),
        fingerprint: Digest16::of("test", &[fingerprint]),
    };
    let request = |control, fingerprint| ControlRequest {
        control,
        actor: "ops".to_owned(),
        idempotency: Some(key(fingerprint)),
    };
    for replayed in [false, true] {
        let done = store
            .control_request(request(expect(200, false), "one"))
            .unwrap();
        assert_eq!(done.replayed, replayed);
        assert!(
            matches!(done.subject, Subject::VaultKey(key) if key.caps[0].max_amount == minor(200))
        );
    }
    let reused = store.control_request(request(expect(300, false), "two"));
    assert_eq!(reused, Err(ControlError::KeyReused));
    store.control(expect(400, false)).unwrap();
    assert_eq!(store.audit.len(), 2);
    let mut before = [0; 32];
    for entry in &store.audit {
        assert_eq!(entry.previous_hash, before);
        let fields = [
            entry.actor.as_str(),
            entry.action,
            &entry.subject,
            &entry.reason,
            &entry.detail,
        ];
        assert_eq!(entry.hash, audit_hash(&before, entry.at.0, fields));
        before = entry.hash;
    }
}

/// What left in time may become a charge while the feed is read, behind what was read of it.
#[test]
fn lost_commits_end_only_where_the_reading_began_late_enough() {
    let mut store = store(1000);
    let lost = LostCommits {
        found_at: START,
        newest_row: None,
        why: "a timeline".to_owned(),
    };
    store.lost = Some(lost.clone());
    let end = |read_at| {
        Control::EndLost(Box::new(EndLost {
            lost: lost.clone(),
            read_at,
            reason: String::new(),
            detail: String::new(),
        }))
    };
    let quiet_at = START.plus_ms(TIMES.deadline_ms);
    store.now = quiet_at.plus_ms(60_000);
    let early = store.control(end(quiet_at.plus_ms(-1)));
    assert_eq!(early, Err(ControlError::TooEarly(quiet_at)));
    assert!(store.lost.is_some());
    store.control(end(quiet_at)).unwrap();
    assert_eq!(store.lost, None);
}
