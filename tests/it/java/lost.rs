//! A client that repeats on `IOException` and on nothing else, under a fresh key for each send.

use serde_json::json;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::jvm::{Call, Jvm};
use super::route::Route;
use crate::support::patience::within;
use crate::support::relay::Relay;
use crate::support::{LedgerKind, VaultKey, World};

const MODE: &str = "retries-lost-answers";

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

/// What Stripe did not answer is a 504 and no `IOException`: such a client does not repeat it. Its next
/// run does, and gets the charge.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_stripe_lost_waits_for_the_next_run() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(1_000_000, json!({})).await;
    let lost = Fault::new(FaultKind::CommitThenRst).method("POST").once();
    world.sandbox.add_fault(lost);
    let first = run(&world, &key).await;
    assert_eq!(
        (first.status, first.code.as_str()),
        (504, "outcome_unknown")
    );
    assert_eq!(first.verdict, "LATER");
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
