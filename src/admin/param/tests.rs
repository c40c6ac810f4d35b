use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn amounts_are_json_integers_and_nothing_else() {
    for (value, minor) in [(json!(0), 0), (json!(1), 1), (json!(i64::MAX), i64::MAX)] {
        assert_eq!(amount("amount", &value).map(AmountMinor::get), Ok(minor));
    }
    for text in [
        "null",
        "true",
        "\"100\"",
        "-1",
        "-0",
        "1.0",
        "1.5",
        "1e3",
        "9223372036854775808",
        "18446744073709551616",
        "[1]",
        "{}",
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        let error = amount("expected_total", &value).unwrap_err();
        assert_eq!(error.code, "parameter_invalid_integer", "{text}");
        assert_eq!(error.param.as_deref(), Some("expected_total"), "{text}");
    }
}

#[test]
fn maps_of_amounts_name_the_currency_that_is_wrong() {
    let both = amounts("expected_totals", &json!({"usd": 1, "JPY": 2})).unwrap();
    assert_eq!(both.len(), 2);
    for (value, param, code) in [
        (json!([]), "expected_totals", INVALID),
        (json!({"usd": "1"}), "expected_totals[usd]", INVALID_INTEGER),
        (
            json!({"usd": null}),
            "expected_totals[usd]",
            INVALID_INTEGER,
        ),
        (json!({"us": 1}), "expected_totals[us]", INVALID),
        (json!({"usd": 1, "USD": 1}), "expected_totals[usd]", INVALID),
    ] {
        let error = amounts("expected_totals", &value).unwrap_err();
        assert_eq!(
            (error.param.as_deref(), error.code),
            (Some(param), code),
            "{value}"
        );
    }
}

#[test]
fn times_are_unix_seconds_or_have_an_offset() {
    for (value, seconds) in [
        (json!(1_788_220_800), 1_788_220_800),
        (json!("2026-09-01T00:00:00Z"), 1_788_220_800),
        (json!("2026-09-01T02:00:00+02:00"), 1_788_220_800),
        (json!("2026-08-31T20:00:00-04:00"), 1_788_220_800),
    ] {
        assert_eq!(
            time("expires_at", &value),
            Ok(UnixMs::from_unix_seconds(seconds)),
            "{value}"
        );
    }
    for value in [
        json!("2026-09-01T00:00:00"),
        json!("2026-09-01"),
        json!("2026-09-01 00:00"),
        json!("1788220800"),
        json!("tomorrow"),
        json!(""),
        json!(-1),
        json!(1.5),
        json!(i64::MAX),
        json!(null),
        json!("1960-01-01T00:00:00Z"),
    ] {
        let error = time("expires_at", &value).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("expires_at"), "{value}");
    }
}

#[test]
fn labels_are_short_and_plain() {
    for text in ["2026-08", "a", "A.b_c-1", &"x".repeat(64)] {
        assert!(label("billing_period", &json!(text)).is_ok(), "{text}");
    }
    for text in ["", "2026:08", "2026/08", "a b", "ü", "a\n", &"x".repeat(65)] {
        assert!(label("billing_period", &json!(text)).is_err(), "{text:?}");
    }
}

#[test]
fn reasons_are_one_line_of_words() {
    assert_eq!(
        reason("reason", &json!("  INC-4411 ")),
        Ok("INC-4411".to_owned())
    );
    assert!(reason("reason", &json!("ü".repeat(500))).is_ok());
    for (value, code) in [
        (json!(""), INVALID_EMPTY),
        (json!("  "), INVALID_EMPTY),
        (json!("a\nb"), INVALID),
        (json!("x".repeat(501)), INVALID),
        (json!(4411), INVALID),
        (json!(null), INVALID),
    ] {
        assert_eq!(reason("reason", &value).unwrap_err().code, code, "{value}");
    }
}

#[test]
fn lists_accounts_objects_and_metadata_are_bounded() {
    assert!(list("accounts", &json!(["acct_1", "acct_2"]), account).is_ok());
    for value in [
        json!("acct_1"),
        json!(["acct_1", "acct_1"]),
        json!(["acct_"]),
        json!(["cus_1"]),
        json!(["acct_1\r\n"]),
        json!(vec!["acct_1"; LIST_MAX + 1]),
    ] {
        assert!(list("accounts", &value, account).is_err(), "{value}");
    }
    assert!(object_id("object_id", &json!("ch_1")).is_ok());
    for text in ["", "ch 1", "ch_1/capture", &"c".repeat(256)] {
        assert!(object_id("object_id", &json!(text)).is_err(), "{text:?}");
    }
    assert!(metadata("metadata", &json!({"k": "v"})).is_ok());
    let too_many: BTreeMap<String, &str> = (0..51).map(|n| (n.to_string(), "v")).collect();
    for value in [
        json!({"k": 1}),
        json!({"": "v"}),
        json!({"k".repeat(41): "v"}),
        json!({"k": "v".repeat(501)}),
        json!(too_many),
        json!([]),
    ] {
        assert!(metadata("metadata", &value).is_err(), "{value}");
    }
}

#[test]
fn errors_repeat_little_of_what_was_sent() {
    let error = label(
        "billing_period",
        &json!(format!("\u{1b}[31m{}", "x".repeat(10_000))),
    );
    let message = error.unwrap_err().message;
    assert!(
        message.len() < 300 && !message.contains('\u{1b}'),
        "{message}"
    );
}

proptest! {
    #[test]
    fn every_amount_is_read_as_it_is_written(minor in 0..=i64::MAX) {
        prop_assert_eq!(amount("amount", &json!(minor)).map(AmountMinor::get), Ok(minor));
    }

    #[test]
    fn no_other_number_is_an_amount(number in any::<f64>()) {
        prop_assert!(amount("amount", &json!(number)).is_err());
    }
}
