//! The event feed, as far as charges go (contract §6). An event is a pointer: what it says about an
//! object was true once, and the object it names is read before anything is believed.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::{AnswerError, ChargeFacts, facts_of, is_id};
use crate::domain::time::UnixMs;

#[cfg(test)]
mod tests;

/// The most events of one page; Stripe's own limit (contract §6).
pub const PAGE_MAX: usize = 100;

/// What tells of a charge that was made, or of its end.
pub const CHARGE_TYPES: [&str; 6] = [
    "charge.succeeded",
    "charge.pending",
    "charge.failed",
    "charge.captured",
    "charge.expired",
    "charge.updated",
];

/// One page of the feed, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventPage {
    /// Newest first.
    pub events: Vec<Event>,
    /// There are older ones.
    pub has_more: bool,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// `evt_…`, where the next page begins.
    pub id: String,
    /// Its type, such as `charge.succeeded`.
    pub kind: String,
    /// When it was made, on Stripe's clock.
    pub created: UnixMs,
    /// The key of the request behind it; none for what happens by itself.
    pub idempotency_key: Option<String>,
    /// The charge it is about, where it is about one.
    pub charge_id: Option<String>,
    /// That charge as it was then; `None` where the event holds something else, such as a refund.
    pub charge: Option<ChargeFacts>,
}

/// Which part of the feed to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventQuery<'a> {
    /// The types, at most 20.
    pub types: &'a [&'a str],
    /// The first moment, included; Stripe counts in seconds.
    pub from: UnixMs,
    /// The last moment, included.
    pub to: UnixMs,
    /// The last event of the page before.
    pub starting_after: Option<&'a str>,
}

impl EventQuery<'_> {
    /// The path and query to read.
    pub fn path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &PAGE_MAX.to_string());
        query.append_pair("created[gte]", &self.from.unix_seconds().to_string());
        query.append_pair("created[lte]", &self.to.unix_seconds().to_string());
        for kind in self.types {
            query.append_pair("types[]", kind);
        }
        if let Some(id) = self.starting_after {
            query.append_pair("starting_after", id);
        }
        format!("/v1/events?{}", query.finish())
    }
}

#[derive(Deserialize)]
struct Wire {
    data: Vec<WireEvent>,
    has_more: bool,
}

#[derive(Deserialize)]
struct WireEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created: i64,
    request: Option<WireRequest>,
    data: WireData,
}

#[derive(Deserialize)]
struct WireData {
    object: Value,
}

/// An object; before API 2017-05-25 the request's id alone (contract §6).
#[derive(Deserialize)]
#[serde(untagged)]
enum WireRequest {
    Object { idempotency_key: Option<String> },
    Id(IgnoredAny),
}

/// Reads a page of `GET /v1/events`.
pub fn event_page(body: &[u8]) -> Result<EventPage, AnswerError> {
    let wire: Wire = serde_json::from_slice(body).map_err(|_| AnswerError::unreadable())?;
    Ok(EventPage {
        events: wire.data.into_iter().map(event).collect(),
        has_more: wire.has_more,
    })
}

fn event(wire: WireEvent) -> Event {
    let object = wire.data.object;
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let charge_id = match text("object").as_deref() {
        Some("charge") => text("id"),
        // A refund or a dispute names the charge it is about.
        _ => text("charge"),
    };
    Event {
        id: wire.id,
        kind: wire.kind,
        created: UnixMs::from_unix_seconds(wire.created),
        idempotency_key: match wire.request {
            Some(WireRequest::Object { idempotency_key }) => idempotency_key,
            Some(WireRequest::Id(_)) | None => None,
        },
        charge_id: charge_id.filter(|id| is_id(id)),
        charge: facts_of(&object),
    }
}
