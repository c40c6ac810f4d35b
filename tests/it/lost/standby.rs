//! A real standby that lags and is promoted.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tempfile::TempDir;

use super::servers::{Server, Servers};
use super::{assert_charged_once, charge, long_ago, reconcile, run_the_job_again};
use crate::support::patience::{until, within};
use crate::support::relay::Relay;
use crate::support::{VaultKey, World};

const CUSTOMERS: u32 = 20;

/// Two replicas on a primary with a standby.
struct Scene {
    servers: Servers,
    relay: Relay,
    world: World,
    key: VaultKey,
}

impl Scene {
    async fn start() -> Self {
        let servers = Servers::start().await;
        let relay = Relay::to(servers.primary.address);
        let url = Server::url_at(relay.addr());
        let world = World::over(&url, TempDir::new().unwrap(), 2, &[]).await;
        let key = world.issue(9_900 * i64::from(CUSTOMERS), json!({})).await;
        Self {
            servers,
            relay,
            world,
            key,
        }
    }

    /// Charges some customers; every third time without a key of its own.
    async fn charge(&self, customers: std::ops::Range<u32>) {
        for n in customers {
            let (customer, own) = (format!("cus_{n}"), format!("first-{n}"));
            let own = (n % 3 != 0).then_some(own.as_str());
            let answer = self.world.charge(&self.key, charge(&customer, own)).await;
            answer.expect(200);
        }
    }

    /// The primary is lost and the standby, which has not heard of everything, takes over.
    async fn fail_over(&self) {
        self.servers.fail_over().await;
        self.relay.retarget(self.servers.standby.address);
    }

    /// Waits until the replica refuses money for its lost commits.
    async fn until_refused(&self, replica: usize) {
        until("money is refused", async || {
            let asked = charge("cus_refused", Some("refused"));
            let answer = self
                .world
                .try_charge(replica, &self.key, asked)
                .await
                .unwrap();
            let refused = answer.expect(503);
            (refused.code() == "ledger_lost_commits").then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_that_lost_commits_nobody_is_charged_twice() {
    let mut scene = Scene::start().await;
    scene.charge(0..5).await;
    scene.servers.until_followed().await;
    scene.servers.wire.cut();
    scene.charge(5..12).await;
    scene.fail_over().await;

    scene.until_refused(0).await;
    scene.until_refused(1).await;
    scene.world.add_replica().await;
    scene.until_refused(2).await;
    let ready = scene.world.admin(Method::GET, "/readyz", None).await;
    assert!(ready.expect(503).text.contains("commits may be lost"));
    assert_eq!(scene.world.made().len(), 12);

    let world = &scene.world;
    // Later than the newest row, counted in seconds.
    world.clock.advance(Duration::from_secs(2));
    let late = json!({"since": world.clock.now().unix_seconds()});
    let refused = reconcile(world, late).await.expect(400);
    assert!(
        refused.text.contains("read since then, or earlier"),
        "{refused:?}"
    );
    let order = json!({"since": long_ago(world)});
    let early = reconcile(world, order.clone()).await.expect(200).json();
    assert_eq!(early["status"], "too_early", "{early}");
    assert_eq!(early["rebuilt"], 7, "{early}");
    assert_eq!(early["known"], 5, "{early}");
    scene.until_refused(0).await;
    world.clock.advance(Duration::from_mins(5));
    let ended = reconcile(world, order.clone()).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["rebuilt"]),
        (&json!("ended"), &json!(0)),
        "{ended}"
    );
    let again = reconcile(world, order).await.expect(200).json();
    assert_eq!(again["status"], "nothing_lost", "{again}");
    assert_eq!(again["known"], 12, "{again}");
    world.assert_balanced(&scene.key).await;

    // Under its first key and under none a lost charge is answered with the charge that there is.
    scene.charge(0..12).await;
    run_the_job_again(world, &scene.key, CUSTOMERS).await;
    assert_charged_once(world, CUSTOMERS);
    world.assert_balanced(&scene.key).await;
    assert_eq!(world.operator().flagged(&scene.key, "rebuilt").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_after_the_failover_makes_its_lost_reservation_again() {
    let scene = Scene::start().await;
    scene.servers.until_followed().await;
    scene.servers.wire.cut();
    let at = Moment::AfterCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST");
    scene.world.sandbox.add_fault(gate.customer("cus_0").once());
    let late = scene
        .world
        .charge(&scene.key, charge("cus_0", Some("late")));
    let fail_over = async {
        within("a charge at Stripe", scene.world.sandbox.wait_until_held(1)).await;
        scene.fail_over().await;
        scene.until_refused(0).await;
        assert_eq!(scene.world.reservations(&scene.key).await, [] as [Value; 0]);
        scene.world.sandbox.release_gate();
    };
    let (answer, ()) = tokio::join!(late, fail_over);
    answer.expect(200);
    let world = &scene.world;
    until("the outcome is stored", async || {
        let rows = world.reservations(&scene.key).await;
        (rows.first()?["state"] == "settled").then_some(())
    })
    .await;
    world.clock.advance(Duration::from_mins(10));
    let order = json!({"since": long_ago(world)});
    let ended = reconcile(world, order).await.expect(200).json();
    assert_eq!(
        (&ended["status"], &ended["known"]),
        (&json!("ended"), &json!(1)),
        "{ended}"
    );
    run_the_job_again(world, &scene.key, CUSTOMERS).await;
    assert_charged_once(world, CUSTOMERS);
    world.assert_balanced(&scene.key).await;
}
