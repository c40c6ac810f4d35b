//! Idempotency keys as Stripe keeps them (contract §2.1 to §2.4).
//!
//! A key is bound to the first request that reaches execution. While that one runs, a repeat is told
//! 409; afterwards it is given the stored answer, errors and 500s included; with other parameters it
//! is told 400. Validation failures, 401, 409 and 429 bind nothing. A key is forgotten 24 hours
//! after its first use.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::books::Account;
use super::errors::ApiError;
use super::form::{self, Tree};
use super::reply::Reply;

/// Stripe may prune keys once they are 24 h old (contract §2.1); the sandbox always does.
const RETENTION_MS: i64 = 24 * 60 * 60 * 1000;
/// Longest key Stripe takes (contract §2.1).
const KEY_LENGTH_MAX: usize = 255;

/// What a key is bound to: method, path and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(method: &http::Method, path: &str, params: &Tree) -> Self {
        let mut text = format!("{method} {path}?");
        form::canonical(params, &mut text);
        Self(Sha256::digest(text).into())
    }
}

/// An answer that was stored, and the request that made it.
#[derive(Debug, Clone)]
pub(crate) struct StoredAnswer {
    pub(crate) reply: Reply,
    pub(crate) original_request: String,
}

/// The keys of one account.
#[derive(Debug, Default)]
pub(crate) struct KeyStore(Mutex<HashMap<String, Record>>);

#[derive(Debug)]
struct Record {
    fingerprint: Fingerprint,
    first_used_ms: i64,
    /// `None` while the first request runs.
    answer: Option<StoredAnswer>,
}

/// What a request with a key may do.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Run it, then call [`KeyInUse::store`]; dropping the guard forgets the key.
    Run(KeyInUse),
    /// Give this answer again.
    Replay(StoredAnswer),
    /// 400 or 409.
    Refuse(ApiError),
}

impl KeyStore {
    /// Looks the key up, and takes it where it is free.
    pub(crate) fn admit(
        account: &Arc<Account>,
        key: &str,
        fingerprint: Fingerprint,
        now_ms: i64,
    ) -> Admission {
        if key.is_empty() || key.len() > KEY_LENGTH_MAX {
            let message = "Idempotency keys must be between 1 and 255 characters long.";
            return Admission::Refuse(ApiError::invalid(message));
        }
        let record = Record {
            fingerprint,
            first_used_ms: now_ms,
            answer: None,
        };
        match account.keys.lock().entry(key.to_owned()) {
            Entry::Vacant(vacant) => {
                vacant.insert(record);
            }
            Entry::Occupied(mut occupied) => {
                let known = occupied.get_mut();
                let expired = now_ms.saturating_sub(known.first_used_ms) >= RETENTION_MS;
                match &known.answer {
                    Some(_) if expired => *known = record,
                    _ if known.fingerprint != fingerprint => {
                        return Admission::Refuse(ApiError::idempotency_mismatch(key));
                    }
                    Some(answer) => return Admission::Replay(answer.clone()),
                    None => return Admission::Refuse(ApiError::idempotency_in_use(key)),
                }
            }
        }
        Admission::Run(KeyInUse {
            account: Arc::clone(account),
            key: key.to_owned(),
            stored: false,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds a key while its first request runs.
#[derive(Debug)]
pub(crate) struct KeyInUse {
    account: Arc<Account>,
    key: String,
    stored: bool,
}

impl KeyInUse {
    /// Binds the answer to the key.
    pub(crate) fn store(mut self, reply: &Reply, request_id: &str) {
        let answer = StoredAnswer {
            reply: reply.clone(),
            original_request: request_id.to_owned(),
        };
        if let Some(record) = self.account.keys.lock().get_mut(&self.key) {
            record.answer = Some(answer);
        }
        self.stored = true;
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        if !self.stored {
            self.account.keys.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
