//! A process's connection: what the product's writer loads and stores through.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::locks::{Lock, NotTaken};
use super::staged::{self, Staged};
use super::{Database, Kind, Transaction};
use crate::domain::id::ReservationId;
use crate::domain::mistake::{Mistake, is_planted};
use crate::domain::reservation::{Request, Reservation, State};
use crate::domain::vault_key::VaultKey;
use crate::ledger::book::{Book, Loaded, Wanted};
use crate::ledger::simulated::{Store, StoreError, timed_out};
use crate::simulation::replica::Mishaps;
use crate::simulation::world::lock;

/// What the server knows of a client's session.
#[derive(Clone, Default)]
pub(in crate::simulation) struct Connection(Arc<Mutex<Session>>);

#[derive(Default)]
struct Session {
    transaction: Option<Transaction>,
    /// A statement is running: the session is not idle.
    is_busy: bool,
}

impl Connection {
    fn set(&self, transaction: Option<Transaction>) {
        lock(&self.0).transaction = transaction;
    }

    fn transaction(&self) -> Option<Transaction> {
        lock(&self.0).transaction
    }

    fn busy(&self, is_busy: bool) {
        lock(&self.0).is_busy = is_busy;
    }

    pub(super) fn idle_transaction(&self) -> Option<Transaction> {
        let session = lock(&self.0);
        session.transaction.filter(|_| !session.is_busy)
    }
}

/// One process's way to the database.
pub(in crate::simulation) struct SimulatedStore {
    database: Arc<Database>,
    mishaps: Mishaps,
    connection: Connection,
}

impl SimulatedStore {
    pub(in crate::simulation) fn new(
        database: Arc<Database>,
        mishaps: Mishaps,
        connection: Connection,
    ) -> Self {
        Self {
            database,
            mishaps,
            connection,
        }
    }

    /// A statement goes to the server and its answer comes back; each way it may be lost, and the process
    /// may stop in the middle.
    async fn statement(&mut self) -> Result<(), StoreError> {
        let world = Arc::clone(&self.database.world);
        world.hop().await;
        self.mishaps.strike().await;
        if self.database.is_down() || world.fault("a statement's connection is lost", 4) {
            self.lose();
            return Err(StoreError::Unavailable(timed_out()));
        }
        if let Some(transaction) = self.connection.transaction()
            && !self.database.locks.is_open(transaction)
        {
            self.connection.set(None);
            return Err(StoreError::Unavailable(timed_out()));
        }
        Ok(())
    }

    /// The connection is gone; its transaction ends when the server notices.
    fn lose(&mut self) {
        if let Some(transaction) = self.connection.transaction() {
            self.connection.set(None);
            let after_ms = self.database.world.below(60);
            self.database.abandon(transaction, after_ms);
        }
    }

    async fn take(&mut self, wanted: Lock) -> Result<(), StoreError> {
        let transaction = self.connection.transaction();
        let Some(transaction) = transaction else {
            return Err(StoreError::Unavailable(timed_out()));
        };
        self.connection.busy(true);
        let taken = self.database.locks.take(transaction, wanted).await;
        self.connection.busy(false);
        match taken {
            Ok(()) => Ok(()),
            Err(NotTaken::Deadlock) => Err(StoreError::Conflict),
            Err(NotTaken::Late | NotTaken::Ended) => Err(StoreError::Unavailable(timed_out())),
        }
    }

