//! An answer is lost, and the client sends again: one charge, and the client ends with it.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::sender::{SENDERS, Seen, Sender};
use crate::support::patience::{until, within};
use crate::support::relay::Relay;
use crate::support::{LedgerKind, VaultKey, World};

async fn world() -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(1_000_000, json!({})).await;
    (world, key)
}

/// The one charge of `customer` is what the client was told.
#[track_caller]
fn assert_once(world: &World, customer: &str, seen: &Seen) {
    let made = world.sandbox.charges_of(customer);
    assert_eq!(made.len(), 1, "{customer} {seen:?} {made:?}");
    assert_eq!((seen.status, &seen.id), (200, &made[0].id), "{customer}");
}

/// Stripe charges and its answer is lost. spendcap asks for it again; what it cannot learn it says with
/// `Stripe-Should-Retry`, so each sends again; PHP without any key, as stripe-php does where retries are set on
/// a client.
#[tokio::test(flavor = "multi_thread")]
async fn stripes_answer_is_lost() {
    let (world, key) = world().await;
    let losses = [
        (FaultKind::CommitThenFin, 1, 1),
        (FaultKind::CommitThenRst, 1, 1),
        (FaultKind::TruncateBody, 1, 1),
        (FaultKind::ResetBeforeCommit, 1, 1),
        (FaultKind::CommitThenRst, 3, 2),
        (FaultKind::CommitThen503, 1, 2),
        (FaultKind::Html502, 1, 2),
    ];
    for (number, (loss, times, attempts)) in losses.into_iter().enumerate() {
        for sender in SENDERS {
            let customer = format!("cus_{sender:?}_{number}");
            let fault = Fault::new(loss).method("POST").times(times);
            world.sandbox.add_fault(fault.customer(&customer));
            let seen = sender
                .charge(&world, &key, &customer, &["--retries=2"])
                .await;
            assert_once(&world, &customer, &seen);
            assert_eq!(seen.attempts, attempts, "{loss:?} {customer} {seen:?}");
        }
    }
    world.assert_balanced(&key).await;
}

/// Stripe charges and stores a 500, which it repeats for ever and asks nobody to retry. Calls made anew,
/// under new keys or none, add no charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_500_is_not_charged_twice() {
    let (world, key) = world().await;
    for sender in SENDERS {
        let customer = format!("cus_{sender:?}");
        let fault = Fault::new(FaultKind::CommitThen500).method("POST").once();
        world.sandbox.add_fault(fault.customer(&customer));
        for _call in 0..3 {
            let seen = sender
                .charge(&world, &key, &customer, &["--retries=2"])
                .await;
            assert_eq!(
                (seen.attempts, seen.status),
                (1, 500),
                "{customer} {seen:?}"
            );
        }
        assert_eq!(world.sandbox.charges_of(&customer).len(), 1, "{customer}");
    }
}

/// spendcap's answer is lost on its way to the client. Go and Ruby send again after a reset; PHP fails, and
/// its user calls again.
#[tokio::test(flavor = "multi_thread")]
async fn our_answer_is_lost() {
    let (world, key) = world().await;
    let relay = Relay::to(world.apps[0].proxy_addr());
    let url = format!("http://{}", relay.addr());
    for sender in SENDERS {
        let customer = format!("cus_{sender:?}");
        let gate = Fault::new(FaultKind::Gate {
            at: Moment::AfterCommit,
        });
        world.sandbox.add_fault(gate.method("POST").once());
        let field = format!("customer={customer}");
        let fields = ["POST", "/v1/charges", "amount=9900", "currency=usd", &field];
        let arguments = [&["--retries=2"], &fields[..]].concat();
        let lose = async {
            within("the charge", world.sandbox.wait_until_held(1)).await;
            relay.cut();
            relay.mend();
            world.sandbox.release_gate();
        };
        let (mut seen, ()) = tokio::join!(sender.send(&url, &key.secret, &arguments), lose);
        if sender == Sender::Php {
            assert_eq!((seen.attempts, seen.status), (1, 0), "{seen:?}");
            seen = sender.send(&url, &key.secret, &arguments).await;
        } else {
            assert_eq!(seen.attempts, 2, "{sender:?} {seen:?}");
        }
        assert_once(&world, &customer, &seen);
    }
    world.assert_balanced(&key).await;
}

/// PHP gives up on a slow answer and sends again, without a key, while the first request is still running.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_of_php_is_sent_again_without_a_key() {
    let (world, key) = world().await;
    let gate = Fault::new(FaultKind::Gate {
        at: Moment::BeforeCommit,
    });
    world.sandbox.add_fault(gate.method("POST").once());
    let options = ["--retries=100", "--timeout-ms=300"];
    let ask = Sender::Php.charge(&world, &key, "cus_1", &options);
    let let_go = async {
        within("the charge", world.sandbox.wait_until_held(1)).await;
        let repeated = "idempotency_key_repeated";
        let asked_again = async || {
            let times = world.operator().flagged(&key, repeated).await;
            (times >= 1).then_some(())
        };
        until("it has asked again", asked_again).await;
        world.sandbox.release_gate();
    };
    let (seen, ()) = tokio::join!(ask, let_go);
    assert!(seen.attempts >= 2, "{seen:?}");
    assert_once(&world, "cus_1", &seen);
    world.assert_balanced(&key).await;
}
