//! A database that several processes share: tables, transactions at READ COMMITTED, row locks, unique
//! indexes; and everything that may become of a connection and of a commit.

mod locks;
mod reads;
mod staged;
mod store;
mod tables;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::auditor::Stored;
use super::witness::Witness;
use super::world::{World, lock};
use crate::domain::id::ReservationId;
use crate::domain::reservation::State;
use crate::domain::time::UnixMs;
use crate::domain::vault_key::VaultKey;
use locks::Locks;
use staged::Staged;
use tables::Tables;

pub(super) use reads::Rows;
pub(super) use store::{Connection, SimulatedStore};

/// Which database it behaves as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any number of processes; a restart learns nothing of what was in flight.
    Postgres,
    /// One process; a restart holds what was in flight.
    Sqlite,
}

/// When the runs begin, on the database's clock.
pub(super) const START: UnixMs = UnixMs(1_785_600_000_000);

/// Names an open transaction.
type Transaction = u64;

/// The server.
pub(super) struct Database {
    world: Arc<World>,
    witness: Arc<Witness>,
    kind: Kind,
    tables: Mutex<Tables>,
    locks: Locks,
    /// How far its clock is from the truth.
    clock_ms: AtomicI64,
    /// Nobody gets through to it before this, in milliseconds of the run.
    down_until: AtomicI64,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Database")
    }
}

impl Database {
    pub(super) fn new(world: Arc<World>, witness: Arc<Witness>, kind: Kind) -> Arc<Self> {
        Arc::new(Self {
            world,
            witness,
            kind,
            tables: Mutex::default(),
            locks: Locks::default(),
            clock_ms: AtomicI64::new(0),
            down_until: AtomicI64::new(0),
        })
    }

    /// Stores a new vault key.
    pub(super) fn issue(&self, key: VaultKey, secret_hash: [u8; 32]) {
        let staged = Staged {
            secrets: vec![(secret_hash, key.id.clone())],
            keys: vec![key],
            ..Staged::default()
        };
        let stored = self.tables(|tables| tables.apply(staged));
        self.tell("issued", stored);
    }

    pub(super) fn upstream_key(&self, id: ReservationId) -> String {
        self.tables(|tables| tables.rows[&id].send.upstream_key.clone())
    }

    /// What a list of the reservations in a state shows.
    pub(super) fn in_state(&self, state: State) -> Vec<ReservationId> {
        self.tables(|tables| {
            let rows = tables.rows.values().filter(|row| row.state == state);
            rows.map(|row| row.id).collect()
        })
    }

    pub(super) fn now(&self) -> UnixMs {
        START.plus_ms(self.world.ms() + self.clock_ms.load(Ordering::Relaxed))
    }

    /// Moves the database's clock, forward or back, to so far from the truth.
    pub(super) fn jump_to(&self, ms: i64) {
        self.clock_ms.store(ms, Ordering::Relaxed);
    }

    pub(super) fn go_down(&self, ms: i64) {
        self.down_until
            .fetch_max(self.world.ms() + ms, Ordering::Relaxed);
    }

    fn is_down(&self) -> bool {
        !self.world.is_calm() && self.down_until.load(Ordering::Relaxed) > self.world.ms()
    }

    fn tables<T>(&self, on: impl FnOnce(&mut Tables) -> T) -> T {
        on(&mut lock(&self.tables))
    }

    /// Carries out a `COMMIT`: all of it at one moment, or nothing where the transaction is gone.
    fn apply(&self, transaction: Transaction, staged: Staged) -> bool {
        if !self.locks.is_open(transaction) {
            return false;
        }
        let stored = self.tables(|tables| tables.apply(staged));
        self.locks.end(transaction);
        self.tell("stored", stored);
        true
    }

    fn tell(&self, what: &str, stored: Option<Stored>) {
        if let Some(mut stored) = stored {
            if stored.rows.iter().any(|row| row.state == "written_off") {
                self.world.count("a reservation is written off");
            }
            stored.at_ms = self.world.ms();
            self.world.say(format_args!("{what}:{stored}"));
            self.witness.see(|auditor| auditor.stored(stored));
        }
    }

    /// What a single process does when it opens its ledger: whatever was in flight is held.
    pub(super) async fn opened(self: &Arc<Self>) {
        if self.kind == Kind::Postgres {
            return;
        }
        // The file is locked for as long as the process before is there.
        while self.locks.anybody() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let stored = self.tables(Tables::hold_in_flight);
        self.tell("opened", stored);
    }

    /// A client that is gone leaves its transaction behind until the server notices.
    fn abandon(self: &Arc<Self>, transaction: Transaction, after_ms: u64) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let database = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            database.locks.end(transaction);
        });
    }

    /// Ends a session whose transaction stood idle for too long.
    pub(super) fn end_idle(&self, connection: &Connection) {
        if let Some(transaction) = connection.idle_transaction() {
            self.world
                .say(format_args!("an idle transaction is ended: {transaction}"));
            self.locks.end(transaction);
        }
    }
}
