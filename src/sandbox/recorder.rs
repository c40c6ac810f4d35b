//! What arrived: every request, and every key that was not the real one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::header::AUTHORIZATION;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use super::credentials::{Authorization, Credentials};

/// Both lists are bounded; the oldest entries go first.
const REQUESTS_MAX: usize = 10_000;
const WRONG_KEYS_MAX: usize = 1_000;

/// One request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRequest {
    pub method: String,
    pub path: String,
    /// The raw query, without the question mark.
    pub query: Option<String>,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    pub idempotency_key: Option<String>,
    pub authorization: Authorization,
    /// Every header but `Authorization`, in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The raw body; bytes that are not UTF-8 are replaced.
    pub body: String,
}

/// A request whose key was not the configured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongKey {
    pub method: String,
    pub path: String,
    pub authorization: Authorization,
}

impl SeenRequest {
    /// The first header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Keeps what arrived.
#[derive(Debug)]
pub(crate) struct Recorder {
    record_requests: bool,
    total: AtomicU64,
    requests: Mutex<VecDeque<SeenRequest>>,
    wrong_keys: Mutex<VecDeque<WrongKey>>,
}

impl Recorder {
    pub(crate) fn new(record_requests: bool) -> Self {
        Self {
            record_requests,
            total: AtomicU64::new(0),
            requests: Mutex::default(),
            wrong_keys: Mutex::default(),
        }
    }

    pub(crate) fn seen(&self, head: &Parts, body: &[u8]) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if !self.record_requests {
            return;
        }
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head
            .headers
            .iter()
            .filter(|(name, _)| *name != AUTHORIZATION);
        let request = SeenRequest {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            version: format!("{:?}", head.version),
            idempotency_key: head.headers.get("idempotency-key").map(text),
            authorization: Credentials::of(&head.headers).described(),
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body: String::from_utf8_lossy(body).into_owned(),
        };
        push_bounded(&mut lock(&self.requests), request, REQUESTS_MAX);
    }

    pub(crate) fn wrong_key(&self, head: &Parts, credentials: &Credentials) {
        let entry = WrongKey {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            authorization: credentials.described(),
        };
        push_bounded(&mut lock(&self.wrong_keys), entry, WRONG_KEYS_MAX);
    }

    pub(crate) fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.requests).iter().cloned().collect()
    }

    pub(crate) fn wrong_keys(&self) -> Vec<WrongKey> {
        lock(&self.wrong_keys).iter().cloned().collect()
    }

    /// Requests since the start or the last reset, recorded or not.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.total.store(0, Ordering::Relaxed);
        lock(&self.requests).clear();
        lock(&self.wrong_keys).clear();
    }
}

fn push_bounded<T>(list: &mut VecDeque<T>, item: T, max: usize) {
    if list.len() == max {
        list.pop_front();
    }
    list.push_back(item);
}

fn lock<T>(list: &Mutex<VecDeque<T>>) -> MutexGuard<'_, VecDeque<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
