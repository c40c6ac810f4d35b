//! Identifiers, each a type of its own so that one cannot be taken for another.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The text is not an id of the expected kind.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a valid id: expected {expected}")]
pub struct IdError {
    expected: &'static str,
}

/// The public id of a vault key, `vk_…`. Never the secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VaultKeyId(String);

impl VaultKeyId {
    const PREFIX: &'static str = "vk_";
    /// Longer than any id made here; a bound on what is looked up.
    const BYTES_MAX: usize = 64;

    /// The text with its prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VaultKeyId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let valid = text.strip_prefix(Self::PREFIX).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if valid && text.len() <= Self::BYTES_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError {
                expected: "vk_ and letters or digits",
            })
        }
    }
}

impl fmt::Display for VaultKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Crockford's base 32: sorts as the number does, and has no letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const NUMBER_CHARS: usize = 13;

fn write_number(f: &mut fmt::Formatter<'_>, prefix: &str, number: i64) -> fmt::Result {
    f.write_str(prefix)?;
    for index in (0..NUMBER_CHARS).rev() {
        let shift = u32::try_from(index).unwrap_or(0).saturating_mul(5);
        let digit = number.checked_shr(shift).unwrap_or(0) & 31;
        let letter = usize::try_from(digit)
            .ok()
            .and_then(|digit| ALPHABET.get(digit));
        write!(f, "{}", char::from(*letter.unwrap_or(&b'0')))?;
    }
    Ok(())
}

fn parse_number(text: &str, prefix: &'static str) -> Result<i64, IdError> {
    let error = IdError { expected: prefix };
    let Some(digits) = text.strip_prefix(prefix) else {
        return Err(error);
    };
    if digits.len() != NUMBER_CHARS {
        return Err(error);
    }
    let mut number: i64 = 0;
    for byte in digits.bytes() {
        let Some(digit) = ALPHABET.iter().position(|letter| *letter == byte) else {
            return Err(error);
        };
        let digit = i64::try_from(digit).unwrap_or(0);
        let Some(next) = number
            .checked_mul(32)
            .and_then(|shifted| shifted.checked_add(digit))
        else {
            return Err(error);
        };
        number = next;
    }
    Ok(number)
}

macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_number(f, $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_number(text, $prefix).map(Self)
            }
        }
    };
}

numbered_id!(
    /// The id of a reservation, shown as `rsv_…`; numbers rise with time within one ledger.
    ReservationId,
    "rsv_"
);
numbered_id!(
    /// The id of a flag, shown as `flag_…`.
    FlagId,
    "flag_"
);
numbered_id!(
    /// The id of an audit entry, shown as `aud_…`.
    AuditId,
    "aud_"
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vault_key_ids_are_plain() {
        assert!("vk_01h2x".parse::<VaultKeyId>().is_ok());
        for text in ["", "vk_", "vk-1", "sk_vault_1", "vk_a b", "vk_ü", "vk_a_b"] {
            assert!(text.parse::<VaultKeyId>().is_err(), "{text:?}");
        }
        assert!(
            format!("vk_{}", "a".repeat(62))
                .parse::<VaultKeyId>()
                .is_err()
        );
    }

    #[test]
    fn wrong_kinds_are_refused() {
        let shown = ReservationId(7).to_string();
        assert_eq!(shown, "rsv_0000000000007");
        assert!(shown.parse::<FlagId>().is_err());
        assert!(
            "rsv_zzzzzzzzzzzzz".parse::<ReservationId>().is_err(),
            "over 63 bits"
        );
        assert!("rsv_7".parse::<ReservationId>().is_err());
    }

    proptest! {
        #[test]
        fn numbers_round_trip_and_sort(a in 0..=i64::MAX, b in 0..=i64::MAX) {
            let (shown_a, shown_b) = (ReservationId(a).to_string(), ReservationId(b).to_string());
            prop_assert_eq!(shown_a.parse::<ReservationId>().unwrap(), ReservationId(a));
            prop_assert_eq!(a.cmp(&b), shown_a.cmp(&shown_b));
        }
    }
}
