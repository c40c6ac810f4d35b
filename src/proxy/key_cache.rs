//! Authenticated vault keys, so that a request does not look its key up in the database.
//!
//! An entry is an acquaintance, not a permission: the reserve reads the key again under its lock, so
//! what an operator does to a key holds for money at once. Reads follow within [`FRESH_FOR`].

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use crate::domain::vault_key::VaultKey;
use crate::ledger::{Ledger, LedgerError};

/// How long an entry serves before it is read again: how long the secret of a rotated key may outlive its
/// grace. A read a second for each key in use costs nothing.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// How long an entry serves while the ledger cannot be read: a short outage does not stop reads, a long
/// one does not keep the secret of a rotated key alive.
const KNOWN_FOR: Duration = Duration::from_mins(1);

/// How long a request waits for another one that reads the same key.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// More entries than any fleet has keys in use; beyond it stale ones are dropped.
const ENTRIES_MAX: usize = 100_000;

/// Secrets that are read from the ledger at once; those that share a turn wait for each other.
const TURNS: usize = 64;

#[derive(Clone, Debug)]
struct Entry {
    key: Arc<VaultKey>,
    read_at: Instant,
}

impl Entry {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH_FOR
    }
}

/// Whose turn it is to read a key.
enum Turn<'a> {
    Mine(MutexGuard<'a, ()>),
    Another(&'a Mutex<()>),
}

#[derive(Debug)]
pub(super) struct KeyCache {
    ledger: Ledger,
    entries: DashMap<[u8; 32], Entry>,
    /// A billing run begins with thousands of requests under one new key: one of them reads it, or the
    /// ledger's few readers would be asked by all.
    turns: [Mutex<()>; TURNS],
}

impl KeyCache {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            entries: DashMap::new(),
            turns: [const { Mutex::const_new(()) }; TURNS],
        }
    }

    /// The key a secret opens; `None` for one that opens nothing.
    pub(super) async fn find(
        &self,
        secret_hash: [u8; 32],
    ) -> Result<Option<Arc<VaultKey>>, LedgerError> {
        let known = self.entry(&secret_hash);
        if let Some(entry) = &known
            && entry.is_fresh()
        {
            return Ok(Some(Arc::clone(&entry.key)));
        }
        let _turn = match (&known, self.turn(&secret_hash)) {
            (_, Turn::Mine(turn)) => turn,
            // Somebody is reading it: until then what is known serves.
            (Some(entry), Turn::Another(_)) => return Ok(Some(Arc::clone(&entry.key))),
            // Where the ledger does not answer, each turn takes as long as a read is given.
            (None, Turn::Another(turn)) => timeout(TURN_WAIT, turn.lock())
                .await
                .map_err(|_elapsed| LedgerError::Unavailable)?,
        };
        if let Some(entry) = self.entry(&secret_hash).filter(Entry::is_fresh) {
            return Ok(Some(entry.key));
        }
        match self.ledger.reads().vault_key_by_secret(&secret_hash).await {
            Ok(Some(key)) => Ok(Some(self.keep(secret_hash, key))),
            Ok(None) => {
                self.entries.remove(&secret_hash);
                Ok(None)
            }
            // A key that was known a moment ago goes on reading; money meets the ledger itself.
            Err(error) => known
                .filter(|entry| entry.read_at.elapsed() < KNOWN_FOR)
                .map(|entry| Some(entry.key))
                .ok_or(error),
        }
    }

    /// Forgets a key that the ledger no longer takes.
    pub(super) fn forget(&self, secret_hash: &[u8; 32]) {
        self.entries.remove(secret_hash);
    }

    fn entry(&self, secret_hash: &[u8; 32]) -> Option<Entry> {
        let entry = self.entries.get(secret_hash)?;
        Some(entry.value().clone())
    }

    fn turn(&self, secret_hash: &[u8; 32]) -> Turn<'_> {
        let [first, ..] = secret_hash;
        // In bounds: the remainder is below the length.
        let turn = &self.turns[usize::from(*first) % TURNS];
        turn.try_lock().map_or(Turn::Another(turn), Turn::Mine)
    }

    fn keep(&self, secret_hash: [u8; 32], key: VaultKey) -> Arc<VaultKey> {
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.retain(|_, entry| entry.is_fresh());
        }
        let key = Arc::new(key);
        let entry = Entry {
            key: Arc::clone(&key),
            read_at: Instant::now(),
        };
        self.entries.insert(secret_hash, entry);
        key
    }
}
