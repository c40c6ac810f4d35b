use super::*;
use crate::domain::digest::Digest16;
use crate::domain::id::ReservationId;
use crate::domain::idempotency::Fingerprint;
use crate::domain::operation::MoneyOperation;
use crate::domain::reservation::SendState;

const SENT: UnixMs = UnixMs(1_785_600_000_000);

fn minor(amount: i64) -> AmountMinor {
    AmountMinor::new(amount).unwrap()
}

fn usd() -> Currency {
    Currency::parse("usd").unwrap()
}

/// A held create of 100 by `cus_1`, sent at [`SENT`] with two minutes for its answer.
pub(crate) fn held() -> Reservation {
    Reservation {
        id: ReservationId(7),
        version: 2,
        vault_key: "vk_one".parse().unwrap(),
        account: String::new(),
        namespace: "default".to_owned(),
        billing_period: "2026-08".to_owned(),
        customer: Some("cus_1".to_owned()),
        reference: String::new(),
        slot_claim: None,
        intent_claim: None,
        operation: MoneyOperation::ChargesCreate,
        currency: usd(),
        amount: minor(100),
        amount_reserved: minor(100),
        amount_settled: AmountMinor::ZERO,
        state: State::Held,
        object_id: None,
        send: SendState {
            operation: MoneyOperation::ChargesCreate,
            upstream_key: "k".to_owned(),
            fingerprint: Fingerprint(Digest16([1; 16])),
            sends: 1,
            unproven: 1,
            first_unproven_at: Some(SENT),
            forward_by: SENT.plus_ms(30_000),
            deadline: SENT.plus_ms(120_000),
        },
        attempt: 0,
        outcome_stored: false,
        server_error: false,
        amount_refunded: AmountMinor::ZERO,
        created_at: SENT,
        resolved_at: None,
    }
}

fn made() -> Candidate<'static> {
    Candidate {
        amount: minor(100),
        currency: usd(),
        customer: Some("cus_1"),
        created: Some(SENT.plus_ms(1000)),
    }
}

#[test]
fn an_object_is_the_rows_own_where_everything_agrees() {
    let eur = Currency::parse("eur").unwrap();
    let day_ms = 24 * 3_600_000;
    let window = window_of(&held());
    let at = |created| Candidate {
        created: Some(created),
        ..made()
    };
    for (candidate, wanted) in [
        (made(), Ok(())),
        (
            Candidate {
                amount: minor(101),
                ..made()
            },
            Err(Mismatch::Amount),
        ),
        (
            Candidate {
                currency: eur,
                ..made()
            },
            Err(Mismatch::Currency),
        ),
        (
            Candidate {
                customer: Some("cus_2"),
                ..made()
            },
            Err(Mismatch::Customer),
        ),
        (
            Candidate {
                customer: None,
                ..made()
            },
            Err(Mismatch::Customer),
        ),
        (
            Candidate {
                created: None,
                ..made()
            },
            Err(Mismatch::Time),
        ),
        (at(window.from), Ok(())),
        (at(window.from.plus_ms(-1)), Err(Mismatch::Time)),
        (at(window.to.plus_ms(day_ms)), Ok(())),
        (at(window.to.plus_ms(day_ms + 1)), Err(Mismatch::Time)),
    ] {
        assert_eq!(check_made_by(&held(), &candidate), wanted, "{candidate:?}");
    }
    let nobodys = Reservation {
        customer: None,
        ..held()
    };
    assert_eq!(
        check_made_by(&nobodys, &made()),
        Err(Mismatch::Customer),
        "a row without a customer made no charge of one"
    );
}

#[test]
fn windows_that_touch_are_read_once() {
    let window = |from, to| Window {
        from: UnixMs(from),
        to: UnixMs(to),
    };
    let merged = merged([
        window(50, 60),
        window(1, 10),
        window(10, 12),
        window(3, 4),
        window(61, 70),
    ]);
    assert_eq!(merged, [window(61, 70), window(50, 60), window(1, 12)]);
    assert_eq!(super::merged([]), []);
}

#[test]
fn only_lost_answers_of_creates_are_sought() {
    assert!(is_sought(&held()));
    for other in [
        Reservation {
            state: State::Open,
            ..held()
        },
        Reservation {
            object_id: Some("ch_1".to_owned()),
            ..held()
        },
        Reservation {
            operation: MoneyOperation::ChargesCapture,
            ..held()
        },
    ] {
        assert!(!is_sought(&other), "{other:?}");
    }
}
