use http::HeaderValue;
use serde_json::{Value, json};

use super::*;
use crate::domain::money::AmountMinor;

fn usd() -> Currency {
    Currency::parse("usd").unwrap()
}

fn charge(changes: &Value) -> Value {
    let mut charge = json!({
        "id": "ch_1", "object": "charge", "amount": 9900, "amount_captured": 9900,
        "captured": true, "currency": "usd", "customer": "cus_1", "paid": true,
        "refunded": false, "status": "succeeded", "metadata": {},
    });
    for (name, value) in changes.as_object().unwrap() {
        charge[name] = value.clone();
    }
    charge
}

fn authorised(changes: &Value) -> Value {
    let mut charge = charge(&json!({"captured": false, "amount_captured": 0}));
    for (name, value) in changes.as_object().unwrap() {
        charge[name] = value.clone();
    }
    charge
}

fn refusal(kind: &str) -> String {
    json!({"error": {"type": kind, "message": "m", "code": "c"}}).to_string()
}

fn settled(amount: i64) -> Outcome {
    Outcome::Settled {
        object_id: "ch_1".to_owned(),
        amount: AmountMinor::new(amount).unwrap(),
    }
}

fn open(ceiling: i64) -> Outcome {
    Outcome::Open {
        object_id: "ch_1".to_owned(),
        ceiling: AmountMinor::new(ceiling).unwrap(),
    }
}

fn dead() -> Outcome {
    Outcome::Dead {
        object_id: "ch_1".to_owned(),
    }
}

#[derive(Clone, Copy)]
enum Replay {
    No,
    Yes,
}

/// The outcomes as a create and as a capture.
fn outcomes(status: u16, replay: Replay, body: &[u8]) -> (Outcome, Outcome) {
    let mut headers = HeaderMap::new();
    if matches!(replay, Replay::Yes) {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: &headers,
        body,
    };
    (
        create_outcome(&answer, usd()),
        capture_outcome(&answer, usd()),
    )
}

#[test]
fn a_complete_charge_says_what_moved() {
    for (object, expected) in [
        (charge(&json!({})), settled(9_900)),
        (charge(&json!({"amount_captured": 500})), settled(500)),
        (charge(&json!({"amount_captured": 12_000})), settled(12_000)),
        (charge(&json!({"amount_captured": null})), settled(9_900)),
        (charge(&json!({"currency": "USD"})), settled(9_900)),
        (charge(&json!({"customer": null})), settled(9_900)),
        (
            charge(&json!({"customer": {"id": "cus_1", "object": "customer"}})),
            settled(9_900),
        ),
        (
            charge(&json!({"refunded": true, "amount_refunded": 9900})),
            settled(9_900),
        ),
        (charge(&json!({"status": "pending"})), open(9_900)),
        (
            charge(&json!({"status": "failed", "captured": false})),
            dead(),
        ),
        (authorised(&json!({})), open(9_900)),
        (authorised(&json!({"amount_captured": null})), open(9_900)),
        (authorised(&json!({"refunded": null})), open(9_900)),
        (authorised(&json!({"status": "pending"})), open(9_900)),
        (authorised(&json!({"refunded": true})), dead()),
        (authorised(&json!({"status": "failed"})), dead()),
    ] {
        let body = object.to_string();
        for status in [200, 201, 202] {
            let both = (expected.clone(), expected.clone());
            assert_eq!(
                outcomes(status, Replay::No, body.as_bytes()),
                both,
                "{body}"
            );
        }
    }
}

#[test]
fn a_replayed_object_proves_the_same() {
    let body = charge(&json!({})).to_string();
    let both = (settled(9_900), settled(9_900));
    assert_eq!(outcomes(200, Replay::Yes, body.as_bytes()), both);
    let body = authorised(&json!({})).to_string();
    let both = (open(9_900), open(9_900));
    assert_eq!(outcomes(200, Replay::Yes, body.as_bytes()), both);
    let body = charge(&json!({"status": "failed"})).to_string();
    assert_eq!(
        outcomes(200, Replay::Yes, body.as_bytes()),
        (dead(), dead())
    );
}

