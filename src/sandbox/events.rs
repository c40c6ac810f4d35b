//! The event feed (contract §6).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::api::Scene;
use super::books::Books;
use super::charges::Charge;
use super::errors::ApiError;
use super::params::Params;
use super::reply::Reply;
use super::shelf::{PageQuery, Shelved, list_object};

/// How many `types[]` Stripe takes.
const TYPES_MAX: usize = 20;
/// The API version events are rendered in.
pub(crate) const API_VERSION: &str = "2026-10-28.endive";

/// Something that happened to a charge, with the charge as it was then.
#[derive(Debug)]
pub(crate) struct Event {
    id: String,
    kind: &'static str,
    created: i64,
    request: Option<Origin>,
    charge: Arc<Charge>,
}

/// The request behind an event; none for what happens by itself.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) request_id: String,
    pub(crate) idempotency_key: Option<String>,
}

impl Shelved for Arc<Event> {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> i64 {
        self.created
    }
}

/// Adds an event to the feed.
pub(crate) fn record(
    scene: &Scene<'_>,
    books: &mut Books,
    kind: &'static str,
    charge: Arc<Charge>,
) {
    let request = scene.origin.clone();
    let id = scene.world.ids.next("evt_");
    books.events.push(Arc::new(Event {
        id,
        kind,
        created: scene.now,
        request,
        charge,
    }));
}

/// `GET /v1/events`.
pub(crate) fn list(scene: &Scene<'_>, params: &Params) -> Result<Reply, ApiError> {
    let mut known = PageQuery::PARAMS.to_vec();
    known.extend(["type", "types", "delivery_success"]);
    params.only(&known)?;
    let query = PageQuery::read(params)?;
    let mut patterns = params.strings("types")?;
    if patterns.len() > TYPES_MAX {
        let message = format!("You may pass up to {TYPES_MAX} types.");
        return Err(ApiError::invalid(message).param("types"));
    }
    match params.text("type")? {
        Some(_) if !patterns.is_empty() => {
            let message = "You may only specify one of these parameters: type, types.";
            return Err(ApiError::invalid(message).param("type"));
        }
        Some(pattern) => patterns.push(pattern),
        None => {}
    }
    let lag_s = scene.world.event_lag_s.load(Ordering::Acquire);
    let shown_until = scene.now.saturating_sub(lag_s);
    let wanted = |event: &Arc<Event>| {
        let type_wanted =
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, event.kind));
        type_wanted && event.created <= shown_until
    };
    let (page, has_more) = scene.account.books().events.page(&query, wanted)?;
    let data = page.iter().map(|event| render(scene, event)).collect();
    Ok(Reply::ok(&list_object("/v1/events", data, has_more)))
}

/// `GET /v1/events/{id}`.
pub(crate) fn get(scene: &Scene<'_>, id: &str) -> Result<Reply, ApiError> {
    let event = scene.account.books().events.get(id).cloned();
    let event = event.ok_or_else(|| ApiError::missing("event", id, "id"))?;
    Ok(Reply::ok(&render(scene, &event)))
}

/// `charge.*` means every type that begins with `charge.`; `*` means all.
fn matches(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => kind.starts_with(prefix),
        None => kind == pattern,
    }
}

fn render(scene: &Scene<'_>, event: &Event) -> Value {
    let request = match &event.request {
        Some(origin) => {
            json!({ "id": origin.request_id, "idempotency_key": origin.idempotency_key })
        }
        None => json!({ "id": null, "idempotency_key": null }),
    };
    let mut value = json!({
        "id": event.id,
        "object": "event",
        "api_version": API_VERSION,
        "created": event.created,
        "data": { "object": event.charge.view() },
        "livemode": event.charge.livemode,
        "pending_webhooks": 0,
        "request": request,
        "type": event.kind,
    });
    if scene.account.id != scene.world.account_id {
        value["account"] = json!(scene.account.id);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_types_and_prefixes() {
        let rows = [
            ("charge.*", "charge.succeeded", true),
            ("charge.*", "customer.created", false),
            ("*", "charge.failed", true),
            ("charge.failed", "charge.failed", true),
            ("charge", "charge.failed", false),
        ];
        for (pattern, kind, expected) in rows {
            assert_eq!(matches(pattern, kind), expected, "{pattern} {kind}");
        }
    }
}
