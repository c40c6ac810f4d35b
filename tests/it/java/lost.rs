//! A client that repeats on `IOException` and on nothing else, under a fresh key for each send or a stable one.

use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Fault, FaultKind, Moment, SeenRequest};

use super::jvm::{Call, Jvm};
use super::route::{Route, Run, Trouble};
use crate::support::patience::within;
use crate::support::relay::Relay;
use crate::support::{LedgerKind, VaultKey, World};

const MODE: &str = "retries-lost-answers";
const STABLE_KEY: &str = "stable-key-and-lost-answers";

/// Each is executed before its answer is lost.
const LOST: [Trouble; 3] = [
    lost("cus_closed", FaultKind::CommitThenFin, 1),
    lost("cus_reset", FaultKind::CommitThenRst, 1),
    lost("cus_closed_twice", FaultKind::CommitThenFin, 2),
];

const fn lost(customer: &'static str, fault: FaultKind, times: u32) -> Trouble {
    Trouble {
        customer,
        fault: Some(fault),
        times,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_lost_on_its_last_stretch() {
    for (route, charges) in [(Route::Straight, 2), (Route::Through, 1)] {
        let world = World::on(LedgerKind::Sqlite).await;
        let key = world.issue(1_000_000, json!({})).await;
        let (server, secret) = match route {
            Route::Straight => (world.sandbox.addr(), SECRET_KEY_DEFAULT),
            Route::Through => (world.apps[0].proxy_addr(), key.secret.as_str()),
        };
        let relay = Relay::to(server);
        let gate = FaultKind::Gate {
            at: Moment::AfterCommit,
        };
        world
            .sandbox
            .add_fault(Fault::new(gate).method("POST").once());
        let url = format!("http://{}", relay.addr());
        let job = Jvm::start(&url, secret, &["one-by-one", MODE, "cus_1"]);
        within("the charge", world.sandbox.wait_until_held(1)).await;
        assert_eq!(world.made().len(), 1);
        relay.cut();
        relay.mend();
        world.sandbox.release_gate();
        let calls = job.ended().await;
        let made = world.made();
        assert_eq!(made.len(), charges, "{route:?}");
        assert_eq!(calls[0].status, 200, "{route:?} {calls:?}");
        assert_eq!(calls[0].charge, made[charges - 1].id, "{route:?}");
    }
}

/// Stripe's answer is lost once or twice. Straight, such a client repeats; through spendcap it does not have to,
/// since that asks again itself. What is lost each time is a 504, and the next run gets the charge.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_stripe_lost_is_asked_for_again() {
    for mode in [MODE, STABLE_KEY] {
        let straight = Run::of(mode, Route::Straight, &LOST).await;
        let through = Run::of(mode, Route::Through, &LOST).await;
        for Trouble {
            customer, times, ..
        } in LOST
        {
            let sends = usize::try_from(times).unwrap() + 1;
            let made = if mode == MODE { sends } else { 1 };
            assert_eq!(straight.charges(customer).len(), made, "{mode} {customer}");
            assert_eq!(straight.call(customer).status, 200, "{mode} {customer}");
            let call = through.call(customer);
            let made = through.charges(customer);
            assert_eq!((call.status, made.len()), (200, 1), "{mode} {call:?}");
            assert_eq!(call.charge, made[0], "{mode} {call:?}");
            let of_this = |seen: &&SeenRequest| seen.body.ends_with(&format!("={customer}"));
            let sent = through.sent.iter().filter(of_this).count();
            assert_eq!(sent, sends, "{mode} {customer}");
        }
        assert_eq!(through.cap["reserved"], 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_each_time_waits_for_the_next_run() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(1_000_000, json!({})).await;
    let lost = Fault::new(FaultKind::CommitThenRst).method("POST");
    world.sandbox.add_fault(lost);
    let first = run(&world, &key).await;
    assert_eq!(
        (first.status, first.code.as_str()),
        (504, "outcome_unknown")
    );
    assert_eq!(first.verdict, "LATER");
    world.sandbox.clear_faults();
    let second = run(&world, &key).await;
    assert_eq!((second.status, second.replayed), (200, true), "{second:?}");
    let made = world.made();
    assert_eq!(made.len(), 1);
    assert_eq!(second.charge, made[0].id);
    world.assert_balanced(&key).await;
}

async fn run(world: &World, key: &VaultKey) -> Call {
    let job = Jvm::start(
        &world.proxy_url(0),
        &key.secret,
        &["one-by-one", MODE, "cus_1"],
    );
    job.ended().await.remove(0)
}
