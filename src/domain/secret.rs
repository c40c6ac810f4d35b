//! The secret of a vault key: `sk_vault_`, 192 random bits, a checksum.
//!
//! **Invariant:** a [`VaultSecret`] is well-formed, so a mistyped or foreign key never reaches the
//! ledger, and its text leaves only through [`VaultSecret::reveal`].

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// What a billing service presents instead of the real Stripe key.
pub struct VaultSecret(SecretString);

/// The text is not a vault key. It does not repeat the text.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a vault key: sk_vault_ and 45 letters and digits are expected, copied whole")]
pub struct SecretError(());

/// SDKs and tools take a key that starts `sk_` (contract §4.2).
const PREFIX: &str = "sk_vault_";
/// Crockford's base 32: no letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 192 bits in fives.
const RANDOM_CHARS: usize = 39;
/// 30 bits: one mistyped key in a thousand million passes.
const CHECKSUM_CHARS: usize = 6;
/// How much of a key people see.
const HINT_CHARS: usize = 4;

impl VaultSecret {
    /// Makes a secret of 24 random bytes, which the caller draws from the system.
    pub fn from_entropy(entropy: [u8; 24]) -> Self {
        let random = base32(&entropy, RANDOM_CHARS);
        let checksum = checksum(&random);
        Self(SecretString::from(format!("{PREFIX}{random}{checksum}")))
    }

    /// Reads a presented key: prefix, length, alphabet and checksum.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let body = text.strip_prefix(PREFIX).ok_or(SecretError(()))?;
        let (random, sum) = body.split_at_checked(RANDOM_CHARS).ok_or(SecretError(()))?;
        let known = random.bytes().all(|byte| ALPHABET.contains(&byte));
        let same: bool = checksum(random).as_bytes().ct_eq(sum.as_bytes()).into();
        if known && same {
            Ok(Self(SecretString::from(text)))
        } else {
            Err(SecretError(()))
        }
    }

    /// SHA-256 of the text: what the ledger keeps and looks up.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.expose_secret().as_bytes()).into()
    }

    /// The end of it, for people: `…a1b2`.
    pub fn hint(&self) -> String {
        let text = self.0.expose_secret();
        let start = text.len().saturating_sub(HINT_CHARS);
        format!("…{}", text.get(start..).unwrap_or_default())
    }

    /// The text: for the answer that shows it once.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for VaultSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultSecret(…)")
    }
}

fn checksum(random: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(PREFIX.as_bytes());
    hash.update(random.as_bytes());
    let full: [u8; 32] = hash.finalize().into();
    base32(&full, CHECKSUM_CHARS)
}

/// The first `chars` groups of five bits, the last one filled up with zeros.
fn base32(bytes: &[u8], chars: usize) -> String {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |shift| (byte >> shift) & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks(5)
        .take(chars)
        .map(|group| {
            let padding = std::iter::repeat_n(&0, 5_usize.saturating_sub(group.len()));
            let digit = group
                .iter()
                .chain(padding)
                .fold(0_u8, |digit, bit| (digit << 1) | bit);
            let letter = ALPHABET.get(usize::from(digit));
            char::from(letter.copied().unwrap_or(b'0'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_has_one_form() {
        let secret = VaultSecret::from_entropy([0xa5; 24]);
        let text = secret.reveal();
        assert_eq!(text.len(), 54);
        assert!(text.starts_with("sk_vault_mpjtb9d5mpjtb9d5"), "{text}");
        assert_eq!(secret.hint(), format!("…{}", &text[50..]));
        assert_eq!(format!("{secret:?}"), "VaultSecret(…)");
        assert_eq!(secret.hash(), <[u8; 32]>::from(Sha256::digest(text)));
    }

    #[test]
    fn garbage_is_refused() {
        let good = VaultSecret::from_entropy([7; 24]).reveal().to_owned();
        let cases = [
            String::new(),
            "sk_vault_".to_owned(),
            "sk_test_4eC39HqLyjWDarjtT1zdp7dc".to_owned(),
            good.to_uppercase(),
            good[..53].to_owned(),
            format!("{good}0"),
            format!(" {good}"),
            good.replace("sk_vault_", "sk_live_"),
            format!("sk_vault_{}", "é".repeat(30)),
            format!("sk_vault_{}", "u".repeat(45)),
        ];
        for text in cases {
            let error = VaultSecret::parse(&text).unwrap_err();
            assert!(!error.to_string().contains(&good), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn secrets_round_trip_and_one_wrong_letter_shows(
            entropy in any::<[u8; 24]>(),
            place in 9_usize..54,
            letter in "[0-9a-z]",
        ) {
            let made = VaultSecret::from_entropy(entropy);
            let read = VaultSecret::parse(made.reveal()).unwrap();
            prop_assert_eq!(made.hash(), read.hash());
            let mut wrong = made.reveal().to_owned();
            wrong.replace_range(place..=place, &letter);
            prop_assume!(wrong != made.reveal());
            prop_assert!(VaultSecret::parse(&wrong).is_err());
        }
    }
}
