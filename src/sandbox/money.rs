//! Currencies and amounts as Stripe bounds them (contract §5.2, §5.3).

use super::errors::ApiError;

/// Eight digits in general (contract §5.3).
const AMOUNT_MAX: i64 = 99_999_999;
/// Currencies that take larger amounts: the digits are the contract's, 14 its outer bound.
const LARGE_AMOUNTS: [(&str, i64); 6] = [
    ("idr", 999_999_999_999),
    ("inr", 999_999_999),
    ("lbp", 99_999_999_999_999),
    ("cop", 99_999_999_999_999),
    ("huf", 99_999_999_999_999),
    ("jpy", 99_999_999_999_999),
];

/// Reads a currency code; upper case is forgiven.
pub(crate) fn currency(text: &str) -> Result<String, ApiError> {
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(ApiError::invalid(format!("Invalid currency: {text}.")).param("currency"))
}

/// Refuses an amount below 1 or above what the currency takes.
pub(crate) fn check_amount(amount: i64, currency: &str) -> Result<(), ApiError> {
    if amount < 1 {
        let message = "This value must be greater than or equal to 1.";
        return Err(ApiError::invalid(message)
            .code("amount_too_small")
            .param("amount"));
    }
    let large = LARGE_AMOUNTS.iter().find(|(code, _)| *code == currency);
    let max = large.map_or(AMOUNT_MAX, |(_, max)| *max);
    if amount > max {
        let message = format!("Amount must be no more than {max} in {currency}'s minor unit.");
        return Err(ApiError::invalid(message)
            .code("amount_too_large")
            .param("amount"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bounded_per_currency() {
        let rows = [
            (0, "usd", false),
            (-1, "usd", false),
            (1, "usd", true),
            (99_999_999, "usd", true),
            (100_000_000, "usd", false),
            (100_000_000, "jpy", true),
            (999_999_999_999, "idr", true),
            (1_000_000_000_000, "idr", false),
        ];
        for (amount, currency, accepted) in rows {
            assert_eq!(
                check_amount(amount, currency).is_ok(),
                accepted,
                "{amount} {currency}"
            );
        }
    }

    #[test]
    fn currencies_are_three_letters() {
        assert_eq!(currency("USD").unwrap(), "usd");
        for text in ["us", "usdd", "u$d", ""] {
            assert!(currency(text).is_err(), "{text}");
        }
    }
}
