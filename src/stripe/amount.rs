//! Amounts and currencies as Stripe's parameters spell them (contract §5.2, §5.3).

use super::parameter::{ParameterCode, bad, echo};
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::refusal::BadParameter;

/// The outer bound over all currencies (contract §5.3): 14 digits.
const DIGITS_MAX: usize = 14;

/// Reads `^[1-9][0-9]{0,13}$`. Whether Stripe takes `+100`, `0100` or `1_000` is not known, so those
/// are refused in Stripe's own words.
pub fn parse_amount(param: &str, text: &str) -> Result<AmountMinor, BadParameter> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let bounded = (1..=DIGITS_MAX).contains(&text.len()) && !text.starts_with('0');
    (digits && bounded)
        .then(|| text.parse().ok())
        .flatten()
        .and_then(AmountMinor::new)
        .ok_or_else(|| {
            let message = format!(
                "Invalid integer: {}. Send a positive whole number of minor units, digits only, \
                 at most {DIGITS_MAX} of them.",
                echo(text)
            );
            bad(ParameterCode::InvalidInteger, param, message)
        })
}

/// Reads a currency code of any case.
pub fn parse_currency(param: &str, text: &str) -> Result<Currency, BadParameter> {
    Currency::parse(text).map_err(|error| {
        let message = format!("Invalid currency: {}: {error}.", echo(text));
        bad(ParameterCode::ChargeInvalid, param, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_plain_positive_integers() {
        for (text, amount) in [
            ("1", 1),
            ("100", 100),
            ("9900", 9_900),
            ("99999999999999", 99_999_999_999_999),
        ] {
            assert_eq!(
                parse_amount("amount", text).map(AmountMinor::get),
                Ok(amount)
            );
        }
    }

    #[test]
    fn anything_else_is_an_invalid_integer() {
        for text in [
            "",
            "0",
            "00",
            "01",
            "0100",
            "010",
            "-1",
            "+100",
            " 100",
            "100 ",
            "1_000",
            "0x10",
            "1e3",
            "1.0038e+06",
            "9175.2",
            "1.09",
            "100.0",
            "100.5",
            "1,000",
            "１００",
            "NaN",
            "100000000000000",
            "99999999999999999999",
            "100\n",
            "null",
        ] {
            let error = parse_amount("amount", text).unwrap_err();
            assert_eq!(error.code.as_str(), "parameter_invalid_integer", "{text:?}");
            assert_eq!(error.param.as_deref(), Some("amount"));
            let start = format!("Invalid integer: {}", echo(text));
            assert!(error.message.starts_with(&start), "{}", error.message);
        }
    }

    #[test]
    fn currencies_name_their_parameter() {
        assert_eq!(parse_currency("currency", "JPY").unwrap().as_str(), "jpy");
        for text in ["", "us", "usd ", "u$d", "dollar"] {
            let error = parse_currency("currency", text).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("currency"), "{text:?}");
        }
    }
}
