//! A replica that is frozen between the reserve and the send. Its row is held at the deadline and goes its
//! way without it. Resumed within its half minute it sends under the row's own key, and what Stripe says
//! is recorded; resumed later it sends nothing.

use std::time::Duration;

use http::Method;
use serde_json::json;
use spendcap::domain::decision::FORWARD_WINDOW_MS;
use tempfile::NamedTempFile;
use tokio::task::JoinHandle;

use crate::support::fleet::Fleet;
use crate::support::http::Reply;
use crate::support::patience::{until, within};
use crate::support::postgres::fresh_database;
use crate::support::relay::Relay;
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey, tls};

const AMOUNT: i64 = 9_900;

/// What becomes of the row while its replica is frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meanwhile {
    /// A repeat at another replica is sent.
    ReSent,
    /// The same, and Stripe declines it.
    Declined,
    /// An operator says that nothing was charged.
    Released,
}

const MEANWHILE: [Meanwhile; 3] = [Meanwhile::ReSent, Meanwhile::Declined, Meanwhile::Released];

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_resumed_in_time_is_accounted() {
    for meanwhile in MEANWHILE {
        let mut scene = Scene::freeze(meanwhile).await;
        let posts = scene.pass_by().await;
        scene.fleet.replicas[0].thaw();
        let status = match meanwhile {
            Meanwhile::ReSent | Meanwhile::Released => 200,
            Meanwhile::Declined => 402,
        };
        scene.answer().await.expect(status);
        assert_eq!(scene.fleet.posts(), posts + 1, "{meanwhile:?}");
        let charges = usize::from(meanwhile != Meanwhile::Declined);
        scene.ends_with(charges).await;
    }
}

/// The half minute is real: what is tested is that no clock that stands still while a process does is
/// asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_resumed_too_late_sends_nothing() {
    let [a, b, c] = MEANWHILE;
    tokio::join!(too_late(a), too_late(b), too_late(c));
}

async fn too_late(meanwhile: Meanwhile) {
    let mut scene = Scene::freeze(meanwhile).await;
    let window = Duration::from_millis(FORWARD_WINDOW_MS.unsigned_abs());
    tokio::join!(tokio::time::sleep(window), async { scene.pass_by().await });
    let posts = scene.fleet.posts();
    scene.fleet.replicas[0].thaw();
    let answer = scene.answer().await.expect(502);
    assert_eq!(answer.code(), "upstream_unreachable");
    assert_eq!(scene.fleet.posts(), posts, "{meanwhile:?}");
    let charges = usize::from(meanwhile == Meanwhile::ReSent);
    scene.ends_with(charges).await;
    // It is none the worse for it.
    let other = Charge {
        customer: "cus_other",
        ..charge("other")
    };
    scene.fleet.charge(0, &scene.key, other).await.expect(200);
    scene.ends_with(charges + 1).await;
}

/// Replica 0 is frozen while its connection to Stripe opens; replica 1 is not.
struct Scene {
    fleet: Fleet,
    key: VaultKey,
    /// What replica 0 is asked for before it is frozen.
    first: JoinHandle<Result<Reply, String>>,
    meanwhile: Meanwhile,
    _relay: Relay,
    _certificate: NamedTempFile,
}

impl Scene {
    async fn freeze(meanwhile: Meanwhile) -> Self {
        let (sandbox, certificate) = tls::sandbox();
        let relay = Relay::to(sandbox.addr());
        let behind_relay = format!("https://{}", relay.addr());
        let settings = [(
            "SPENDCAP_UPSTREAM_CA_FILE",
            certificate.path().to_str().unwrap(),
        )];
        let mut fleet = Fleet::over(sandbox, &fresh_database().await, &settings);
        let url = ("SPENDCAP_UPSTREAM_BASE_URL", behind_relay.as_str());
        fleet.add(&[url]).await;
        fleet.add(&[]).await;
        let key = fleet.issue(2 * AMOUNT, json!({ "headroom": "1" })).await;
        relay.hold();
        let asked = Charge {
            customer: meanwhile.customer(),
            ..charge("first")
        };
        let (client, secret) = (fleet.client.clone(), key.secret.clone());
        let url = format!("http://{}", fleet.proxy(0));
        let first = tokio::spawn(async move { try_charge(&client, &url, &secret, asked).await });
        fleet.until_state(1, "in_flight", 1).await;
        fleet.replicas[0].freeze();
        // From here on nothing but being frozen keeps it from sending.
        relay.let_go();
        Self {
            fleet,
            key,
            first,
            meanwhile,
            _relay: relay,
            _certificate: certificate,
        }
    }

    /// What replica 0 answers.
    async fn answer(&mut self) -> Reply {
        within("an answer", &mut self.first).await.unwrap().unwrap()
    }

    /// The deadline passes and the row goes its way; returns how many requests reached Stripe.
    async fn pass_by(&self) -> usize {
        assert_eq!(self.fleet.posts(), 0);
        self.fleet.bring_deadlines_forward().await;
        let held = self.fleet.until_state(1, "held", 1).await.remove(0);
        assert_eq!(held["amount_reserved"], AMOUNT);
        let repeat = Charge {
            customer: self.meanwhile.customer(),
            ..charge("again")
        };
        match self.meanwhile {
            Meanwhile::ReSent => drop(self.fleet.charge(1, &self.key, repeat).await.expect(200)),
            Meanwhile::Declined => drop(self.fleet.charge(1, &self.key, repeat).await.expect(402)),
            Meanwhile::Released => {
                let path = format!("/v1/reservations/{}/resolve", held["id"].as_str().unwrap());
                let wish = json!({ "state": "released", "reason": "not at Stripe" });
                let operator = self.fleet.operator(1);
                operator
                    .admin(Method::POST, &path, Some(wish))
                    .await
                    .expect(200);
            }
        }
        self.fleet.posts()
    }

    /// So many charges were made, and the ledger says the same.
    async fn ends_with(&self, charges: usize) {
        assert_eq!(self.fleet.sandbox.charges().len(), charges);
        until("nothing is reserved", async || {
            let cap = self.fleet.operator(1).cap(&self.key, "usd").await;
            (cap["reserved"] == 0).then_some(())
        })
        .await;
        self.fleet.assert_balanced(1, &self.key).await;
    }
}

impl Meanwhile {
    fn customer(self) -> &'static str {
        match self {
            Self::Declined => "cus_decline_1",
            Self::ReSent | Self::Released => "cus_1",
        }
    }
}

fn charge(idempotency_key: &str) -> Charge<'_> {
    Charge {
        idempotency_key: Some(idempotency_key),
        ..Charge::default()
    }
}
