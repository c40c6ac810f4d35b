//! Faults on demand: which requests they meet and what they do to them.

use serde::{Deserialize, Serialize};

use super::api::Call;
use super::form::Param;

/// A fault: what happens, to which requests, how often. An unset matcher matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// The `customer` parameter, or the customer of the charge the path names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// How many requests it still meets; without it, all until cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// The names a fault may carry in JSON.
pub(crate) const FAULT_FIELDS: [&str; 8] = [
    "kind",
    "customer",
    "idempotency_key",
    "path_prefix",
    "method",
    "times",
    "at",
    "ms",
];

/// What happens. "Commit" means that the request is executed and its answer stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// Commit, then close the connection without an answer.
    CommitThenFin,
    /// Commit, then reset the connection.
    CommitThenRst,
    /// Commit, then answer 503. A repeat is given the real, stored answer.
    #[serde(rename = "commit_then_503")]
    CommitThen503,
    /// Answer 503; nothing is executed, no key is bound.
    #[serde(rename = "status_503")]
    Status503,
    /// Commit, but the stored answer is a 500.
    #[serde(rename = "commit_then_500")]
    CommitThen500,
    /// Store a 500 under the key without executing anything.
    #[serde(rename = "error_500")]
    Error500,
    /// Never answer. When the gate is released or the faults are cleared, the connection is closed.
    Hang {
        #[serde(default)]
        at: Moment,
    },
    /// Commit, then send half of the body and close.
    TruncateBody,
    /// Commit, then answer 200 with a page that is not JSON.
    #[serde(rename = "non_json_200")]
    NonJson200,
    /// Wait this long, then go on.
    Slow {
        ms: u64,
        #[serde(default)]
        at: Moment,
    },
    /// Answer 429 `rate_limit`; nothing is executed.
    #[serde(rename = "rate_limit_429")]
    RateLimit429,
    /// Answer 409 `idempotency_key_in_use`; nothing is executed.
    #[serde(rename = "conflict_409")]
    Conflict409,
    /// Answer 403, as for a key that lacks a permission; nothing is executed.
    #[serde(rename = "forbidden_403")]
    Forbidden403,
    /// Answer 502 with an HTML page; nothing is executed.
    #[serde(rename = "html_502")]
    Html502,
    /// Reset the connection; nothing is executed.
    ResetBeforeCommit,
    /// Decline the payment: 402, stored.
    Decline,
    /// Hold the request until the gate is released, then go on.
    Gate {
        #[serde(default)]
        at: Moment,
    },
}

/// Where a request is held. Before the commit its key is in use (a repeat is told 409) and nothing
/// exists yet; after it, the charge exists, the answer is stored and only its sending waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    #[default]
    BeforeCommit,
    AfterCommit,
}

/// Whether the sandbox answers at all. Its control interface always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    #[default]
    Off,
    /// Every request's connection is closed before anything happens.
    Close,
    /// Every request is answered 503 before anything happens.
    #[serde(rename = "status_503")]
    Status503,
}

impl Fault {
    /// A fault that meets every request until it is cleared.
    pub const fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            customer: None,
            idempotency_key: None,
            path_prefix: None,
            method: None,
            times: None,
        }
    }

    /// Only requests about this customer.
    #[must_use]
    pub fn customer(mut self, id: impl Into<String>) -> Self {
        self.customer = Some(id.into());
        self
    }

    /// Only requests with this idempotency key.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Only paths that begin like this.
    #[must_use]
    pub fn path_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.path_prefix = Some(prefix.into());
        self
    }

    /// Only this method, such as `POST`.
    #[must_use]
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Only this many requests.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only one request.
    #[must_use]
    pub const fn once(self) -> Self {
        self.times(1)
    }

    /// Whether the fault is for this call.
    pub(crate) fn meets(&self, call: &Call) -> bool {
        let same = |wanted: &Option<String>, actual: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == actual
        };
        let path = self.path_prefix.as_ref();
        path.is_none_or(|prefix| call.path.starts_with(prefix.as_str()))
            && same(&self.method, Some(call.method.as_str()))
            && same(&self.idempotency_key, call.idempotency_key.as_deref())
            && (self.customer.is_none() || self.customer == customer_of(call))
    }
}

/// Whom a request is about.
fn customer_of(call: &Call) -> Option<String> {
    if let Some(Param::Text(id)) = call.params.0.get("customer") {
        return Some(id.clone());
    }
    let charge_id = match (call.segments().as_slice(), call.params.0.get("charge")) {
        (["v1", "charges", id, ..], _) => (*id).to_owned(),
        (_, Some(Param::Text(id))) => id.clone(),
        _ => return None,
    };
    call.account
        .books()
        .charges
        .get(&charge_id)?
        .customer
        .clone()
}
