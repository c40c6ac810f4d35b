//! Idempotency keys and what binds them: fingerprints, digests, derived keys.

use std::fmt;

use super::digest::{Digest16, sha256_hex};

/// Versioned digest over method, path, account, reference and canonical parameters: two requests
/// with one fingerprint ask for the same thing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub Digest16);

impl Fingerprint {
    /// Of a request that only its charge tells of (a rebuilt reservation): what was asked with is not
    /// known.
    pub const UNKNOWN: Self = Self(Digest16([0; 16]));

    /// `canonical_parameters` is the re-serialised form, so order and encoding do not matter.
    pub fn of(
        method: &str,
        path: &str,
        account: &str,
        reference: &str,
        canonical_parameters: &str,
    ) -> Self {
        let parts = [method, path, account, reference, canonical_parameters];
        Self(Digest16::of("fingerprint/1", &parts))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Where an idempotency key is unique: Stripe's scope is account and mode (contract §2.1); the period
/// is ours, since Stripe forgets keys after 24 hours and we do not.
#[derive(Clone, Copy, Debug)]
pub struct KeyScope<'a> {
    /// Empty for the platform's own account.
    pub account: &'a str,
    /// Live or test.
    pub livemode: bool,
    /// The vault key's billing period.
    pub billing_period: &'a str,
}

impl KeyScope<'_> {
    /// Names a key the client sent.
    pub fn given(&self, key: &str) -> Digest16 {
        self.digest("given", key)
    }

    /// Names a key derived for a client that sent none; never equal to a given one.
    fn derived(&self, seed: &str) -> Digest16 {
        self.digest("derived", seed)
    }

    fn digest(&self, kind: &str, key: &str) -> Digest16 {
        let mode = if self.livemode { "live" } else { "test" };
        Digest16::of(
            "request/1",
            &[kind, self.account, mode, self.billing_period, key],
        )
    }
}

/// The idempotency key of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientKey {
    /// The client sent one.
    Given {
        /// Its name in the ledger.
        digest: Digest16,
        /// Its text, which goes upstream unchanged.
        text: String,
    },
    /// The client sent none.
    Derived {
        /// For the first intent in the slot.
        first: DerivedKey,
        /// For another amount in the same slot: Stripe would answer a reused key with 400.
        other_amount: Option<DerivedKey>,
    },
}

impl ClientKey {
    /// Every name under which the ledger may know it.
    pub fn digests(&self) -> impl Iterator<Item = Digest16> {
        let (one, two) = match self {
            Self::Given { digest, .. } => (*digest, None),
            Self::Derived {
                first,
                other_amount,
            } => (first.digest, other_amount.as_ref().map(|key| key.digest)),
        };
        std::iter::once(one).chain(two)
    }
}

/// A key made from what the request says, so that a client without keys is protected too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DerivedKey {
    /// Its name in the ledger.
    pub digest: Digest16,
    seed: String,
}

impl DerivedKey {
    /// `seed` is everything that tells this intent from others, but the count of stored declines.
    pub fn new(scope: &KeyScope<'_>, seed: String) -> Self {
        Self {
            digest: scope.derived(&seed),
            seed,
        }
    }

    /// The text that goes upstream: the first 32 hex digits of SHA-256 over the seed, which the count
    /// of stored declines joins, since Stripe would replay the decline under the same key.
    pub fn upstream_text(&self, stored_declines: u32) -> String {
        let hex = match stored_declines {
            0 => sha256_hex(&self.seed),
            count => sha256_hex(&format!("{}:{count}", self.seed)),
        };
        hex.chars().take(32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: KeyScope<'_> = KeyScope {
        account: "",
        livemode: false,
        billing_period: "2026-08",
    };

    #[test]
    fn a_derived_key_is_the_seeds_content_hash() {
        let key = DerivedKey::new(&SCOPE, "cus_1:2026-08:default".to_owned());
        let full = sha256_hex("cus_1:2026-08:default");
        assert_eq!(key.upstream_text(0), full[..32]);
        assert_eq!(
            key.upstream_text(1),
            sha256_hex("cus_1:2026-08:default:1")[..32]
        );
    }

    #[test]
    fn scopes_and_kinds_keep_keys_apart() {
        let live = KeyScope {
            livemode: true,
            ..SCOPE
        };
        let other = KeyScope {
            account: "acct_1",
            ..SCOPE
        };
        let later = KeyScope {
            billing_period: "2026-09",
            ..SCOPE
        };
        let all = [
            SCOPE.given("k"),
            live.given("k"),
            other.given("k"),
            later.given("k"),
        ];
        let derived = SCOPE.derived("k");
        for (index, digest) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(digest));
            assert_ne!(*digest, derived);
        }
    }
}
