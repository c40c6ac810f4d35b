//! A stand-in for the part of Stripe that spendcap uses, for demos and tests.
//!
//! It keeps charges, customers, events and idempotency keys in memory, answers as the wire contract
//! says Stripe does, and breaks on demand (see [`Fault`]). It is lenient where Stripe may be, and
//! shares no judging code with the proxy, so a request that slipped past the proxy shows here as
//! money taken. Tests read the truth from [`Sandbox::charges`] or `GET /_sandbox/charges`.

mod api;
mod balance;
mod books;
mod captures;
mod cards;
mod charge_view;
mod charges;
pub mod cli;
mod control;
mod credentials;
mod customers;
mod errors;
mod events;
mod expand;
mod fault_board;
mod faults;
mod form;
mod gate;
mod idempotency;
mod ids;
mod made;
mod mischief;
mod money;
mod params;
mod recorder;
mod reply;
mod server;
mod service;
mod shelf;
mod wire;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;

pub use self::credentials::Authorization;
pub use self::faults::{Fault, FaultKind, Moment, Outage};
pub use self::made::MadeCharge;
pub use self::recorder::{SeenRequest, WrongKey};

use crate::clock::Clock;

use self::recorder::Recorder;
use self::server::Stop;
use self::world::World;

/// How long a shutdown waits for requests in flight.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// How the sandbox runs.
#[derive(Clone)]
pub struct SandboxSettings {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The one key that is let in.
    pub secret_key: String,
    /// The platform account's id, as `GET /v1/account` tells it.
    pub account_id: String,
    /// Whether to keep the requests seen (the latest 10,000).
    pub record_requests: bool,
    /// The clock that keys expire by. Share one to advance the proxy's with it.
    pub clock: Clock,
    /// Serve TLS with this; plain TCP without.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            secret_key: cli::SECRET_KEY_DEFAULT.to_owned(),
            account_id: "acct_1SpendcapSandbox".to_owned(),
            record_requests: true,
            clock: Clock::system(),
            tls: None,
        }
    }
}

impl std::fmt::Debug for SandboxSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxSettings")
            .field("listen", &self.listen)
            .field("account_id", &self.account_id)
            .field("record_requests", &self.record_requests)
            .finish_non_exhaustive()
    }
}

/// A running sandbox. Dropping it stops it at once.
#[derive(Debug)]
pub struct Sandbox {
    address: SocketAddr,
    scheme: &'static str,
    world: Arc<World>,
    stop: Stop,
}

impl Sandbox {
    /// Starts listening and serves in background tasks of the current tokio runtime.
    ///
    /// # Errors
    /// Where the address cannot be listened on.
    pub fn start(settings: SandboxSettings) -> io::Result<Self> {
        let listener = server::bind(settings.listen)?;
        let address = listener.local_addr()?;
        let scheme = if settings.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let tls = settings.tls.map(TlsAcceptor::from);
        let recorder = Recorder::new(settings.record_requests);
        let world = Arc::new(World::new(
            &settings.account_id,
            &settings.secret_key,
            settings.clock,
            recorder,
        ));
        let stop = Stop::default();
        stop.tasks.spawn(server::accept(
            listener,
            tls,
            Arc::clone(&world),
            stop.clone(),
        ));
        Ok(Self {
            address,
            scheme,
            world,
            stop,
        })
    }

    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Such as `http://127.0.0.1:12111`.
    pub fn base_url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Every charge really made, on any account.
    pub fn charges(&self) -> Vec<MadeCharge> {
        made::list(&self.world)
    }

    /// The charges really made for one customer.
    pub fn charges_of(&self, customer: &str) -> Vec<MadeCharge> {
        let mut charges = self.charges();
        charges.retain(|charge| charge.customer.as_deref() == Some(customer));
        charges
    }

    /// The requests seen, oldest first, at most the latest 10,000.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.world.recorder.requests()
    }

    /// How many requests arrived since the start or the last reset, recorded or not.
    pub fn requests_total(&self) -> u64 {
        self.world.recorder.total()
    }

    /// Requests whose key was not the configured one: a leaked vault key shows here.
    pub fn wrong_keys(&self) -> Vec<WrongKey> {
        self.world.recorder.wrong_keys()
    }

    /// Sets a fault. The first one that matches a request is applied to it.
    pub fn add_fault(&self, fault: Fault) {
        self.world.faults.add(fault);
    }

    /// The faults that are still set.
    pub fn faults(&self) -> Vec<Fault> {
        self.world.faults.list()
    }

    /// Takes every fault off, ends an outage, lets held requests go and closes hung ones.
    pub fn clear_faults(&self) {
        self.world.faults.clear();
        self.world.gate.release();
    }

    /// Starts or ends an outage.
    pub fn set_outage(&self, outage: Outage) {
        self.world.faults.set_outage(outage);
    }

    /// How long an event takes from now on until the feed shows it, whole seconds.
    pub fn set_event_lag(&self, lag: Duration) {
        let seconds = i64::try_from(lag.as_secs()).unwrap_or(i64::MAX);
        let lag_s = &self.world.event_lag_s;
        lag_s.store(seconds, std::sync::atomic::Ordering::Release);
    }

    /// How many requests are held by a gate or hang now.
    pub fn held(&self) -> usize {
        self.world.gate.held()
    }

    /// Waits until at least this many requests are held by a gate or hang.
    pub async fn wait_until_held(&self, count: usize) {
        self.world.gate.wait_until_held(count).await;
    }

    /// Takes the gates off, lets held requests go on and closes hung ones.
    pub fn release_gate(&self) {
        self.world.faults.clear_gates();
        self.world.gate.release();
    }

    /// Moves the sandbox's clock forward; idempotency keys expire after 24 h of it.
    pub fn advance_clock(&self, by: Duration) {
        self.world.clock.advance(by);
    }

    /// Ends a pending charge as its bank does later. False where no such charge is pending.
    pub fn end_pending(&self, charge_id: &str, paid: bool) -> bool {
        api::end_pending(&self.world, charge_id, paid)
    }

    /// Replaces the one key that is let in, as a rotation at Stripe does.
    pub fn set_secret_key(&self, key: &str) {
        self.world.set_secret_key(key);
    }

    /// Forgets objects, idempotency keys, faults and what was recorded. The clock goes on.
    pub fn reset(&self) {
        self.world.reset();
    }

    /// Stops listening, lets requests in flight finish for up to 5 s, then closes.
    pub async fn shutdown(self) {
        self.stop.gently.cancel();
        self.clear_faults();
        self.stop.tasks.close();
        let finished = tokio::time::timeout(SHUTDOWN_GRACE, self.stop.tasks.wait()).await;
        if finished.is_err() {
            self.stop.now.cancel();
            self.stop.tasks.wait().await;
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop.now.cancel();
    }
}
