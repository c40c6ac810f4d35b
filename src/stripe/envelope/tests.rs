use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::operation::Permission;
use crate::domain::refusal::{BadParameter, CapReached, ParameterCode};
use crate::domain::time::UnixMs;

fn amount(minor: i64) -> AmountMinor {
    AmountMinor::new(minor).unwrap()
}

fn usd() -> Currency {
    Currency::parse("usd").unwrap()
}

fn reached(status: RefusalStatus) -> Refusal {
    Refusal::SpendCapReached(CapReached {
        max_amount: amount(5_445_000),
        used: amount(5_440_000),
        asked: amount(9_900),
        currency: usd(),
        status,
    })
}

fn limit(status: RefusalStatus) -> Refusal {
    Refusal::ChargeLimitExceeded {
        max_charge: amount(1_200_000),
        asked: amount(1_200_001),
        currency: usd(),
        status,
    }
}

fn expired(expired_at: UnixMs) -> Refusal {
    Refusal::VaultKeyExpired { expired_at }
}

fn not_yet(starts_at: UnixMs) -> Refusal {
    Refusal::VaultKeyNotYetValid { starts_at }
}

fn not_permitted(missing: Option<Permission>) -> Refusal {
    Refusal::OperationNotPermitted { missing }
}

fn unknown(retryable: bool) -> Refusal {
    Refusal::OutcomeUnknown { retryable }
}

fn parameter() -> Refusal {
    Refusal::BadParameter(BadParameter {
        code: ParameterCode::InvalidInteger,
        param: Some("amount".to_owned()),
        message: "Invalid integer: 1e3".to_owned(),
    })
}

/// The rows of design §4 that are the client's to mend: `invalid_request_error`, never retried.
fn mend() -> Vec<(Refusal, u16, &'static str)> {
    use Refusal as R;
    let at = UnixMs::from_unix_seconds(1_788_307_200);
    let missing = Some(Permission::EventsRead);
    let charge = "ch_1".to_owned();
    let (paid, denied) = (RefusalStatus::PaymentRequired, RefusalStatus::Forbidden);
    let currency = usd();
    let bytes_max = 1_048_576;
    vec![
        (R::VaultKeyInvalid, 401, "vault_key_invalid"),
        (R::VaultKeyRevoked, 401, "vault_key_revoked"),
        (expired(at), 401, "vault_key_expired"),
        (not_yet(at), 401, "vault_key_not_yet_valid"),
        (R::VaultKeyStopped, 403, "vault_key_stopped"),
        (not_permitted(None), 403, "operation_not_permitted"),
        (not_permitted(missing), 403, "operation_not_permitted"),
        (R::AccountNotPermitted, 403, "account_not_permitted"),
        (parameter(), 400, "parameter_invalid_integer"),
        (
            R::CurrencyNotAllowed { currency },
            400,
            "currency_not_allowed",
        ),
        (R::CustomerRequired, 400, "customer_required"),
        (reached(paid), 402, "spend_cap_reached"),
        (reached(denied), 403, "spend_cap_reached"),
        (limit(paid), 402, "charge_limit_exceeded"),
        (limit(denied), 403, "charge_limit_exceeded"),
        (unknown(false), 409, "outcome_unknown"),
        (
            R::ChargeAlreadyCaptured {
                charge: charge.clone(),
            },
            400,
            "charge_already_captured",
        ),
        (R::NoSuchCharge { charge }, 404, "resource_missing"),
        (R::RequestTooLarge { bytes_max }, 413, "request_too_large"),
    ]
}

/// The others: refusal, status, type, code, retry.
fn others() -> Vec<Line> {
    use Refusal as R;
    let existing = "ch_1".to_owned();
    let key = "KEY".to_owned();
    let (invalid, idempotency) = ("invalid_request_error", "idempotency_error");
    let api = |refusal, status, code| (refusal, status, "api_error", Some(code), "true");
    let duplicate = Some("duplicate_customer_period");
    let in_use = Some("idempotency_key_in_use");
    let unknown_code = Some("outcome_unknown");
    vec![
        (
            R::DuplicateCustomerPeriod { existing },
            400,
            idempotency,
            duplicate,
            "false",
        ),
        (
            R::IdempotencyKeyReused { key },
            400,
            idempotency,
            None,
            "false",
        ),
        (R::IdempotencyKeyInUse, 409, invalid, in_use, "true"),
        (unknown(true), 409, invalid, unknown_code, "true"),
        api(R::LedgerUnavailable, 503, "ledger_unavailable"),
        api(R::LedgerLostCommits, 503, "ledger_lost_commits"),
        api(R::Overloaded, 503, "overloaded"),
        api(R::UpstreamUnhealthy, 503, "upstream_unhealthy"),
        api(R::UpstreamUnreachable, 502, "upstream_unreachable"),
        api(R::UpstreamFailed, 502, "upstream_failed"),
        api(R::NoAnswer, 504, "outcome_unknown"),
    ]
}

type Line = (
    Refusal,
    u16,
    &'static str,
    Option<&'static str>,
    &'static str,
);

fn table() -> Vec<Line> {
    let mend = mend().into_iter();
    let invalid = "invalid_request_error";
    mend.map(|(refusal, status, code)| (refusal, status, invalid, Some(code), "false"))
        .chain(others())
        .collect()
}

#[test]
fn every_refusal_has_its_row() {
    for (refusal, status, error_type, code, retry) in table() {
        let answer = answer(&refusal);
        let found = (answer.status.as_u16(), answer.error_type, answer.code);
        assert_eq!(found, (status, error_type, code), "{refusal:?}");
        assert_eq!(answer.should_retry.as_str(), retry, "{refusal:?}");
    }
}

