//! A rolling restart: three replicas under load end one after the other by SIGTERM, and each is replaced.
//! Clients behind a load balancer that looks at `/readyz` see no error, and no outcome stays unknown.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tokio::task::JoinSet;

use crate::support::daemon::Daemon;
use crate::support::fleet::Fleet;
use crate::support::http::Client;
use crate::support::patience::until;
use crate::support::world::try_charge;
use crate::support::{Charge, VaultKey};

const REPLICAS: usize = 3;
const CLIENTS: usize = 12;

/// Stripe takes this long, so that something is always under way.
const STRIPE_MS: u64 = 60;

/// Requests that must be answered between any two steps, or the step was not under load.
const BETWEEN_STEPS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_under_load_shows_no_client_an_error() {
    // Long enough for a load balancer that looks every few milliseconds on a busy machine.
    let mut fleet = Fleet::start(REPLICAS, &[("SPENDCAP_PROXY_DRAIN_MS", "1500")]).await;
    let key = fleet.issue(100_000_000, json!({})).await;
    let (ms, at) = (STRIPE_MS, Moment::AfterCommit);
    let slow = Fault::new(FaultKind::Slow { ms, at }).method("POST");
    fleet.sandbox.add_fault(slow);
    let balancer = Balancer::over(&fleet.replicas);
    let load = Load::start(&balancer, &key);
    load.goes_on().await;
    for old in 0..REPLICAS {
        fleet.replicas[old].terminate();
        let (status, log) = fleet.replicas[old].ended().await;
        assert_eq!(status.code(), Some(0), "{log}");
        load.goes_on().await;
        let new = fleet.another(&[]).await;
        balancer.replace(fleet.proxy(old), &new);
        fleet.replicas[old] = new;
        load.goes_on().await;
    }
    let customers = load.stop().await;

    for state in ["held", "in_flight"] {
        fleet.until_state(0, state, 0).await;
    }
    let made = fleet.sandbox.charges();
    assert_eq!(made.len(), customers, "each customer once");
    for index in 0..REPLICAS {
        fleet.assert_balanced(index, &key).await;
    }
}

/// Sends to replicas that say they are ready, each in its turn.
#[derive(Clone)]
struct Balancer {
    targets: Arc<Mutex<Vec<Target>>>,
    turn: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    proxy: SocketAddr,
    admin: SocketAddr,
    ready: bool,
}

impl Balancer {
    fn over(replicas: &[Daemon]) -> Self {
        let balancer = Self {
            targets: Arc::new(Mutex::new(replicas.iter().map(ready).collect())),
            turn: Arc::default(),
        };
        let looking = balancer.clone();
        tokio::spawn(async move { looking.look().await });
        balancer
    }

    fn replace(&self, old: SocketAddr, new: &Daemon) {
        let mut targets = self.targets.lock().unwrap();
        targets.retain(|target| target.proxy != old);
        targets.push(ready(new));
    }

    fn next(&self) -> SocketAddr {
        let targets = self.targets.lock().unwrap();
        let ready: Vec<_> = targets.iter().filter(|target| target.ready).collect();
        assert!(!ready.is_empty(), "{targets:?}");
        ready[self.turn.fetch_add(1, Ordering::Relaxed) % ready.len()].proxy
    }

    /// Asks every replica again and again until the test ends.
    async fn look(self) {
        let client = Client::new();
        loop {
            let targets = self.targets.lock().unwrap().clone();
            for target in targets {
                let url = format!("http://{}/readyz", target.admin);
                let answer = client.try_send(Method::GET, &url, &[], "").await;
                let ready = answer.is_ok_and(|answer| answer.status == 200);
                let mut targets = self.targets.lock().unwrap();
                let seen = targets.iter_mut().find(|seen| seen.proxy == target.proxy);
                if let Some(seen) = seen {
                    seen.ready = ready;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn ready(replica: &Daemon) -> Target {
    Target {
        proxy: replica.proxy,
        admin: replica.admin,
        ready: true,
    }
}

/// Clients that charge one customer after the other, each twice.
struct Load {
    stopped: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: JoinSet<usize>,
}

impl Load {
    fn start(balancer: &Balancer, key: &VaultKey) -> Self {
        let stopped = Arc::<AtomicBool>::default();
        let answered = Arc::<AtomicUsize>::default();
        let mut clients = JoinSet::new();
        for name in 0..CLIENTS {
            let (balancer, secret) = (balancer.clone(), key.secret.clone());
            let (stopped, answered) = (Arc::clone(&stopped), Arc::clone(&answered));
            clients.spawn(async move {
                let client = Client::new();
                let mut customers = 0;
                while !stopped.load(Ordering::Relaxed) {
                    let customer = format!("cus_{name}_{customers}");
                    // The second request goes to another replica and finds the first one's charge.
                    for idempotency_key in [format!("{customer}-a"), format!("{customer}-b")] {
                        let charge = Charge {
                            customer: &customer,
                            idempotency_key: Some(&idempotency_key),
                            ..Charge::default()
                        };
                        let url = format!("http://{}", balancer.next());
                        let answer = try_charge(&client, &url, &secret, charge).await;
                        answer.unwrap().expect(200);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    customers += 1;
                }
                customers
            });
        }
        Self {
            stopped,
            answered,
            clients,
        }
    }

    /// Waits until some more requests were answered.
    async fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        until("requests are answered", async || {
            let now = self.answered.load(Ordering::Relaxed);
            (now >= before + BETWEEN_STEPS).then_some(())
        })
        .await;
    }

    /// Ends it; returns how many customers were charged. An error that any client saw fails the test.
    async fn stop(self) -> usize {
        self.stopped.store(true, Ordering::Relaxed);
        self.clients.join_all().await.into_iter().sum()
    }
}
