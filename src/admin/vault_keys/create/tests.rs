use serde_json::json;

use super::*;

const NOW: UnixMs = UnixMs::from_unix_seconds(1_785_542_400);

fn defaults() -> DefaultsConfig {
    DefaultsConfig {
        headroom: Headroom::DEFAULT,
        on_duplicate: OnDuplicate::Replay,
        permissions: vec![Permission::ChargesWrite],
    }
}

fn good() -> Value {
    json!({
        "billing_period": "2026-08", "expected_total": 4_950_000, "currency": "usd",
        "expires_at": 1_788_307_200
    })
}

/// The good body with `changes` laid over it; `"-"` takes a field away.
fn with(changes: &Value) -> Map<String, Value> {
    let Value::Object(mut body) = good() else {
        panic!("an object");
    };
    for (name, value) in changes.as_object().unwrap() {
        if value == "-" {
            body.remove(name);
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
    body
}

fn key(changes: &Value) -> Result<VaultKey, BadParameter> {
    let asked = VaultKeyCreate::read(with(changes), NOW)?;
    asked.into_key(
        "vk_1".parse().unwrap(),
        "…a1b2".to_owned(),
        &defaults(),
        NOW,
    )
}

fn max_amounts(changes: &Value) -> Vec<(String, i64)> {
    let caps = key(changes).unwrap().caps;
    let pairs = caps
        .iter()
        .map(|cap| (cap.currency.to_string(), cap.max_amount.get()));
    pairs.collect()
}

#[test]
fn what_is_not_said_comes_from_the_defaults() {
    let key = key(&json!({})).unwrap();
    assert_eq!(key.namespace, "default");
    assert_eq!(key.headroom, Headroom::DEFAULT);
    assert_eq!(key.on_duplicate, OnDuplicate::Replay);
    assert_eq!(key.permissions, [Permission::ChargesWrite]);
    assert_eq!(key.refusal_status, RefusalStatus::PaymentRequired);
    assert!(!key.require_customer && key.accounts.is_empty() && key.max_charge.is_empty());
}

#[test]
fn caps_are_the_floor_of_expected_total_times_headroom() {
    for (changes, caps) in [
        (json!({}), vec![("usd", 5_445_000)]),
        (json!({"expected_total": 99}), vec![("usd", 108)]),
        (json!({"expected_total": 0}), vec![("usd", 0)]),
        (json!({"headroom": "1"}), vec![("usd", 4_950_000)]),
        (
            json!({"expected_total": i64::MAX, "headroom": "1.00"}),
            vec![("usd", i64::MAX)],
        ),
        (
            json!({"expected_total": "-", "currency": "-", "expected_totals": {"usd": 99, "EUR": 100}}),
            vec![("eur", 110), ("usd", 108)],
        ),
    ] {
        let caps: Vec<(String, i64)> = caps
            .into_iter()
            .map(|(code, max)| (code.to_owned(), max))
            .collect();
        assert_eq!(max_amounts(&changes), caps, "{changes}");
    }
}

/// Changes of the good body, the parameter that is named, and the code.
const BAD: &[(&str, &str, &str)] = &[
    (
        r#"{"billing_period": "-"}"#,
        "billing_period",
        "parameter_missing",
    ),
    (
        r#"{"billing_period": "2026:08"}"#,
        "billing_period",
        "parameter_invalid",
    ),
    (
        r#"{"billing_period": ""}"#,
        "billing_period",
        "parameter_invalid",
    ),
    (
        r#"{"billing_period": 202608}"#,
        "billing_period",
        "parameter_invalid",
    ),
    (r#"{"namespace": null}"#, "namespace", "parameter_invalid"),
    (
        r#"{"expected_total": "-"}"#,
        "expected_total",
        "parameter_missing",
    ),
    (r#"{"currency": "-"}"#, "currency", "parameter_missing"),
    (
        r#"{"expected_total": "-", "currency": "-"}"#,
        "expected_total",
        "parameter_missing",
    ),
    (
        r#"{"expected_total": null}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": -1}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": "100"}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": 1.5}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": 1e3}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": 18446744073709551615}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (
        r#"{"expected_total": 9223372036854775807}"#,
        "expected_total",
        "parameter_invalid_integer",
    ),
    (r#"{"currency": "dollar"}"#, "currency", "parameter_invalid"),
    (
        r#"{"expected_totals": {"usd": 1}}"#,
        "expected_totals",
        "parameters_exclusive",
    ),
    (
        r#"{"expected_total": "-", "currency": "-", "expected_totals": {}}"#,
        "expected_totals",
        "parameter_invalid",
    ),
    (
        r#"{"expected_total": "-", "currency": "-", "expected_totals": {"usd": 9223372036854775807}}"#,
        "expected_totals[usd]",
        "parameter_invalid_integer",
    ),
    (r#"{"headroom": 1.1}"#, "headroom", "parameter_invalid"),
    (r#"{"headroom": "110"}"#, "headroom", "parameter_invalid"),
    (r#"{"expires_at": "-"}"#, "expires_at", "parameter_missing"),
    (
        r#"{"expires_at": 1785542400}"#,
        "expires_at",
        "parameter_invalid",
    ),
    (
        r#"{"expires_at": 1788307200000}"#,
        "expires_at",
        "parameter_invalid",
    ),
    (
        r#"{"expires_at": "2026-09-01T00:00:00"}"#,
        "expires_at",
        "parameter_invalid",
    ),
    (
        r#"{"starts_at": 1788307200}"#,
        "starts_at",
        "parameter_invalid",
    ),
    (
        r#"{"on_duplicate": "ignore"}"#,
        "on_duplicate",
        "parameter_invalid",
    ),
    (
        r#"{"enforcement": "off"}"#,
        "enforcement",
        "parameter_invalid",
    ),
    (r#"{"permissions": []}"#, "permissions", "parameter_invalid"),
    (
        r#"{"permissions": "charges:write"}"#,
        "permissions",
        "parameter_invalid",
    ),
    (
        r#"{"permissions": ["refunds:write"]}"#,
        "permissions[0]",
        "parameter_invalid",
    ),
    (
        r#"{"max_charge": {"usd": -1}}"#,
        "max_charge[usd]",
        "parameter_invalid_integer",
    ),
    (
        r#"{"refusal_status": 429}"#,
        "refusal_status",
        "parameter_invalid",
    ),
    (
        r#"{"refusal_status": "402"}"#,
        "refusal_status",
        "parameter_invalid",
    ),
    (
        r#"{"accounts": ["acct_1", "x"]}"#,
        "accounts[1]",
        "parameter_invalid",
    ),
    (
        r#"{"require_customer": "yes"}"#,
        "require_customer",
        "parameter_invalid",
    ),
    (
        r#"{"metadata": {"a": 1}}"#,
        "metadata[a]",
        "parameter_invalid",
    ),
    (r#"{"expire_at": 1}"#, "expire_at", "parameter_unknown"),
    (r#"{"id": "vk_mine"}"#, "id", "parameter_unknown"),
];

#[test]
fn every_bad_input_names_its_parameter() {
    for (changes, param, code) in BAD {
        let changes = serde_json::from_str(changes).unwrap();
        let error = key(&changes).unwrap_err();
        let named = (error.param.as_deref(), error.code);
        assert_eq!(named, (Some(*param), *code), "{changes}");
        assert!(!error.message.is_empty(), "{changes}");
    }
}

#[test]
fn an_unknown_permission_is_answered_with_the_known_ones() {
    let message = key(&json!({"permissions": ["charges"]}))
        .unwrap_err()
        .message;
    for permission in Permission::ALL {
        assert!(message.contains(permission.as_str()), "{message}");
    }
}
