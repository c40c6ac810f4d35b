//! A commit whose answer never comes may be stored or not. Either way nothing is charged twice, and
//! nothing stays reserved that was not sent.

use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use super::{behind_a_relay, charge, posts, until_ready, until_state};
use crate::support::patience::until;
use crate::support::relay::{Loss, Relay};
use crate::support::{VaultKey, World};

/// What a reserve writes, and what a settle does.
const RESERVE: &str = "write::new_reservations";
const SETTLE: &str = "write::changed_reservations";

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_that_never_arrived_is_refused_and_sends_nothing() {
    let (world, relay, key) = scene().await;
    relay.trap().set(RESERVE, Loss::Request);
    let refused = world.charge(&key, charge("cus_1", "k1")).await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    assert_eq!(posts(&world), 0);
    assert!(world.reservations(&key).await.is_empty());
    goes_through_now(&world, &relay, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_whose_answer_was_lost_is_read_back_and_sent_once() {
    tokio::join!(
        reserve_without_an_answer(Loss::Answer),
        reserve_without_an_answer(Loss::Silence)
    );
}

async fn reserve_without_an_answer(loss: Loss) {
    let (world, relay, key) = scene().await;
    relay.trap().set(RESERVE, loss);
    world.charge(&key, charge("cus_1", "k1")).await.expect(200);
    assert_eq!(posts(&world), 1, "{loss:?}");
    goes_through_now(&world, &relay, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_that_nobody_can_read_back_is_not_sent_and_given_back() {
    let (world, relay, key) = scene().await;
    relay.trap().set(RESERVE, Loss::Silence);
    let gone = async {
        relay.trap().sprung().await;
        relay.cut();
    };
    let (refused, ()) = tokio::join!(world.charge(&key, charge("cus_1", "k1")), gone);
    assert_eq!(refused.expect(503).code(), "ledger_unavailable");
    relay.mend();
    until_ready(&world).await;
    until_state(&world, &key, "released").await;
    assert_eq!(posts(&world), 0);
    goes_through_now(&world, &relay, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_that_arrives_after_it_was_given_up_is_given_back() {
    let (world, relay, key) = scene().await;
    relay.trap().set(RESERVE, Loss::Late);
    let refused = world.charge(&key, charge("cus_1", "k1")).await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    // What gives it back waits for the transaction that is still to come.
    until_somebody_waits_for_a_lock(&world).await;
    relay.trap().deliver();
    until_state(&world, &key, "released").await;
    assert_eq!(posts(&world), 0);
    goes_through_now(&world, &relay, &key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_is_stored_whatever_was_lost_of_its_commit() {
    tokio::join!(
        settle_without_an_answer(Loss::Request),
        settle_without_an_answer(Loss::Answer),
        settle_without_an_answer(Loss::Silence),
        settle_without_an_answer(Loss::Late)
    );
}

async fn settle_without_an_answer(loss: Loss) {
    let (world, relay, key) = scene().await;
    relay.trap().set(SETTLE, loss);
    let late = async {
        if loss == Loss::Late {
            until_somebody_waits_for_a_lock(&world).await;
            relay.trap().deliver();
        }
    };
    let (answer, ()) = tokio::join!(world.charge(&key, charge("cus_1", "k1")), late);
    answer.expect(200);
    until_state(&world, &key, "settled").await;
    assert_eq!(posts(&world), 1, "{loss:?}");
    goes_through_now(&world, &relay, &key).await;
}

/// The cap is one charge.
async fn scene() -> (World, Relay, VaultKey) {
    let (world, relay) = behind_a_relay().await;
    let key = world.issue(9_000, json!({})).await;
    (world, relay, key)
}

/// The same intent again ends as one charge, within the cap, with nothing reserved.
async fn goes_through_now(world: &World, relay: &Relay, key: &VaultKey) {
    assert!(!relay.trap().is_set());
    for idempotency_key in ["k1", "k2"] {
        let answer = world.charge(key, charge("cus_1", idempotency_key)).await;
        assert_eq!(answer.expect(200).json()["id"], world.made()[0].id.as_str());
    }
    world.charge(key, charge("cus_2", "k3")).await.expect(402);
    assert_eq!(world.made().len(), 1);
    world.assert_balanced(key).await;
}

async fn until_somebody_waits_for_a_lock(world: &World) {
    let mut connection = PgConnection::connect(world.ledger_url()).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()";
    until("somebody waits for a lock", async || {
        let row = sqlx::query(waiting).fetch_one(&mut connection).await;
        (row.unwrap().get::<i64, _>(0) > 0).then_some(())
    })
    .await;
}