    async fn load(&mut self, wanted: &Wanted) -> Result<Loaded, StoreError> {
        self.connection.set(Some(self.database.locks.begin()));
        let before = self.keys(wanted);
        for id in &wanted.vault_keys {
            self.take(Lock::Key(id.clone())).await?;
        }
        if !wanted.vault_keys.is_empty() {
            self.statement().await?;
        }
        if wanted.audit_tail {
            self.take(Lock::AuditLog).await?;
        }
        let mut vault_keys = self.keys(wanted);
        if is_planted(Mistake::CapReadOutsideTheLock) {
            vault_keys = before;
        }
        let now = self.database.now();
        let requests = self.requests(wanted);
        if !wanted.requests.is_empty() {
            self.statement().await?;
        }
        let reservations = self.reservations(wanted, &requests);
        if !reservations.is_empty() {
            self.statement().await?;
        }
        let fresh = |_| self.database.tables(super::Tables::fresh_id);
        Ok(Loaded {
            now,
            vault_keys,
            reservations,
            requests,
            flags: Vec::new(),
            control_records: Vec::new(),
            feed_cursors: self
                .database
                .tables(|tables| tables.feed.iter().cloned().collect()),
            audit_tail: self.database.tables(|tables| tables.audit_tail),
            lost: None,
            // The book takes them from the end, and they rise.
            fresh_ids: (0..wanted.fresh_ids).map(fresh).rev().collect(),
        })
    }

    fn keys(&self, wanted: &Wanted) -> Vec<VaultKey> {
        let ids = wanted.vault_keys.iter();
        self.database
            .tables(|tables| ids.filter_map(|id| tables.keys.get(id).cloned()).collect())
    }

    fn requests(&self, wanted: &Wanted) -> Vec<Request> {
        let digests = wanted.requests.iter();
        self.database.tables(|tables| {
            digests
                .filter_map(|digest| tables.requests.get(digest).cloned())
                .collect()
        })
    }

    fn reservations(&self, wanted: &Wanted, requests: &[Request]) -> Vec<Reservation> {
        let now = self.database.now();
        self.database.tables(|tables| {
            let mut ids: BTreeSet<ReservationId> = wanted.reservations.clone();
            ids.extend(requests.iter().map(|request| request.reservation));
            let claims = wanted.claims.iter();
            ids.extend(claims.filter_map(|claim| tables.claims.get(claim)));
            let objects = wanted.objects.iter();
            let objects = objects.filter_map(|(_, object)| tables.objects.get(object));
            ids.extend(objects.flatten());
            if wanted.overdue {
                let late =
                    |row: &&Reservation| row.state == State::InFlight && row.send.deadline <= now;
                ids.extend(tables.rows.values().filter(late).map(|row| row.id));
            }
            let rows = ids.iter().filter_map(|id| tables.rows.get(id).cloned());
            rows.collect()
        })
    }

    /// Writes with the locks that the statements take, against what is committed.
    async fn write(&mut self, book: &Book) -> Result<Staged, StoreError> {
        let changes = book.changes();
        for (id, version) in &changes.changed_reservations {
            self.take(Lock::Row(id.0)).await?;
            let stored = self
                .database
                .tables(|tables| tables.rows.get(id).map(|row| row.version));
            if stored != Some(*version) {
                return Err(StoreError::Conflict);
            }
        }
        if !changes.changed_reservations.is_empty() {
            self.statement().await?;
        }
        for (claim, id) in staged::claims(book) {
            self.take(Lock::Claim(claim)).await?;
            let holder = self
                .database
                .tables(|tables| tables.claims.get(&claim).copied());
            let free = holder.is_none_or(|holder| holder == id || released(book, holder));
            if !free {
                return Err(StoreError::Conflict);
            }
        }
        if !changes.new_reservations.is_empty() {
            self.statement().await?;
        }
        let stored = |digest| {
            self.database
                .tables(|tables| tables.requests.get(digest).map(|row| row.reservation))
        };
        let new = changes.new_requests.iter().map(|digest| (digest, None));
        let moved = changes.moved_requests.iter();
        let moved = moved.map(|(digest, from)| (digest, Some(*from)));
        let wanted: Vec<_> = new.chain(moved).collect();
        if wanted.iter().any(|(digest, from)| stored(digest) != *from) {
            return Err(StoreError::Conflict);
        }
        for (digest, from) in wanted {
            self.take(Lock::Request(*digest)).await?;
            let stored = self
                .database
                .tables(|tables| tables.requests.get(digest).map(|row| row.reservation));
            if stored != from {
                return Err(StoreError::Conflict);
            }
        }
        for report in &changes.feed {
            self.take(Lock::Feed).await?;
            let read_until = self
                .database
                .tables(|tables| tables.feed.as_ref().map(|feed| feed.read_until));
            if read_until != report.from {
                return Err(StoreError::Conflict);
            }
        }
        if !changes.is_empty() {
            self.statement().await?;
        }
        Ok(self.database.tables(|tables| Staged::of(book, tables)))
    }

