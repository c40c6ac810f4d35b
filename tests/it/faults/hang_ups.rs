//! The client hangs up: from the reserve on it changes nothing, before that nothing has happened.

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};

use crate::support::hold::Hold;
use crate::support::patience::{until, within};
use crate::support::raw::{RawClient, charge_text};
use crate::support::{Charge, LedgerKind, VaultKey, World};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Sqlite, LedgerKind::Postgres];
const ENDS: [End; 2] = [End::Close, End::Reset];

/// How a client goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Close,
    Reset,
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_request_is_sent() {
    for ledger in LEDGERS {
        let (world, key) = scene(ledger).await;
        let whole = charge_text(&key, &charge("first"));
        let body = whole.find("amount=").unwrap();
        for end in ENDS {
            for sent in [body / 2, body, body + 9, whole.len() - 1] {
                let mut client = RawClient::connect(world.apps[0].proxy_addr()).await;
                client.write(&whole[..sent]).await;
                hang_up(client, end).await;
            }
        }
        assert!(world.reservations(&key).await.is_empty());
        assert_eq!(posts(&world), 0);
        world.charge(&key, charge("first")).await.expect(200);
        one_charge(&world, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_reserve_waits() {
    for (ledger, end) in each() {
        let (world, key) = scene(ledger).await;
        let mut hold = Hold::take(world.ledger_url()).await;
        let client = RawClient::charge(world.apps[0].proxy_addr(), &key, &charge("first")).await;
        hold.until_waited_for().await;
        hang_up(client, end).await;
        hold.release().await;
        if ledger == LedgerKind::Postgres {
            // SQLite does not tell whether the request had come that far.
            until_settled(&world, &key).await;
        }
        world.charge(&key, charge("fresh")).await.expect(200);
        one_charge(&world, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_waits_for_another_request() {
    for (ledger, end) in each() {
        let (world, key) = scene(ledger).await;
        let first = held_by_stripe(&world, &key, Moment::BeforeCommit).await;
        let second = RawClient::charge(world.apps[0].proxy_addr(), &key, &charge("second")).await;
        until_flagged(&world).await;
        hang_up(second, end).await;
        world.sandbox.release_gate();
        until_settled(&world, &key).await;
        hang_up(first, end).await;
        for name in ["first", "second"] {
            world.charge(&key, charge(name)).await.expect(200);
        }
        one_charge(&world, &key).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_works_and_while_its_answer_is_on_its_way() {
    for (ledger, end) in each() {
        for at in [Moment::BeforeCommit, Moment::AfterCommit] {
            let (world, key) = scene(ledger).await;
            let client = held_by_stripe(&world, &key, at).await;
            hang_up(client, end).await;
            world.sandbox.release_gate();
            until_settled(&world, &key).await;
            for name in ["first", "fresh"] {
                let repeat = world.charge(&key, charge(name)).await.expect(200);
                assert_eq!(repeat.json()["id"], world.made()[0].id.as_str());
            }
            one_charge(&world, &key).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_settle_waits() {
    for (ledger, end) in each() {
        let (world, key) = scene(ledger).await;
        let client = held_by_stripe(&world, &key, Moment::AfterCommit).await;
        let mut hold = Hold::take(world.ledger_url()).await;
        world.sandbox.release_gate();
        hold.until_waited_for().await;
        hang_up(client, end).await;
        hold.release().await;
        until_settled(&world, &key).await;
        world.charge(&key, charge("first")).await.expect(200);
        one_charge(&world, &key).await;
    }
}

fn each() -> impl Iterator<Item = (LedgerKind, End)> {
    LEDGERS
        .into_iter()
        .flat_map(|ledger| ENDS.map(|end| (ledger, end)))
}

/// A closing client waits until the proxy has let go of the connection as well, which shows that it
/// noticed. A reset one is deaf.
async fn hang_up(mut client: RawClient, end: End) {
    match end {
        End::Close => {
            client.finish().await;
            // A request that was cut off may be refused; nobody has to be there to read it.
            client.read_all().await;
        }
        End::Reset => client.reset(),
    }
}

/// The cap is one charge.
async fn scene(ledger: LedgerKind) -> (World, VaultKey) {
    let world = World::on(ledger).await;
    let key = world.issue(9_000, json!({})).await;
    (world, key)
}

async fn held_by_stripe(world: &World, key: &VaultKey, at: Moment) -> RawClient {
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    world.sandbox.add_fault(gate);
    let client = RawClient::charge(world.apps[0].proxy_addr(), key, &charge("first")).await;
    within("requests at Stripe", world.sandbox.wait_until_held(1)).await;
    client
}

/// Waits until the key's newest reservation is settled.
async fn until_settled(world: &World, key: &VaultKey) {
    until("it is settled", async || {
        let rows = world.reservations(key).await;
        let newest = rows.first()?;
        (newest["state"] == "settled").then_some(())
    })
    .await;
}

async fn until_flagged(world: &World) {
    until("the second request is seen", async || {
        let flags = world.admin(Method::GET, "/v1/flags", None).await;
        (flags.expect(200).json()["data"] != json!([])).then_some(())
    })
    .await;
}

async fn one_charge(world: &World, key: &VaultKey) {
    assert_eq!(world.made().len(), 1);
    world.assert_balanced(key).await;
}

fn charge(idempotency_key: &str) -> Charge<'_> {
    Charge {
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}

fn posts(world: &World) -> usize {
    let requests = world.sandbox.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}
