//! A cap: how much one vault key may spend in one currency.

use std::fmt;

use thiserror::Error;

use super::money::{AmountMinor, Currency, Money};

/// How far above the expected total a cap may go: a decimal such as `1.10`, kept in millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Headroom {
    millionths: u32,
}

/// The text is not a headroom.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("headroom is a decimal from 1 to 10 with at most 6 places, such as \"1.10\"")]
pub struct HeadroomError(());

const MILLION: u32 = 1_000_000;

impl Headroom {
    /// Ten percent, for what the forecast missed.
    pub const DEFAULT: Self = Self {
        millionths: 1_100_000,
    };

    /// Reads `1.10`. Bounded to 1..=10, so that `110` for ten percent is a mistake and not a cap.
    pub fn parse(text: &str) -> Result<Self, HeadroomError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let dangling_point = text.ends_with('.');
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 2 || fraction.len() > 6 || dangling_point {
            return Err(HeadroomError(()));
        }
        if !digits(whole) || !digits(fraction) {
            return Err(HeadroomError(()));
        }
        let whole: u32 = whole.parse().map_err(|_| HeadroomError(()))?;
        let fraction: u32 = format!("{fraction:0<6}")
            .parse()
            .map_err(|_| HeadroomError(()))?;
        let millionths = whole
            .checked_mul(MILLION)
            .and_then(|whole| whole.checked_add(fraction))
            .ok_or(HeadroomError(()))?;
        Self::from_millionths(millionths)
    }

    /// Reads the stored form; the same bounds as [`Headroom::parse`].
    pub fn from_millionths(millionths: u32) -> Result<Self, HeadroomError> {
        if (MILLION..=MILLION.saturating_mul(10)).contains(&millionths) {
            Ok(Self { millionths })
        } else {
            Err(HeadroomError(()))
        }
    }

    /// The stored form.
    pub const fn millionths(self) -> u32 {
        self.millionths
    }

    /// `floor(expected_total × headroom)`; `None` where that does not fit an amount.
    pub fn max_amount(self, expected_total: AmountMinor) -> Option<AmountMinor> {
        let product = i128::from(expected_total.get()).checked_mul(i128::from(self.millionths))?;
        let floor = product.checked_div(i128::from(MILLION))?;
        AmountMinor::new(i64::try_from(floor).ok()?)
    }
}

impl fmt::Display for Headroom {
    /// At least two places: `1.10`, `1.00`, `1.125`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.millionths.checked_div(MILLION).unwrap_or(0);
        let fraction = format!("{:06}", self.millionths.checked_rem(MILLION).unwrap_or(0));
        write!(f, "{whole}.{:0<2}", fraction.trim_end_matches('0'))
    }
}

/// What one vault key may spend in one currency, and how much of it is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cap {
    /// The currency; one cap per vault key and currency.
    pub currency: Currency,
    /// What the operator expects the run to bill.
    pub expected_total: AmountMinor,
    /// The cap itself: `floor(expected_total × headroom)`.
    pub max_amount: AmountMinor,
    /// Sum of `amount_reserved` over the cap's reservations.
    pub reserved: AmountMinor,
    /// Sum of `amount_settled` over the cap's reservations.
    pub settled: AmountMinor,
}

impl Cap {
    /// A cap of which nothing is used.
    pub const fn fresh(
        currency: Currency,
        expected_total: AmountMinor,
        max_amount: AmountMinor,
    ) -> Self {
        let (reserved, settled) = (AmountMinor::ZERO, AmountMinor::ZERO);
        Self {
            currency,
            expected_total,
            max_amount,
            reserved,
            settled,
        }
    }

    /// Reserved and settled together.
    #[must_use]
    pub const fn used(&self) -> AmountMinor {
        self.reserved.saturating_add(self.settled)
    }

    /// What may still be reserved.
    #[must_use]
    pub const fn remaining(&self) -> AmountMinor {
        self.max_amount.saturating_sub(self.used())
    }

    /// True where `amount` more still fits under the cap.
    pub fn admits(&self, amount: AmountMinor) -> bool {
        self.used()
            .checked_add(amount)
            .is_some_and(|sum| sum <= self.max_amount)
    }

    /// The cap as money, for messages.
    pub const fn max(&self) -> Money {
        Money {
            amount: self.max_amount,
            currency: self.currency,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(minor: i64) -> AmountMinor {
        AmountMinor::new(minor).unwrap()
    }

    #[test]
    fn max_amount_is_the_floor() {
        for (expected, headroom, max) in [
            (99, "1.10", Some(108)),
            (0, "1.10", Some(0)),
            (1, "1.10", Some(1)),
            (4_950_000, "1.10", Some(5_445_000)),
            (100, "1", Some(100)),
            (100, "1.005", Some(100)),
            (1000, "1.005", Some(1005)),
            (i64::MAX, "1", Some(i64::MAX)),
            (i64::MAX, "1.000001", None),
        ] {
            let headroom = Headroom::parse(headroom).unwrap();
            assert_eq!(
                headroom.max_amount(amount(expected)).map(AmountMinor::get),
                max
            );
        }
    }

    #[test]
    fn headroom_is_a_plain_decimal_within_bounds() {
        for (text, shown) in [
            ("1", "1.00"),
            ("1.1", "1.10"),
            ("1.125", "1.125"),
            ("10", "10.00"),
        ] {
            assert_eq!(Headroom::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "0.9",
            "110",
            "1.",
            ".5",
            "1,1",
            "1e1",
            "-1",
            "+1",
            "1.1234567",
            "10.01",
        ] {
            assert!(Headroom::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn max_amount_lies_between_the_expected_total_and_ten_times_it(
            expected in 0..=i64::MAX, millionths in MILLION..=10 * MILLION,
        ) {
            let headroom = Headroom::from_millionths(millionths).unwrap();
            if let Some(max) = headroom.max_amount(amount(expected)) {
                let exact = i128::from(expected) * i128::from(millionths);
                prop_assert!(max.get() >= expected);
                prop_assert!(i128::from(max.get()) * 1_000_000 <= exact);
                prop_assert!((i128::from(max.get()) + 1) * 1_000_000 > exact);
            }
        }

        #[test]
        fn a_cap_admits_exactly_what_remains(max in 0..=i64::MAX, used in 0..=i64::MAX) {
            let mut cap = Cap::fresh(Currency::parse("usd").unwrap(), amount(max), amount(max));
            cap.settled = amount(used);
            let remaining = cap.remaining();
            prop_assert_eq!(cap.admits(remaining), used <= max);
            if let Some(more) = remaining.checked_add(amount(1)) {
                prop_assert!(!cap.admits(more));
            }
        }
    }
}
