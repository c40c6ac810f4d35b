//! What arrived: every request, and every key that was not the real one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::header::{AUTHORIZATION, HeaderMap};
use http::request::Parts;
use serde::{Deserialize, Serialize};

/// Both lists are bounded; the oldest entries go first.
const REQUESTS_MAX: usize = 10_000;
const WRONG_KEYS_MAX: usize = 1_000;
/// A key's prefix ends at an underscore within this many characters.
const PREFIX_CHARS_MAX: usize = 12;

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

/// How a request authenticated. Never the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    /// `bearer`, `basic`, `none` or `other`.
    pub scheme: String,
    /// The key up to its last underscore, such as `sk_test_` or `sk_vault_`.
    pub key_prefix: String,
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

/// What a request authenticated with.
pub(crate) struct Credentials {
    scheme: &'static str,
    pub(crate) key: String,
}

impl Credentials {
    /// Reads `Bearer <key>` or `Basic base64(<key>:)` (contract §4.3).
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
        else {
            return Self {
                scheme: "none",
                key: String::new(),
            };
        };
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Self {
                scheme: "bearer",
                key: rest.trim().to_owned(),
            };
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded = base64_text(rest.trim()).unwrap_or_default();
            let key = decoded.split(':').next().unwrap_or_default().to_owned();
            return Self {
                scheme: "basic",
                key,
            };
        }
        Self {
            scheme: "other",
            key: String::new(),
        }
    }

    fn described(&self) -> Authorization {
        let head: String = self.key.chars().take(PREFIX_CHARS_MAX).collect();
        let prefix = head.rfind('_').map_or("", |end| &head[..=end]);
        Authorization {
            scheme: self.scheme.to_owned(),
            key_prefix: prefix.to_owned(),
        }
    }
}

/// Standard base64 to text; padding is optional.
fn base64_text(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(bytes).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_and_described_without_the_key() {
        let rows = [
            ("Bearer sk_test_abc", "bearer", "sk_test_abc", "sk_test_"),
            ("bearer sk_vault_abc", "bearer", "sk_vault_abc", "sk_vault_"),
            ("Basic c2tfdGVzdF9hYmM6", "basic", "sk_test_abc", "sk_test_"),
            (
                "Basic c2tfdGVzdF9hYmM6cHc=",
                "basic",
                "sk_test_abc",
                "sk_test_",
            ),
            ("Basic ***", "basic", "", ""),
            ("Digest x", "other", "", ""),
            (
                "Bearer secretwithoutprefix",
                "bearer",
                "secretwithoutprefix",
                "",
            ),
        ];
        for (value, scheme, key, prefix) in rows {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            let found = Credentials::of(&headers);
            let described = found.described();
            assert_eq!(
                (described.scheme.as_str(), found.key.as_str()),
                (scheme, key),
                "{value}"
            );
            assert_eq!(described.key_prefix, prefix, "{value}");
        }
        assert_eq!(
            Credentials::of(&HeaderMap::new()).described().scheme,
            "none"
        );
    }
}
