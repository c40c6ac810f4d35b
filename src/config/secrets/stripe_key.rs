//! The real key.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// Stripe's keys are about a hundred characters.
const KEY_LEN_MAX: usize = 255;

/// A Stripe secret or restricted key. `Debug` shows its kind and mode.
#[derive(Clone)]
pub struct StripeKey {
    text: SecretString,
    prefix: &'static str,
}

impl StripeKey {
    /// What to write.
    pub(super) const INSTEAD: &'static str =
        "a Stripe key begins with sk_test_, sk_live_, rk_test_ or rk_live_";

    const PREFIXES: [&'static str; 4] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_"];

    /// Reads a key by its prefix; Stripe alone knows whether it is valid.
    pub fn parse(text: &str) -> Option<Self> {
        let starts = |prefix: &&str| text.starts_with(prefix);
        let prefix = Self::PREFIXES.into_iter().find(starts)?;
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let fits = text.len() > prefix.len() && text.len() <= KEY_LEN_MAX;
        (is_plain && fits).then(|| Self {
            text: SecretString::from(text),
            prefix,
        })
    }

    /// The key itself: only for the `Authorization` header that goes to Stripe.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// True for real money.
    pub fn livemode(&self) -> bool {
        self.prefix.ends_with("live_")
    }
}

impl fmt::Debug for StripeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StripeKey({}…)", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_prefix() {
        for (text, livemode) in [
            ("sk_test_51abcDEF", Some(false)),
            ("rk_test_1", Some(false)),
            ("sk_live_1", Some(true)),
            ("rk_live_1", Some(true)),
            ("sk_test_", None),
            ("pk_test_1", None),
            ("sk_vault_1", None),
            ("sk_test_1\nsk_test_2", None),
            ("sk_test_ä", None),
            ("", None),
        ] {
            let key = StripeKey::parse(text);
            assert_eq!(key.as_ref().map(StripeKey::livemode), livemode, "{text}");
        }
        let key = StripeKey::parse("sk_test_51abc").unwrap();
        assert_eq!(key.expose(), "sk_test_51abc");
        assert_eq!(format!("{key:?}"), "StripeKey(sk_test_…)");
    }
}
