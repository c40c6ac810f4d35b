//! Row locks: taken one by one, waited for within bounds, let go together at the end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::Transaction;
use crate::domain::digest::Digest16;
use crate::domain::id::VaultKeyId;
use crate::simulation::world::lock;

/// As the product sets it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// What is locked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Lock {
    Key(VaultKeyId),
    Row(i64),
    /// An entry of the unique index of claims.
    Claim(Digest16),
    Request(Digest16),
    AuditLog,
    Feed,
}

/// Why a lock was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NotTaken {
    /// `lock_timeout`.
    Late,
    /// Two transactions wait for each other.
    Deadlock,
    /// The transaction was ended meanwhile.
    Ended,
}

#[derive(Default)]
pub(super) struct Locks {
    inner: Mutex<Inner>,
    released: Notify,
}

#[derive(Default)]
struct Inner {
    last: Transaction,
    held: BTreeMap<Lock, Transaction>,
    /// Every open transaction, and what it waits for.
    open: BTreeMap<Transaction, Option<Lock>>,
}

impl Locks {
    pub(super) fn begin(&self) -> Transaction {
        let mut inner = lock(&self.inner);
        inner.last += 1;
        let transaction = inner.last;
        inner.open.insert(transaction, None);
        transaction
    }

    pub(super) fn is_open(&self, transaction: Transaction) -> bool {
        lock(&self.inner).open.contains_key(&transaction)
    }

    pub(super) fn anybody(&self) -> bool {
        !lock(&self.inner).open.is_empty()
    }

    /// Ends a transaction: what it held is free.
    pub(super) fn end(&self, transaction: Transaction) {
        let mut inner = lock(&self.inner);
        inner.open.remove(&transaction);
        inner.held.retain(|_, holder| *holder != transaction);
        drop(inner);
        self.released.notify_waiters();
    }

    pub(super) async fn take(
        &self,
        transaction: Transaction,
        wanted: Lock,
    ) -> Result<(), NotTaken> {
        let taken = timeout(LOCK_TIMEOUT, self.wait(transaction, &wanted)).await;
        let taken = taken.unwrap_or(Err(NotTaken::Late));
        if let Some(waiting) = lock(&self.inner).open.get_mut(&transaction) {
            *waiting = None;
        }
        taken
    }

    async fn wait(&self, transaction: Transaction, wanted: &Lock) -> Result<(), NotTaken> {
        loop {
            let released = self.released.notified();
            if self.try_take(transaction, wanted)? {
                return Ok(());
            }
            released.await;
        }
    }

    fn try_take(&self, transaction: Transaction, wanted: &Lock) -> Result<bool, NotTaken> {
        let mut inner = lock(&self.inner);
        if !inner.open.contains_key(&transaction) {
            return Err(NotTaken::Ended);
        }
        match inner.held.get(wanted) {
            Some(holder) if *holder != transaction => {}
            _ => {
                inner.held.insert(wanted.clone(), transaction);
                return Ok(true);
            }
        }
        inner.open.insert(transaction, Some(wanted.clone()));
        // Follow who waits for whom; a way back here is a deadlock.
        let mut next = Some(wanted.clone());
        while let Some(lock) = next {
            let Some(holder) = inner.held.get(&lock) else {
                break;
            };
            if *holder == transaction {
                return Err(NotTaken::Deadlock);
            }
            next = inner.open.get(holder).cloned().flatten();
        }
        Ok(false)
    }
}