/// A refusal that is new has no place here, and then none in the table either.
const fn place(refusal: &Refusal) -> usize {
    use Refusal as R;
    match refusal {
        R::VaultKeyInvalid => 0,
        R::VaultKeyRevoked => 1,
        R::VaultKeyExpired { .. } => 2,
        R::VaultKeyNotYetValid { .. } => 3,
        R::VaultKeyStopped => 4,
        R::OperationNotPermitted { .. } => 5,
        R::AccountNotPermitted => 6,
        R::BadParameter(_) => 7,
        R::CurrencyNotAllowed { .. } => 8,
        R::CustomerRequired => 9,
        R::SpendCapReached(_) => 10,
        R::ChargeLimitExceeded { .. } => 11,
        R::DuplicateCustomerPeriod { .. } => 12,
        R::IdempotencyKeyReused { .. } => 13,
        R::IdempotencyKeyInUse => 14,
        R::OutcomeUnknown { .. } => 15,
        R::ChargeAlreadyCaptured { .. } => 16,
        R::NoSuchCharge { .. } => 17,
        R::RequestTooLarge { .. } => 18,
        R::LedgerUnavailable => 19,
        R::Overloaded => 20,
        R::UpstreamUnhealthy => 21,
        R::UpstreamUnreachable => 22,
        R::UpstreamFailed => 23,
        R::NoAnswer => 24,
        R::LedgerLostCommits => 25,
    }
}

#[test]
fn the_list_of_codes_is_that_of_the_refusals() {
    let table = table();
    let places: BTreeSet<usize> = table.iter().map(|(refusal, ..)| place(refusal)).collect();
    assert_eq!(places, (0..26).collect(), "each has its row in the table");
    let of_refusals = table.iter().map(|(refusal, ..)| answer(refusal).label());
    let of_parameters = ParameterCode::ALL.into_iter().map(|code| {
        let bad = BadParameter {
            code,
            param: None,
            message: String::new(),
        };
        answer(&bad.into()).label()
    });
    let carried: BTreeSet<&str> = of_refusals.chain(of_parameters).collect();
    assert_eq!(codes().collect::<BTreeSet<_>>(), carried);
    assert_eq!(codes().count(), carried.len(), "each once");
}

#[test]
fn every_body_is_stripes_envelope_and_never_a_decline() {
    for (refusal, ..) in table() {
        let answer = answer(&refusal);
        let body: Value = serde_json::from_str(&answer.body()).unwrap();
        let error = body["error"].as_object().unwrap();
        assert_eq!(error["type"], answer.error_type);
        assert_eq!(error.get("code").and_then(Value::as_str), answer.code);
        assert_eq!(
            error.get("param").and_then(Value::as_str),
            answer.param.as_deref()
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.len() > 20 || refusal == parameter(), "{refusal:?}");
        assert!(!message.contains("  "), "{message}");
        assert!(error.values().all(|value| !value.is_null()));
        assert_ne!(error["type"], "card_error");
        assert!(!error.contains_key("decline_code"));
    }
}

#[test]
fn the_numbers_and_names_are_told() {
    let say = |refusal: &Refusal| answer(refusal).message;
    let cap = say(&reached(RefusalStatus::PaymentRequired));
    for part in [
        "cap 5445000 usd",
        "used 5440000 usd",
        "asked 9900 usd",
        "left 5000 usd",
    ] {
        assert!(cap.contains(part), "{cap}");
    }
    let limit = say(&limit(RefusalStatus::PaymentRequired));
    assert!(
        limit.contains("1200000 usd") && limit.contains("1200001 usd"),
        "{limit}"
    );
    let duplicate = say(&Refusal::DuplicateCustomerPeriod {
        existing: "ch_77".to_owned(),
    });
    assert!(duplicate.contains("ch_77") && duplicate.contains("Spendcap-Reference"));
    let at = UnixMs::from_unix_seconds(1_788_307_200);
    let expired = say(&Refusal::VaultKeyExpired { expired_at: at });
    assert!(expired.contains("2026-09-02T00:00:00Z"), "{expired}");
    let far = say(&Refusal::VaultKeyExpired {
        expired_at: UnixMs(i64::MAX),
    });
    assert!(far.contains("ms"), "{far}");
    let missing = Some(Permission::EventsRead);
    assert!(say(&Refusal::OperationNotPermitted { missing }).contains("events:read"));
    let too_large = say(&Refusal::RequestTooLarge { bytes_max: 4_096 });
    assert!(too_large.contains("4096 bytes"));
}

#[test]
fn a_reused_key_is_told_in_stripes_words() {
    let key = "KEY".to_owned();
    let answer = answer(&Refusal::IdempotencyKeyReused { key });
    let body: Value = serde_json::from_str(&answer.body()).unwrap();
    let message = "Keys for idempotent requests can only be used with the same parameters they \
                   were first used with. Try using a key other than 'KEY' if you meant to execute \
                   a different request.";
    let expected = json!({"error": {"type": "idempotency_error", "message": message}});
    assert_eq!(body, expected);
}

#[test]
fn a_request_id_looks_like_stripes() {
    let id = request_id(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
    assert_eq!(id, "req_01900000000070008000000000000001");
}

#[test]
fn a_response_is_whole() {
    let uuid = Uuid::from_u128(7);
    let response = answer(&Refusal::VaultKeyInvalid).response(uuid);
    let header = |name: &str| response.headers()[name].to_str().unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("stripe-should-retry"), "false");
    assert_eq!(header("request-id"), request_id(uuid));
    assert!(header("www-authenticate").starts_with("Basic"));
    let response = answer(&Refusal::NoAnswer).response(uuid);
    assert_eq!(response.headers()["stripe-should-retry"], "true");
    assert!(!response.headers().contains_key("www-authenticate"));
}
