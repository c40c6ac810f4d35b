//! The spendcaps that refuse: one that works, and one each whose ledger, room or Stripe is gone.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind, Moment};
use tokio::task::JoinSet;

use crate::support::hold::note_lost_commits;
use crate::support::patience::within;
use crate::support::relay::ClosedPort;
use crate::support::world::try_charge;
use crate::support::{Charge, LedgerKind, VaultKey, World};

pub(super) const AMOUNT_MINOR: i64 = 9_900;

/// How long a repeat waits for the first request: the default is made for people, not for tests.
const REPEAT_WAIT_MS: &str = "200";
/// So little that a client has written all of a larger body when it is refused. The connection is closed on
/// whoever still writes, and then some clients tell of that in place of the answer.
const BODY_BYTES_MAX: &str = "16384";
/// Ten minutes, the longest there is: what is held at the gate stays there while the SDKs come.
const LONG_MS: &str = "600000";

/// A call that will be refused.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) proxy: SocketAddr,
    pub(super) secret: String,
    pub(super) call: Value,
}

/// Where every refusal can be had.
pub(super) struct Stage {
    pub(super) open: World,
    expired: VaultKey,
    closed: [(Closed, World, VaultKey); 5],
    _port: ClosedPort,
    _held: JoinSet<()>,
}

/// Why a spendcap refuses whatever comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closed {
    NoLedger,
    LostCommits,
    NoRoom,
    StripeUnhealthy,
    StripeUnreachable,
}

impl Stage {
    pub(super) async fn set() -> Self {
        let (open, no_ledger, lost, no_room, unhealthy, unreachable) = tokio::join!(
            open(),
            without_ledger(),
            lost_commits(),
            without_room(),
            unhealthy(),
            unreachable()
        );
        let soon = open.clock.now().unix_seconds() + 60;
        let expired = open
            .issue(AMOUNT_MINOR, json!({ "expires_at": soon }))
            .await;
        open.clock.advance(Duration::from_mins(2));
        let (no_room, no_room_key, held) = no_room;
        let (unreachable, unreachable_key, port) = unreachable;
        Self {
            open,
            expired,
            closed: [
                (Closed::NoLedger, no_ledger.0, no_ledger.1),
                (Closed::LostCommits, lost.0, lost.1),
                (Closed::NoRoom, no_room, no_room_key),
                (Closed::StripeUnhealthy, unhealthy.0, unhealthy.1),
                (Closed::StripeUnreachable, unreachable, unreachable_key),
            ],
            _port: port,
            _held: held,
        }
    }

    /// A call under a fresh key of the spendcap that works; `key` and `call` as in the APIs.
    pub(super) async fn ask(&self, who: &str, key: Value, call: Value) -> Ask {
        self.ask_under(&self.key(who, key).await, call)
    }

    /// A call under this key.
    pub(super) fn ask_under(&self, key: &VaultKey, call: Value) -> Ask {
        let (proxy, secret) = (self.open.apps[0].proxy_addr(), key.secret.clone());
        Ask {
            proxy,
            secret,
            call,
        }
    }

    /// A charge under the key that has expired.
    pub(super) fn ask_expired(&self, who: &str) -> Ask {
        self.ask_under(&self.expired, create(who, &json!({})))
    }

    /// A charge at a spendcap that refuses whatever comes.
    pub(super) fn ask_closed(&self, closed: Closed, who: &str) -> Ask {
        let found = self.closed.iter().find(|(why, ..)| *why == closed);
        let (_, world, key) = found.unwrap();
        Ask {
            proxy: world.apps[0].proxy_addr(),
            secret: key.secret.clone(),
            call: create(who, &json!({})),
        }
    }

    /// A key with room for many charges, of a namespace that nobody else bills.
    pub(super) async fn key(&self, who: &str, more: Value) -> VaultKey {
        let mut wish =
            json!({ "namespace": who, "permissions": ["charges:write", "charges:read"] });
        let fields = wish.as_object_mut().unwrap();
        fields.extend(more.as_object().cloned().unwrap());
        self.open.issue(10 * AMOUNT_MINOR, wish).await
    }

