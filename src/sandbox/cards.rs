//! Test cards and test customers: which charges succeed, wait or are declined.

use super::errors::ApiError;
use super::form::Param;

/// What the card network would say to a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Succeeds,
    /// Money arrives later, as with a bank debit: `status=pending`.
    Waits,
    Declined(Decline),
}

/// A decline, as it appears in the error and on the failed charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decline {
    pub(crate) code: &'static str,
    /// Stripe's `decline_code`.
    pub(crate) reason: Option<&'static str>,
    pub(crate) message: &'static str,
}

/// A plain `card_declined` with `generic_decline`.
pub(crate) const GENERIC_DECLINE: Decline = Decline {
    code: "card_declined",
    reason: Some("generic_decline"),
    message: "Your card was declined.",
};

/// Names after `tok_` or `pm_card_`, and what happens to them.
const DECLINES: [(&str, Decline); 9] = [
    ("chargeDeclined", GENERIC_DECLINE),
    (
        "chargeDeclinedInsufficientFunds",
        card_declined("insufficient_funds"),
    ),
    ("chargeDeclinedLostCard", card_declined("lost_card")),
    ("chargeDeclinedStolenCard", card_declined("stolen_card")),
    ("chargeDeclinedFraudulent", card_declined("fraudulent")),
    ("chargeCustomerFail", GENERIC_DECLINE),
    (
        "chargeDeclinedExpiredCard",
        plain("expired_card", "Your card has expired."),
    ),
    (
        "chargeDeclinedIncorrectCvc",
        plain("incorrect_cvc", "Your card's security code is incorrect."),
    ),
    (
        "chargeDeclinedProcessingError",
        plain(
            "processing_error",
            "An error occurred while processing your card. Try again in a little bit.",
        ),
    ),
];

/// Card numbers, for `source[number]`, and the name whose decline they share.
const DECLINED_NUMBERS: [(&str, &str); 6] = [
    ("4000000000000002", "chargeDeclined"),
    ("4000000000000341", "chargeCustomerFail"),
    ("4000000000009995", "chargeDeclinedInsufficientFunds"),
    ("4000000000000069", "chargeDeclinedExpiredCard"),
    ("4000000000000127", "chargeDeclinedIncorrectCvc"),
    ("4000000000000119", "chargeDeclinedProcessingError"),
];

/// Kinds of payment source a charge takes.
const SOURCE_PREFIXES: [&str; 6] = ["tok_", "pm_", "card_", "src_", "ba_", "acct_"];

/// Judges a charge by its source, then by its customer's id: `cus_decline…` is declined,
/// `cus_pending…` waits, everybody else pays.
///
/// # Errors
/// 400 where the source is nothing that could be charged.
pub(crate) fn judge(source: Option<&Param>, customer: Option<&str>) -> Result<Verdict, ApiError> {
    match source {
        Some(Param::Text(id)) => {
            if !SOURCE_PREFIXES.iter().any(|prefix| id.starts_with(prefix)) {
                return Err(ApiError::missing_param("token", id, "source"));
            }
            let name = id
                .strip_prefix("pm_card_")
                .or_else(|| id.strip_prefix("tok_"));
            if let Some(decline) = name.and_then(decline_named) {
                return Ok(Verdict::Declined(decline));
            }
        }
        Some(Param::Map(card)) => {
            let Some(Param::Text(number)) = card.get("number") else {
                return Err(super::params::missing("source[number]"));
            };
            let named = DECLINED_NUMBERS
                .iter()
                .find(|(declined, _)| declined == number);
            if let Some(decline) = named.and_then(|(_, name)| decline_named(name)) {
                return Ok(Verdict::Declined(decline));
            }
        }
        Some(Param::Nil | Param::List(_)) => {
            return Err(ApiError::invalid("Invalid source").param("source"));
        }
        None => {}
    }
    Ok(match customer {
        Some(id) if id.starts_with("cus_decline") => Verdict::Declined(GENERIC_DECLINE),
        Some(id) if id.starts_with("cus_pending") => Verdict::Waits,
        _ => Verdict::Succeeds,
    })
}

fn decline_named(name: &str) -> Option<Decline> {
    DECLINES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, decline)| *decline)
}

const fn card_declined(reason: &'static str) -> Decline {
    Decline {
        reason: Some(reason),
        ..GENERIC_DECLINE
    }
}

const fn plain(code: &'static str, message: &'static str) -> Decline {
    Decline {
        code,
        reason: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::form;

    #[test]
    fn sources_and_customers_decide() {
        let rows = [
            ("source=tok_visa", None, "ok"),
            ("source=pm_card_visa", Some("cus_1"), "ok"),
            ("", Some("cus_1"), "ok"),
            (
                "source=tok_chargeDeclined",
                None,
                "card_declined generic_decline",
            ),
            (
                "source=pm_card_chargeDeclined",
                None,
                "card_declined generic_decline",
            ),
            (
                "source=tok_chargeDeclinedInsufficientFunds",
                None,
                "card_declined insufficient_funds",
            ),
            (
                "source=tok_chargeDeclinedExpiredCard",
                None,
                "expired_card -",
            ),
            ("source[number]=4242424242424242", None, "ok"),
            (
                "source[number]=4000000000009995",
                None,
                "card_declined insufficient_funds",
            ),
            ("", Some("cus_decline_7"), "card_declined generic_decline"),
            ("", Some("cus_pending7"), "waits"),
            ("source=bogus", None, "refused"),
            ("source[cvc]=1", None, "refused"),
        ];
        for (params, customer, expected) in rows {
            let tree = form::parse(params).unwrap();
            let said = match judge(tree.get("source"), customer) {
                Ok(Verdict::Succeeds) => "ok".to_owned(),
                Ok(Verdict::Waits) => "waits".to_owned(),
                Ok(Verdict::Declined(d)) => {
                    format!("{} {}", d.code, d.reason.unwrap_or("-"))
                }
                Err(_) => "refused".to_owned(),
            };
            assert_eq!(said, expected, "{params} {customer:?}");
        }
    }
}
