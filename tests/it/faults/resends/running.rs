//! The connection breaks while Stripe still executes: it says that the key is in use, which proves nothing.

use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use super::{LEDGERS, SENDS_MAX, ask, assert_sent, row_of, says, sent, stands};
use crate::support::patience::{until, within};
use crate::support::relay::Relay;
use crate::support::{LedgerKind, VaultKey, World};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_one_ends_in_time() {
    for ledger in LEDGERS {
        let (world, key, relay) = scene(ledger).await;
        let end = async {
            break_off(&world, &relay).await;
            until("it is sent again", async || {
                (sent(&world, "cus_1").len() > 1).then_some(())
            })
            .await;
            world.sandbox.release_gate();
        };
        let (charged, ()) = tokio::join!(ask(&world, &key, "cus_1", true), end);
        let made = world.made();
        assert_eq!(made.len(), 1);
        assert_eq!(charged.expect(200).json()["id"], made[0].id);
        assert_eq!(row_of(&world, "cus_1").await["state"], "settled");
        world.assert_balanced(&key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_one_takes_longer() {
    for ledger in LEDGERS {
        let (world, key, relay) = scene(ledger).await;
        let (lost, ()) = tokio::join!(ask(&world, &key, "cus_1", true), break_off(&world, &relay));
        assert_eq!(lost.expect(504).code(), "outcome_unknown");
        let row = row_of(&world, "cus_1").await;
        assert_eq!(stands(&row), says("held", SENDS_MAX));
        assert_eq!(row["amount_reserved"], 9_900);
        assert_sent(&world, "cus_1", SENDS_MAX);
        assert!(world.made().is_empty());
        // A repeat of the client's own is told what Stripe says, and releases nothing either.
        let early = ask(&world, &key, "cus_1", true).await.expect(409);
        assert_eq!(early.code(), "idempotency_key_in_use");
        assert_eq!(row_of(&world, "cus_1").await["state"], "held");
        world.sandbox.release_gate();
        until("the first one has ended", async || {
            (world.made().len() == 1).then_some(())
        })
        .await;
        ask(&world, &key, "cus_1", true).await.expect(200);
        assert_eq!(world.made().len(), 1);
        world.assert_balanced(&key).await;
    }
}

/// A relay to Stripe, whose first charge stands still.
async fn scene(ledger: LedgerKind) -> (World, VaultKey, Relay) {
    let mut world = World::start(ledger, 0, &[]).await;
    let relay = Relay::to(world.sandbox.addr());
    let url = format!("http://{}", relay.addr());
    let setting = "SPENDCAP_UPSTREAM_BASE_URL".to_owned();
    world.environment.push((setting, url));
    world.add_replica().await;
    let key = world.issue(9_000, json!({})).await;
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    world.sandbox.add_fault(gate);
    (world, key, relay)
}

async fn break_off(world: &World, relay: &Relay) {
    within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
    relay.cut();
    relay.mend();
}