    /// `COMMIT`: the server carries it out whatever becomes of the client, and the client may hear of it
    /// or not.
    async fn send_commit(&mut self, staged: Staged) -> Result<(), StoreError> {
        let Some(transaction) = self.connection.transaction() else {
            return Err(StoreError::Unavailable(timed_out()));
        };
        let world = Arc::clone(&self.database.world);
        self.connection.set(None);
        let database = Arc::clone(&self.database);
        let refused = world.fault("a commit does not arrive", 4);
        let unheard = refused || world.fault("a commit is not confirmed", 6);
        let late_ms = if world.fault("a commit comes late", 3) {
            world.below(1500)
        } else {
            world.below(3)
        };
        let (done, committed) = oneshot::channel();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(late_ms)).await;
            let stored = if refused {
                database.locks.end(transaction);
                false
            } else {
                database.apply(transaction, staged)
            };
            // The client may be gone.
            let _gone = done.send(stored);
        });
        self.mishaps.strike().await;
        if unheard {
            world.hop().await;
            return Err(StoreError::Ambiguous(timed_out()));
        }
        let stored = committed.await.unwrap_or(false);
        self.mishaps.strike().await;
        if stored {
            Ok(())
        } else {
            Err(StoreError::Ambiguous(timed_out()))
        }
    }
}

/// The same transaction releases it.
fn released(book: &Book, id: ReservationId) -> bool {
    let changed = book.changes().changed_reservations.contains_key(&id);
    changed && book.reservation(id).is_some_and(|row| !row.holds_claims())
}

impl Store for SimulatedStore {
    async fn begin(&mut self, wanted: &Wanted) -> Result<Loaded, StoreError> {
        // A sweep that finds nothing is most of what a quiet process does.
        let loaded = match self.statement_of(wanted).await {
            Ok(()) => self.load(wanted).await,
            Err(error) => Err(error),
        };
        if loaded.is_err() {
            self.rollback().await;
        }
        loaded
    }

    async fn commit(&mut self, book: &Book) -> Result<(), StoreError> {
        match self.write(book).await {
            Ok(staged) if staged.is_empty() => {
                self.rollback().await;
                Ok(())
            }
            Ok(staged) => self.send_commit(staged).await,
            Err(error) => {
                self.rollback().await;
                Err(error)
            }
        }
    }

    async fn rollback(&mut self) {
        if let Some(transaction) = self.connection.transaction() {
            self.connection.set(None);
            self.database.locks.end(transaction);
        }
    }

    async fn probe_write(&mut self) -> Result<(), StoreError> {
        self.statement().await
    }

    async fn all_stored(&mut self, ids: &BTreeSet<ReservationId>) -> Result<bool, StoreError> {
        self.statement().await?;
        let all = |id| self.database.tables(|tables| tables.rows.contains_key(id));
        Ok(ids.iter().all(all))
    }

    async fn close(self) {}
}

impl SimulatedStore {
    async fn statement_of(&mut self, wanted: &Wanted) -> Result<(), StoreError> {
        let nothing = Wanted {
            overdue: true,
            ..Wanted::default()
        };
        if *wanted == nothing
            && self.reservations(wanted, &[]).is_empty()
            && !self.database.is_down()
        {
            return Ok(());
        }
        self.statement().await
    }
}

impl Drop for SimulatedStore {
    fn drop(&mut self) {
        if let Some(transaction) = self.connection.transaction() {
            let after_ms = match self.database.kind {
                Kind::Postgres => self.database.world.below(200),
                Kind::Sqlite => 0,
            };
            self.database.abandon(transaction, after_ms);
        }
    }
}