    /// What this customer's requests with this method meet at Stripe.
    pub(super) fn fault(&self, method: &str, kind: FaultKind, customer: &str) {
        let fault = Fault::new(kind).method(method).customer(customer);
        self.open.sandbox.add_fault(fault);
    }

    /// The customer's row, once it is in this state.
    pub(super) async fn row(&self, customer: &str, state: &str) -> Value {
        let filter = format!("customer={customer}&state={state}");
        let operator = self.open.operator();
        // Each turn is a request to the admin API, which takes its time. With `until` in it the future would
        // not be known to be `Send` for every lifetime, which a case's has to be.
        let seen = async {
            loop {
                if let Some(row) = operator.reservations(&filter).await.pop() {
                    return row;
                }
            }
        };
        within(state, seen).await
    }
}

/// The call `charges.create`, with `more` over its parameters.
pub(super) fn create(customer: &str, more: &Value) -> Value {
    let mut params = json!({ "amount": AMOUNT_MINOR, "currency": "usd", "customer": customer });
    for (name, value) in more.as_object().cloned().unwrap() {
        if value.is_null() {
            params.as_object_mut().unwrap().remove(&name);
        } else {
            params[name] = value;
        }
    }
    json!({ "call": "charges.create", "params": params })
}

async fn open() -> World {
    let settings = [
        ("SPENDCAP_PROXY_REPEAT_WAIT_MS", REPEAT_WAIT_MS),
        ("SPENDCAP_PROXY_BODY_BYTES_MAX", BODY_BYTES_MAX),
        // The breaker has a spendcap of its own.
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "100000"),
    ];
    World::start(LedgerKind::Sqlite, 1, &settings).await
}

/// The ledger's file is moved away: money is refused until it is back in its place.
async fn without_ledger() -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(AMOUNT_MINOR, json!({})).await;
    let file = Path::new(world.ledger_url().trim_start_matches("sqlite://"));
    std::fs::rename(file, file.with_extension("moved")).unwrap();
    (world, key)
}

/// As after the restore of an old backup.
async fn lost_commits() -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(AMOUNT_MINOR, json!({})).await;
    note_lost_commits(world.ledger_url()).await;
    (world, key)
}

/// The only request that it takes at once is held at Stripe.
async fn without_room() -> (World, VaultKey, JoinSet<()>) {
    let settings = [
        ("SPENDCAP_PROXY_IN_FLIGHT_MAX", "1"),
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", LONG_MS),
    ];
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(AMOUNT_MINOR, json!({})).await;
    let at = Moment::BeforeCommit;
    world
        .sandbox
        .add_fault(Fault::new(FaultKind::Gate { at }).method("POST"));
    let (client, url, secret) = (world.client.clone(), world.proxy_url(0), key.secret.clone());
    let mut held = JoinSet::new();
    held.spawn(async move {
        // It ends with the sandbox.
        let _ended = try_charge(&client, &url, &secret, Charge::default()).await;
    });
    within("a request at Stripe", world.sandbox.wait_until_held(1)).await;
    (world, key, held)
}

/// One unknown outcome opens the breaker, and nothing closes it.
async fn unhealthy() -> (World, VaultKey) {
    let settings = [
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "1"),
        ("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", LONG_MS),
    ];
    let world = World::start(LedgerKind::Sqlite, 1, &settings).await;
    let key = world.issue(AMOUNT_MINOR, json!({})).await;
    world.sandbox.add_fault(Fault::new(FaultKind::Status503));
    world.charge(&key, Charge::default()).await.expect(503);
    (world, key)
}

/// Stripe told whose the real key is, and then nobody listens there.
async fn unreachable() -> (World, VaultKey, ClosedPort) {
    let port = ClosedPort::take();
    let url = format!("http://{}", port.addr());
    let settings = [("SPENDCAP_UPSTREAM_BASE_URL", url.as_str())];
    let mut world = World::start(LedgerKind::Sqlite, 0, &settings).await;
    let relay = port.open(world.sandbox.addr());
    world.add_replica().await;
    let port = relay.close().await;
    // Every SDK reserves here at once, before it turns out that nobody listens.
    let key = world.issue(100 * AMOUNT_MINOR, json!({})).await;
    (world, key, port)
}