#[test]
fn a_success_that_is_not_a_complete_charge_proves_nothing() {
    let whole = charge(&json!({})).to_string();
    let missing = |name: &str| {
        let mut object = charge(&json!({}));
        object.as_object_mut().unwrap().remove(name);
        object.to_string()
    };
    for body in [
        String::new(),
        "{}".to_owned(),
        "null".to_owned(),
        "<html>welcome</html>".to_owned(),
        whole[..whole.len() - 1].to_owned(),
        format!("{whole}{whole}"),
        format!("{}, \"amount\": 1}}", &whole[..whole.len() - 1]),
        refusal("card_error"),
        missing("object"),
        missing("id"),
        missing("amount"),
        missing("currency"),
        missing("captured"),
        missing("status"),
        charge(&json!({"object": "refund"})).to_string(),
        charge(&json!({"id": ""})).to_string(),
        charge(&json!({"id": "ch 1"})).to_string(),
        charge(&json!({"amount": -1})).to_string(),
        charge(&json!({"amount": 99.5})).to_string(),
        charge(&json!({"amount": "9900"})).to_string(),
        charge(&json!({"amount_captured": -1})).to_string(),
        charge(&json!({"amount_captured": 0})).to_string(),
        charge(&json!({"currency": "eur"})).to_string(),
        charge(&json!({"currency": "dollars"})).to_string(),
        charge(&json!({"status": "unheard_of"})).to_string(),
        charge(&json!({"captured": "yes"})).to_string(),
    ] {
        for replay in [Replay::No, Replay::Yes] {
            let both = (Outcome::Unknown, Outcome::Unknown);
            assert_eq!(outcomes(200, replay, body.as_bytes()), both, "{body}");
        }
    }
}

#[test]
fn a_refusal_in_stripes_envelope_speaks_of_this_send() {
    let this = Outcome::RefusedThisSend;
    let stored = Outcome::StoredRefusal;
    for (status, kind, first, again) in [
        (402, "card_error", &stored, &stored),
        (400, "card_error", &stored, &stored),
        (400, "invalid_request_error", &this, &stored),
        (400, "idempotency_error", &this, &stored),
        (401, "invalid_request_error", &this, &stored),
        (401, "authentication_error", &this, &stored),
        (402, "invalid_request_error", &this, &stored),
        (403, "invalid_request_error", &this, &stored),
        (404, "invalid_request_error", &this, &stored),
        (409, "invalid_request_error", &this, &stored),
        (429, "invalid_request_error", &this, &stored),
        (429, "rate_limit_error", &this, &stored),
        (400, "api_error", &this, &stored),
    ] {
        let body = refusal(kind);
        for (replay, create) in [(Replay::No, first), (Replay::Yes, again)] {
            let both = (create.clone(), this.clone());
            assert_eq!(
                outcomes(status, replay, body.as_bytes()),
                both,
                "{status} {kind}"
            );
        }
    }
}

#[test]
fn a_refusal_that_stripe_did_not_write_proves_nothing() {
    for body in [
        "",
        "<html>403 Forbidden</html>",
        "{}",
        "[]",
        "null",
        r#"{"error":"invalid_grant","error_description":"m"}"#,
        r#"{"error":{"message":"m"}}"#,
        r#"{"error":{"type":"gateway_error"}}"#,
        r#"{"error":{"type":"card_error""#,
        r#"{"message":"card_error"}"#,
    ] {
        for status in [400, 401, 402, 403, 404, 408, 409, 413, 429, 431] {
            for replay in [Replay::No, Replay::Yes] {
                let both = (Outcome::Unknown, Outcome::Unknown);
                assert_eq!(
                    outcomes(status, replay, body.as_bytes()),
                    both,
                    "{status} {body}"
                );
            }
        }
    }
}

#[test]
fn other_statuses_prove_nothing_whatever_the_body_says() {
    let bodies = [
        String::new(),
        charge(&json!({})).to_string(),
        refusal("card_error"),
        refusal("invalid_request_error"),
        refusal("api_error"),
    ];
    for status in [
        100, 101, 103, 300, 301, 302, 303, 304, 307, 308, 424, 500, 501, 502, 503, 504, 599,
    ] {
        for body in &bodies {
            for replay in [Replay::No, Replay::Yes] {
                let nothing = if status == 424 || status >= 500 {
                    Outcome::ServerError
                } else {
                    Outcome::Unknown
                };
                let both = (nothing.clone(), nothing);
                assert_eq!(
                    outcomes(status, replay, body.as_bytes()),
                    both,
                    "{status} {body}"
                );
            }
        }
    }
}

#[test]
fn the_facts_of_a_charge_are_read_whole() {
    let body = authorised(&json!({"customer": {"id": "cus_2"}})).to_string();
    let facts = charge_facts(body.as_bytes()).unwrap();
    assert_eq!(facts.id, "ch_1");
    assert_eq!(facts.amount.get(), 9_900);
    assert_eq!(facts.currency, usd());
    assert_eq!(facts.customer.as_deref(), Some("cus_2"));
    assert!(!facts.captured && !facts.refunded);
    assert_eq!(facts.amount_captured, AmountMinor::ZERO);
    assert_eq!(facts.status, ChargeStatus::Succeeded);
    let error = charge_facts(b"secret text").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret text"));
}

#[test]
fn a_charge_of_an_old_api_version_is_read_too() {
    let mut old = charge(&json!({"status": "paid"}));
    old.as_object_mut().unwrap().remove("amount_captured");
    let outcomes = outcomes(200, Replay::No, old.to_string().as_bytes());
    assert_eq!(outcomes, (settled(9900), settled(9900)));
}
