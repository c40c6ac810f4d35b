//! A process of the product over the simulated database and network: started, frozen, killed, started
//! again.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio_util::sync::CancellationToken;

use super::database::{Connection, Database, Rows, SimulatedStore};
use super::life::Life;
use super::network::Line;
use super::scenario::Scenario;
use super::stripe::Stripe;
use super::world::{World, lock};
use crate::clock::Clock;
use crate::ledger::book::SendTimes;
use crate::ledger::{Ledger, Reads};
use crate::proxy::simulated::Owner;
use crate::proxy::{BreakerSettings, Parts, Platform, Proxy, ProxySettings, Upstream};
use crate::reconcile::{ReconcileParts, ReconcileSettings, Reconciler};
use crate::telemetry::metrics::Metrics;

/// As the settings' defaults.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(75);
const DEADLINE_MS: i64 = 120_000;

/// How long a database lets a transaction stand idle; as the product sets it.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);

/// Counted for all runs together; nothing in a run reads them.
static METRICS: LazyLock<Arc<Metrics>> = LazyLock::new(|| Arc::new(Metrics::new().unwrap()));

/// What may befall a process at any step that leaves it.
#[derive(Clone)]
pub(super) struct Mishaps {
    world: Arc<World>,
    life: Arc<Life>,
    database: Arc<Database>,
    connection: Connection,
    name: usize,
    crash_permille: u64,
    freeze_permille: u64,
}

impl Mishaps {
    /// Kills or freezes the process here, perhaps.
    pub(super) async fn strike(&self) {
        if self.world.fault("a process is killed", self.crash_permille) {
            self.world
                .say(format_args!("replica {} is killed", self.name));
            self.life.kill();
            std::future::pending::<()>().await;
        }
        if self
            .world
            .fault("a process is frozen", self.freeze_permille)
        {
            self.freeze();
            // What is frozen is not asked again.
            tokio::task::yield_now().await;
        }
    }

    fn freeze(&self) {
        let ms = match self.world.below(4) {
            0 => self.world.below(2_000),
            1 => self.world.below(40_000),
            2 => 30_000 + self.world.below(120_000),
            _ => self.world.below(1_200_000),
        };
        self.world
            .say(format_args!("replica {} is frozen for {ms} ms", self.name));
        self.life.freeze();
        let mishaps = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            mishaps.life.thaw();
        });
        let mishaps = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE_IN_TRANSACTION).await;
            if mishaps.life.is_frozen() {
                mishaps.database.end_idle(&mishaps.connection);
            }
        });
    }
}

/// One place in the fleet; the processes in it come and go.
pub(super) struct Replica {
    world: Arc<World>,
    database: Arc<Database>,
    stripe: Arc<Stripe>,
    name: usize,
    scenario: Scenario,
    running: Mutex<Option<Running>>,
}

#[derive(Clone)]
struct Running {
    life: Arc<Life>,
    proxy: Arc<Proxy>,
    ledger: Ledger,
}

