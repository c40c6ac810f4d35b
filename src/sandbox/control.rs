//! `/_sandbox/…`: what tests and people with curl ask the sandbox itself. No key is needed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::request::Parts;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api;
use super::errors::ApiError;
use super::faults::{FAULT_FIELDS, Fault, Outage};
use super::form::{self, Param};
use super::made::{self, MadeCharge};
use super::reply::Reply;
use super::world::World;

/// Paths of the control interface begin with this.
pub(crate) const PREFIX: &str = "/_sandbox";
/// Longest a caller may wait for held requests.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Answers one control request.
pub(crate) async fn serve(world: &World, head: &Parts, body: &[u8]) -> Reply {
    answer(world, head, body).await.unwrap_or_else(Reply::from)
}

async fn answer(world: &World, head: &Parts, body: &[u8]) -> Result<Reply, ApiError> {
    let path: Vec<&str> = head
        .uri
        .path()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let query = Query::read(head.uri.query().unwrap_or_default())?;
    let reply = match (&head.method, path.get(1..).unwrap_or_default()) {
        (&Method::GET, []) => Reply::ok(&index()),
        (&Method::GET, ["charges"]) => charges(world, query.0.get("customer")),
        (&Method::POST, ["charges", id, "end"]) => end_pending(world, id, &read(body)?)?,
        (&Method::GET, ["requests"]) => Reply::ok(&json!({
            "total": world.recorder.total(), "data": world.recorder.requests() })),
        (&Method::GET, ["wrong_keys"]) => data(&world.recorder.wrong_keys()),
        (&Method::GET, ["faults"]) => data(&world.faults.list()),
        (&Method::POST, ["faults"]) => {
            world.faults.add(read_fault(body)?);
            data(&world.faults.list())
        }
        (&Method::DELETE, ["faults"]) => {
            world.faults.clear();
            world.gate.release();
            data(&world.faults.list())
        }
        (&Method::GET, ["gate"]) => Reply::ok(&json!({ "held": world.gate.held() })),
        (&Method::GET, ["gate", "wait"]) => wait_until_held(world, &query).await?,
        (&Method::POST, ["gate", "release"]) => {
            let released = world.gate.held();
            world.faults.clear_gates();
            world.gate.release();
            Reply::ok(&json!({ "released": released }))
        }
        (&Method::GET, ["clock"]) => clock(world),
        (&Method::POST, ["clock", "advance"]) => {
            let Advance { seconds } = read(body)?;
            world.clock.advance(Duration::from_secs(seconds));
            clock(world)
        }
        (&Method::POST, ["events", "lag"]) => {
            let Lag { seconds } = read(body)?;
            world
                .event_lag_s
                .store(i64::from(seconds), Ordering::Release);
            Reply::ok(&json!({ "seconds": seconds }))
        }
        (&Method::POST, ["outage"]) => {
            let Mode { mode } = read(body)?;
            world.faults.set_outage(mode);
            Reply::ok(&json!({ "mode": mode }))
        }
        (&Method::POST, ["reset"]) => {
            world.reset();
            Reply::ok(&json!({ "reset": true }))
        }
        (method, _) => return Err(ApiError::unknown_url(method, head.uri.path())),
    };
    Ok(reply)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lag {
    seconds: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    mode: Outage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    paid: bool,
}

/// The query's plain values.
struct Query(BTreeMap<String, String>);

impl Query {
    fn read(query: &str) -> Result<Self, ApiError> {
        let texts = form::parse(query)?
            .into_iter()
            .filter_map(|(name, value)| match value {
                Param::Text(text) => Some((name, text)),
                _ => None,
            });
        Ok(Self(texts.collect()))
    }

    fn number(&self, name: &str, default: u32) -> Result<u32, ApiError> {
        let text = self.0.get(name);
        let bad = |_| ApiError::invalid(format!("Invalid integer for '{name}'.")).param(name);
        text.map_or(Ok(default), |text| text.parse().map_err(bad))
    }
}

fn index() -> Value {
    json!({ "endpoints": [
        "GET /_sandbox/charges?customer=", "POST /_sandbox/charges/{id}/end {\"paid\":true}",
        "GET /_sandbox/requests", "GET /_sandbox/wrong_keys",
        "GET|POST|DELETE /_sandbox/faults", "GET /_sandbox/gate",
        "GET /_sandbox/gate/wait?held=1&timeout_ms=10000", "POST /_sandbox/gate/release",
        "GET /_sandbox/clock", "POST /_sandbox/clock/advance {\"seconds\":86400}",
        "POST /_sandbox/events/lag {\"seconds\":60}",
        "POST /_sandbox/outage {\"mode\":\"off|close|status_503\"}", "POST /_sandbox/reset",
    ] })
}

/// Every charge really made, with sums per currency.
fn charges(world: &World, customer: Option<&String>) -> Reply {
    let mut made = made::list(world);
    if let Some(customer) = customer {
        made.retain(|charge| charge.customer.as_ref() == Some(customer));
    }
    let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
    for charge in &made {
        totals.entry(&charge.currency).or_default().add(charge);
    }
    Reply::ok(&json!({ "count": made.len(), "totals": totals, "data": made }))
}

#[derive(Debug, Default, Serialize)]
struct Total {
    count: u64,
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
}

impl Total {
    fn add(&mut self, charge: &MadeCharge) {
        self.count += 1;
        self.amount = self.amount.saturating_add(charge.amount);
        self.amount_captured = self.amount_captured.saturating_add(charge.amount_captured);
        self.amount_refunded = self.amount_refunded.saturating_add(charge.amount_refunded);
    }
}

fn end_pending(world: &World, id: &str, end: &End) -> Result<Reply, ApiError> {
    if api::end_pending(world, id, end.paid) {
        return Ok(Reply::ok(&json!({ "id": id, "paid": end.paid })));
    }
    Err(ApiError::missing("pending charge", id, "id"))
}

async fn wait_until_held(world: &World, query: &Query) -> Result<Reply, ApiError> {
    let count = usize::try_from(query.number("held", 1)?).unwrap_or(usize::MAX);
    let timeout = Duration::from_millis(u64::from(query.number("timeout_ms", 10_000)?));
    let wait = world.gate.wait_until_held(count);
    match tokio::time::timeout(timeout.min(WAIT_MAX), wait).await {
        Ok(()) => Ok(Reply::ok(&json!({ "held": world.gate.held() }))),
        Err(_elapsed) => {
            let message = format!("Only {} requests are held.", world.gate.held());
            Ok(Reply::json(
                StatusCode::REQUEST_TIMEOUT,
                &json!({ "error": { "message": message } }),
            ))
        }
    }
}

fn clock(world: &World) -> Reply {
    Reply::ok(&json!({ "now": world.clock.now().unix_seconds() }))
}

/// A misspelt matcher would match everything, so unknown names are refused.
fn read_fault(body: &[u8]) -> Result<Fault, ApiError> {
    let value: Value = read(body)?;
    let names = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name);
    if let Some(unknown) = names
        .into_iter()
        .find(|name| !FAULT_FIELDS.contains(&name.as_str()))
    {
        let message = format!("Received unknown parameter: {unknown}");
        return Err(ApiError::invalid(message).param(unknown));
    }
    serde_json::from_value(value).map_err(|error| ApiError::invalid(error.to_string()))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::invalid(error.to_string()))
}

fn data(items: &impl Serialize) -> Reply {
    Reply::ok(&json!({ "data": items }))
}
