//! Money: integers in a currency's minor unit. Never a float, never converted.

use std::fmt;

use thiserror::Error;

/// An ISO 4217 code as Stripe writes it: three lower-case ASCII letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// The text is not a currency code.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a currency is three ASCII letters such as usd")]
pub struct CurrencyError(());

impl Currency {
    /// Reads three ASCII letters in any case (contract §5.3: lower case on the wire, normalised for
    /// accounting).
    pub fn parse(text: &str) -> Result<Self, CurrencyError> {
        let bytes: [u8; 3] = text.as_bytes().try_into().map_err(|_| CurrencyError(()))?;
        if bytes.iter().all(u8::is_ascii_alphabetic) {
            Ok(Self(bytes.map(|byte| byte.to_ascii_lowercase())))
        } else {
            Err(CurrencyError(()))
        }
    }

    /// The code in lower case.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount in minor units: zero or more, at most `i64::MAX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AmountMinor(i64);

impl AmountMinor {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `None` for a negative number.
    pub const fn new(minor: i64) -> Option<Self> {
        if minor < 0 { None } else { Some(Self(minor)) }
    }

    /// The number of minor units, zero or more.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// True for nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `None` where the sum does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// `None` where `other` is the larger.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(rest) if rest >= 0 => Some(Self(rest)),
            _ => None,
        }
    }

    /// The sum, or the largest amount where it does not fit: only for comparing against a bound.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left, or nothing where `other` is the larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        match self.checked_sub(other) {
            Some(rest) => rest,
            None => Self::ZERO,
        }
    }
}

impl fmt::Display for AmountMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for AmountMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An amount and its currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Money {
    /// How much, in minor units.
    pub amount: AmountMinor,
    /// Of what.
    pub currency: Currency,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currencies_are_three_letters_in_lower_case() {
        for (text, code) in [
            ("usd", Some("usd")),
            ("JPY", Some("jpy")),
            ("kWd", Some("kwd")),
        ] {
            assert_eq!(
                Currency::parse(text).ok().as_ref().map(Currency::as_str),
                code
            );
        }
        for text in ["", "us", "usdd", "u d", "ü1", "12a", "us\0"] {
            assert!(Currency::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn amounts_never_go_below_zero_or_wrap() {
        let one = AmountMinor::new(1).unwrap();
        let most = AmountMinor::new(i64::MAX).unwrap();
        assert_eq!(AmountMinor::new(-1), None);
        assert_eq!(most.checked_add(one), None);
        assert_eq!(AmountMinor::ZERO.checked_sub(one), None);
        assert_eq!(most.saturating_add(one), most);
        assert_eq!(AmountMinor::ZERO.saturating_sub(one), AmountMinor::ZERO);
    }
}
