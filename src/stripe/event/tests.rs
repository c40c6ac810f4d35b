use serde_json::json;

use super::*;

fn charge() -> Value {
    json!({"id": "ch_1", "object": "charge", "amount": 100, "currency": "usd", "customer": "cus_1",
        "captured": true, "amount_captured": 100, "refunded": false, "amount_refunded": 40,
        "status": "succeeded", "created": 1_785_600_000})
}

fn page(event: &Value) -> EventPage {
    let page = json!({"object": "list", "data": [event], "has_more": true});
    event_page(page.to_string().as_bytes()).unwrap()
}

fn event_of(request: &Value, object: &Value) -> Event {
    let event = json!({"id": "evt_1", "object": "event", "type": "charge.succeeded",
        "created": 1_785_600_001, "request": request, "data": {"object": object}});
    page(&event).events.remove(0)
}

#[test]
fn an_event_names_its_request_and_its_charge() {
    let event = event_of(&json!({"id": "req_1", "idempotency_key": "k"}), &charge());
    assert_eq!(event.idempotency_key.as_deref(), Some("k"));
    assert_eq!(event.charge_id.as_deref(), Some("ch_1"));
    assert_eq!(event.created, UnixMs::from_unix_seconds(1_785_600_001));
    let facts = event.charge.unwrap();
    assert_eq!(facts.amount_given_back.get(), 40);
    assert_eq!(facts.created, Some(UnixMs(1_785_600_000_000)));
}

#[test]
fn what_came_by_itself_or_long_ago_has_no_key() {
    for request in [
        json!(null),
        json!("req_old"),
        json!({"id": null, "idempotency_key": null}),
        json!({"id": "req_1"}),
    ] {
        assert_eq!(event_of(&request, &charge()).idempotency_key, None);
    }
}

#[test]
fn another_object_names_its_charge_or_none() {
    for (object, charge_id) in [
        (
            json!({"id": "re_1", "object": "refund", "charge": "ch_1"}),
            Some("ch_1"),
        ),
        (json!({"id": "cus_1", "object": "customer"}), None),
        (
            json!({"id": "re_1", "object": "refund", "charge": null}),
            None,
        ),
        (json!({"id": "../x", "object": "charge"}), None),
        (json!("none"), None),
    ] {
        let event = event_of(&json!(null), &object);
        assert_eq!(event.charge_id.as_deref(), charge_id, "{object}");
        assert_eq!(event.charge, None, "{object}");
    }
}

#[test]
fn what_a_smaller_capture_left_did_not_go_back() {
    let mut part = charge();
    part["amount_captured"] = json!(60);
    let facts = |value: &Value| event_of(&json!(null), value).charge.unwrap();
    assert_eq!(facts(&part).amount_given_back.get(), 0);
    part["amount_refunded"] = json!(65);
    assert_eq!(facts(&part).amount_given_back.get(), 25);
    let mut voided = charge();
    voided["captured"] = json!(false);
    voided["amount_captured"] = json!(0);
    voided["amount_refunded"] = json!(100);
    assert_eq!(facts(&voided).amount_given_back.get(), 0);
}

#[test]
fn a_page_that_is_none_is_refused() {
    for body in ["", "{}", r#"{"data": [{}], "has_more": false}"#, "<html>"] {
        assert!(event_page(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn a_query_says_what_is_wanted() {
    let query = EventQuery {
        types: &["charge.succeeded", "charge.failed"],
        from: UnixMs(1000),
        to: UnixMs(2999),
        starting_after: Some("evt_9"),
    };
    assert_eq!(
        query.path(),
        "/v1/events?limit=100&created%5Bgte%5D=1&created%5Blte%5D=2&types%5B%5D=charge.succeeded\
         &types%5B%5D=charge.failed&starting_after=evt_9"
    );
}
