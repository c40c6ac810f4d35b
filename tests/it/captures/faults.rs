//! Captures whose answers are lost, refused or errors.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::{Capture, LEDGERS, WHOLE, authorise, books, captures_sent, part, state};
use crate::support::{LedgerKind, VaultKey, World};

/// What is lost stays so until the client repeats it.
const OFF: [(&str, &str); 1] = [("SPENDCAP_UPSTREAM_RESENDS_MAX", "0")];

async fn scene(kind: LedgerKind, fault: FaultKind) -> (World, VaultKey, String) {
    scene_with(kind, fault, &OFF).await
}

async fn scene_with(
    kind: LedgerKind,
    fault: FaultKind,
    settings: &[(&str, &str)],
) -> (World, VaultKey, String) {
    let world = World::start(kind, 1, settings).await;
    let key = world.issue(100_000, json!({})).await;
    let charge = authorise(&world, &key).await;
    let fault = Fault::new(fault).path_prefix(format!("/v1/charges/{charge}/capture"));
    world.sandbox.add_fault(fault.times(1));
    (world, key, charge)
}

const ONE: Capture<'_> = Capture {
    replica: 0,
    amount: Some(6_000),
    idempotency_key: Some("one"),
};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_held_and_its_repeat_settles_it_under_any_key() {
    for kind in LEDGERS {
        for repeat in ["one", "two"] {
            for fault in [FaultKind::CommitThenRst, FaultKind::ResetBeforeCommit] {
                let (world, key, charge) = scene(kind, fault).await;
                let lost = ONE.ask(&world, &key, &charge).await.expect(504);
                assert_eq!(lost.code(), "outcome_unknown");
                assert_eq!(state(&world, &key).await, "held");
                assert_eq!(books(&world, &key).await, (10_000, 0));
                let other = part(5_000).ask(&world, &key, &charge).await.expect(409);
                assert_eq!(other.code(), "outcome_unknown");
                let repeat = Capture {
                    idempotency_key: Some(repeat),
                    ..ONE
                };
                let settled = repeat.ask(&world, &key, &charge).await.expect(200);
                assert_eq!(settled.json()["amount_captured"], 6_000);
                assert_eq!(captures_sent(&world), 2);
                let keys = world.sandbox.requests();
                let keys = keys.iter().filter(|one| one.path.ends_with("/capture"));
                assert!(
                    keys.clone()
                        .all(|one| one.idempotency_key.as_deref() == Some("one"))
                );
                assert_eq!(books(&world, &key).await, (0, 6_000));
                world.assert_balanced(&key).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again() {
    for kind in LEDGERS {
        for fault in [
            FaultKind::CommitThenRst,
            FaultKind::TruncateBody,
            FaultKind::ResetBeforeCommit,
        ] {
            let (world, key, charge) = scene_with(kind, fault, &[]).await;
            let settled = ONE.ask(&world, &key, &charge).await.expect(200);
            assert_eq!(settled.json()["amount_captured"], 6_000);
            assert_eq!(captures_sent(&world), 2);
            let mut keys = world.sandbox.requests();
            keys.retain(|one| one.path.ends_with("/capture"));
            let own = |key: Option<&str>| key == Some("one");
            assert!(keys.iter().all(|sent| own(sent.idempotency_key.as_deref())));
            world.assert_balanced(&key).await;
        }
    }
}

/// The second send is refused; the object says that the first one took the money. The client is told neither
/// a refusal nor a success, and asks again.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_second_send_is_no_answer_to_the_first() {
    for kind in LEDGERS {
        let (world, key, charge) = scene_with(kind, FaultKind::CommitThenFin, &[]).await;
        let limited = Fault::new(FaultKind::RateLimit429).method("POST").times(1);
        world.sandbox.add_fault(limited);
        let lost = ONE.ask(&world, &key, &charge).await.expect(504);
        assert_eq!(lost.code(), "outcome_unknown");
        assert_eq!(state(&world, &key).await, "settled");
        ONE.ask(&world, &key, &charge).await.expect(200);
        assert_eq!(captures_sent(&world), 2);
        world.assert_balanced(&key).await;
    }
}

/// A 500 proves nothing: the money may have moved, so what was authorised stays reserved.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_500_stays_held_however_often_it_is_repeated() {
    for kind in LEDGERS {
        for (fault, taken) in [(FaultKind::Error500, 0), (FaultKind::CommitThen500, 6_000)] {
            let (world, key, charge) = scene(kind, fault).await;
            for sends in 1..=2 {
                ONE.ask(&world, &key, &charge).await.expect(500);
                assert_eq!(captures_sent(&world), sends);
                assert_eq!(state(&world, &key).await, "held");
                assert_eq!(books(&world, &key).await, (10_000, 0));
                assert_eq!(world.taken(), taken);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_send_leaves_the_authorisation_open() {
    for kind in LEDGERS {
        for (fault, status) in [
            (FaultKind::RateLimit429, 429),
            (FaultKind::Conflict409, 409),
            (FaultKind::Forbidden403, 403),
        ] {
            let (world, key, charge) = scene(kind, fault).await;
            ONE.ask(&world, &key, &charge).await.expect(status);
            assert_eq!(state(&world, &key).await, "open");
            assert_eq!(books(&world, &key).await, (10_000, 0));
            ONE.ask(&world, &key, &charge).await.expect(200);
            world.assert_balanced(&key).await;
        }
    }
}

/// The refusal is for a capture that somebody else made meanwhile: the object says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_after_a_lost_answer_is_settled_by_the_object() {
    for kind in LEDGERS {
        let (world, key, charge) = scene(kind, FaultKind::CommitThenFin).await;
        ONE.ask(&world, &key, &charge).await.expect(504);
        let limited = Fault::new(FaultKind::RateLimit429).method("POST").times(1);
        world.sandbox.add_fault(limited);
        ONE.ask(&world, &key, &charge).await.expect(429);
        assert_eq!(state(&world, &key).await, "settled");
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_wait_for_the_one_that_is_under_way() {
    for kind in LEDGERS {
        let (world, key, charge) = scene(
            kind,
            FaultKind::Gate {
                at: Moment::BeforeCommit,
            },
        )
        .await;
        let first = ONE.ask(&world, &key, &charge);
        let second = async {
            world.sandbox.wait_until_held(1).await;
            let (second, ()) = tokio::join!(
                Capture {
                    idempotency_key: Some("two"),
                    ..ONE
                }
                .ask(&world, &key, &charge),
                async { world.sandbox.release_gate() },
            );
            second
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!(first.expect(200).json()["amount_captured"], 6_000);
        assert_eq!(second.expect(200).json()["amount_captured"], 6_000);
        assert_eq!(captures_sent(&world), 1);
        world.assert_balanced(&key).await;
        WHOLE.ask(&world, &key, &charge).await.expect(400);
    }
}