/// What a client gets.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Replica {
    pub(super) fn new(
        world: Arc<World>,
        database: Arc<Database>,
        stripe: Arc<Stripe>,
        name: usize,
        scenario: Scenario,
    ) -> Arc<Self> {
        Arc::new(Self {
            world,
            database,
            stripe,
            name,
            scenario,
            running: Mutex::default(),
        })
    }

    /// Starts the process, and starts it again whenever it died.
    pub(super) async fn supervise(self: Arc<Self>) {
        loop {
            self.database.opened().await;
            let running = self.start();
            let life = Arc::clone(&running.life);
            *lock(&self.running) = Some(running);
            let _died = life.run(std::future::pending::<()>()).await;
            *lock(&self.running) = None;
            self.world.pause(50, 15_000).await;
        }
    }

    fn start(&self) -> Running {
        self.world.say(format_args!("replica {} starts", self.name));
        let clock = Clock::of_the_runtime(self.database.now());
        let life = Life::new(Arc::clone(&self.world));
        let connection = Connection::default();
        let mishaps = Mishaps {
            world: Arc::clone(&self.world),
            life: Arc::clone(&life),
            database: Arc::clone(&self.database),
            connection: connection.clone(),
            name: self.name,
            crash_permille: self.scenario.crash_permille,
            freeze_permille: self.scenario.freeze_permille,
        };
        let store = SimulatedStore::new(Arc::clone(&self.database), mishaps.clone(), connection);
        let rows = Arc::new(Rows::new(Arc::clone(&self.database), mishaps.clone()));
        let times = SendTimes {
            deadline_ms: DEADLINE_MS,
        };
        let reads = Reads::source(rows, clock.clone());
        let (ledger, writer, sweep) = Ledger::over(store, reads, times, Arc::new(()));
        // It looks every second, which a run of hours has no time for.
        drop(sweep);
        tokio::spawn(life.run(writer));
        tokio::spawn(life.run(Self::sweep(Arc::clone(&self.world), ledger.clone())));
        let way = Line::new(Arc::clone(&self.world), Arc::clone(&self.stripe), mishaps);
        let owner = Arc::clone(&life);
        let owner = Owner::new(move |task| {
            let bound = owner.run(task);
            Box::pin(async move {
                let _whether_it_ended = bound.await;
            })
        });
        let proxy = Proxy::owned_by(
            owner,
            parts(ledger.clone(), clock.clone(), way, self.scenario),
        );
        if self.scenario.reconciles {
            let reconciler = reconciler(&ledger, &proxy, clock, self.scenario);
            tokio::spawn(life.run(reconciler.run()));
        }
        Running {
            life,
            proxy,
            ledger,
        }
    }

    async fn sweep(world: Arc<World>, ledger: Ledger) {
        loop {
            world.pause(1_000, 40_000).await;
            let _tried = ledger.sweep().await;
        }
    }

    fn running(&self) -> Option<Running> {
        lock(&self.running).clone()
    }

    /// The ledger of the process that runs now, for an operator.
    pub(super) fn ledger(&self) -> Option<(Arc<Life>, Ledger)> {
        let running = self.running()?;
        Some((running.life, running.ledger))
    }

    /// One request of a client; `None` where the connection ended without an answer.
    pub(super) async fn call(&self, request: Request<Full<Bytes>>) -> Option<Reply> {
        let running = self.running()?;
        let proxy = running.proxy;
        let answer = running.life.run(async move {
            let response = proxy.handle(request).await;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            let status = parts.status.as_u16();
            Some(Reply { status, body })
        });
        answer.await.flatten()
    }
}

fn reconciler(ledger: &Ledger, proxy: &Arc<Proxy>, clock: Clock, scenario: Scenario) -> Reconciler {
    Reconciler::new(ReconcileParts {
        ledger: ledger.clone(),
        stripe: Arc::clone(proxy) as _,
        clock,
        metrics: Arc::clone(&METRICS),
        settings: ReconcileSettings {
            interval: Duration::from_secs(30),
            reads_per_second: 100,
            feed_interval: Duration::from_mins(1),
            write_off: scenario.writes_off,
        },
    })
}

fn parts(ledger: Ledger, clock: Clock, way: Line, scenario: Scenario) -> Parts {
    Parts {
        ledger,
        upstream: Upstream::carried_by(
            Arc::new(way),
            UPSTREAM_TIMEOUT,
            clock.clone(),
            Arc::clone(&METRICS),
        ),
        clock,
        breaker: BreakerSettings {
            unknown_outcomes_max: 10,
            probe_interval: Duration::from_secs(1),
        },
        platform: Some(Platform {
            account: Some("acct_1".to_owned()),
            livemode: false,
        }),
        settings: ProxySettings {
            repeat_wait: Duration::from_secs(30),
            settle_wait: Duration::from_secs(2),
            resends_max: scenario.resends_max,
            body_bytes_max: 1 << 16,
            in_flight_max: 64,
        },
        metrics: Arc::clone(&METRICS),
        draining: CancellationToken::new(),
    }
}
