//! The event feed (contract §6): newest first, a page at a time, and not at once.

use std::collections::BTreeMap;

use crate::simulation::database::START;

const PAGE_MAX: usize = 100;

#[derive(Default)]
pub(super) struct Events(Vec<Event>);

struct Event {
    id: String,
    kind: &'static str,
    created: i64,
    shown_at_ms: i64,
    json: serde_json::Value,
}

impl Events {
    pub(super) fn add(
        &mut self,
        kind: &'static str,
        key: Option<&str>,
        charge: &str,
        (now_ms, shown_at_ms): (i64, i64),
    ) {
        let id = format!("evt_{}", self.0.len() + 1);
        let created = START.plus_ms(now_ms).unix_seconds();
        let object: serde_json::Value = serde_json::from_str(charge).unwrap();
        let json = serde_json::json!({
            "id": id,
            "object": "event",
            "type": kind,
            "created": created,
            "request": {"id": null, "idempotency_key": key},
            "data": {"object": object},
        });
        self.0.push(Event {
            id,
            kind,
            created,
            shown_at_ms,
            json,
        });
    }

    pub(super) fn page(&self, query: &str, now_ms: i64) -> String {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let types = pairs.iter().filter(|(name, _)| name == "types[]");
        let types: Vec<&String> = types.map(|(_, kind)| kind).collect();
        let one: BTreeMap<&str, &str> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let number = |name: &str| one[name].parse::<i64>().unwrap();
        let (from, to) = (number("created[gte]"), number("created[lte]"));
        let after = one.get("starting_after");
        let older = self
            .0
            .iter()
            .rev()
            .skip_while(|event| after.is_some_and(|after| event.id != *after))
            .skip(usize::from(after.is_some()));
        let mut found = older.filter(|event| {
            event.shown_at_ms <= now_ms
                && (from..=to).contains(&event.created)
                && types.iter().any(|kind| *kind == event.kind)
        });
        let data: Vec<&serde_json::Value> = found
            .by_ref()
            .take(PAGE_MAX)
            .map(|event| &event.json)
            .collect();
        let has_more = found.next().is_some();
        serde_json::json!({"object": "list", "data": data, "has_more": has_more}).to_string()
    }
}
