//! Amounts for people: minor units, and what they are in the currency's own unit.

use std::fmt;

/// Currencies without a minor unit (contract §5.3). UGX and ISK are written with two decimals.
const ZERO_DECIMAL: [&str; 15] = [
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf",
    "xof", "xpf",
];

/// Currencies in thousandths (contract §5.3).
const THREE_DECIMAL: [&str; 5] = ["bhd", "jod", "kwd", "omr", "tnd"];

/// An amount as a table shows it: `5445000 (54,450.00 USD)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) amount_minor: i64,
    pub(super) currency: &'a str,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = decimals(self.currency);
        let digits = self.amount_minor.unsigned_abs().to_string();
        let digits = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let sign = if self.amount_minor < 0 { "-" } else { "" };
        write!(f, "{} ({sign}{}", self.amount_minor, grouped(whole))?;
        if !fraction.is_empty() {
            write!(f, ".{fraction}")?;
        }
        write!(f, " {})", self.currency.to_uppercase())
    }
}

fn decimals(currency: &str) -> usize {
    if ZERO_DECIMAL.contains(&currency) {
        0
    } else if THREE_DECIMAL.contains(&currency) {
        3
    } else {
        2
    }
}

/// `5445000` as `5,445,000`.
pub(super) fn grouped(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_both_units() {
        for (amount_minor, currency, shown) in [
            (5_445_000, "usd", "5445000 (54,450.00 USD)"),
            (0, "usd", "0 (0.00 USD)"),
            (7, "eur", "7 (0.07 EUR)"),
            (99, "jpy", "99 (99 JPY)"),
            (1_234_567, "jpy", "1234567 (1,234,567 JPY)"),
            (12_340, "kwd", "12340 (12.340 KWD)"),
            (500, "isk", "500 (5.00 ISK)"),
            (-150, "usd", "-150 (-1.50 USD)"),
            (
                i64::MAX,
                "usd",
                "9223372036854775807 (92,233,720,368,547,758.07 USD)",
            ),
        ] {
            assert_eq!(
                Shown {
                    amount_minor,
                    currency
                }
                .to_string(),
                shown
            );
        }
    }
}
