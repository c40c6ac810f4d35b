//! The sandbox's state, shared by every connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use subtle::ConstantTimeEq;

use crate::clock::Clock;

use super::books::Account;
use super::fault_board::FaultBoard;
use super::gate::Gate;
use super::ids::Ids;
use super::recorder::Recorder;

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) account_id: String,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) faults: FaultBoard,
    pub(crate) gate: Gate,
    pub(crate) recorder: Recorder,
    /// How long an event takes until the feed shows it, in seconds.
    pub(crate) event_lag_s: AtomicI64,
    secret_key: RwLock<SecretKey>,
    platform: RwLock<Arc<Account>>,
    connected: Mutex<HashMap<String, Arc<Account>>>,
}

/// The one key that is let in. Not printed.
struct SecretKey(String);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

impl World {
    pub(crate) fn new(
        account_id: &str,
        secret_key: &str,
        clock: Clock,
        recorder: Recorder,
    ) -> Self {
        Self {
            account_id: account_id.to_owned(),
            clock,
            ids: Ids::new(),
            faults: FaultBoard::default(),
            gate: Gate::default(),
            recorder,
            event_lag_s: AtomicI64::new(0),
            secret_key: RwLock::new(SecretKey(secret_key.to_owned())),
            platform: RwLock::new(Arc::new(Account::new(account_id))),
            connected: Mutex::default(),
        }
    }

    /// Whether a presented key is the configured one.
    pub(crate) fn admits(&self, key: &str) -> bool {
        let expected = self
            .secret_key
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        expected.0.as_bytes().ct_eq(key.as_bytes()).into()
    }

    pub(crate) fn set_secret_key(&self, key: &str) {
        key.clone_into(
            &mut self
                .secret_key
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .0,
        );
    }

    /// Whether the configured key is a live one; objects say so.
    pub(crate) fn livemode(&self) -> bool {
        let key = self
            .secret_key
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        key.0.starts_with("sk_live_") || key.0.starts_with("rk_live_")
    }

    /// The account a request acts on: the platform's own, or a connected one, made when first named.
    pub(crate) fn account(&self, connected: Option<&str>) -> Arc<Account> {
        match connected {
            Some(id) if id != self.account_id => {
                let mut accounts = self
                    .connected
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                Arc::clone(
                    accounts
                        .entry(id.to_owned())
                        .or_insert_with(|| Arc::new(Account::new(id))),
                )
            }
            _ => Arc::clone(&self.platform.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Every account, the platform's first.
    pub(crate) fn accounts(&self) -> Vec<Arc<Account>> {
        let connected = self
            .connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut others: Vec<_> = connected.values().cloned().collect();
        others.sort_by(|a, b| a.id.cmp(&b.id));
        others.insert(0, self.account(None));
        others
    }

    /// Forgets objects, idempotency keys, faults and what was recorded. The clock goes on.
    pub(crate) fn reset(&self) {
        self.faults.clear();
        self.gate.release();
        self.recorder.clear();
        self.event_lag_s.store(0, Ordering::Release);
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        *self
            .platform
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(Account::new(&self.account_id));
    }
}
