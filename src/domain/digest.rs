//! Digests over parts, each part fenced by its length so that no two lists of parts collide.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The first 16 bytes of a SHA-256: enough to name a key or a slot, small enough to index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest16(pub [u8; 16]);

impl Digest16 {
    /// Digests `parts` under `domain`, which names what is digested and its version.
    pub fn of(domain: &str, parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in std::iter::once(&domain).chain(parts) {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let full: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(full) {
            *to = from;
        }
        Self(bytes)
    }
}

impl fmt::Debug for Digest16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// SHA-256 of `text` in lower-case hex.
pub fn sha256_hex(text: &str) -> String {
    use fmt::Write as _;
    let full: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    full.iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_fenced() {
        assert_ne!(
            Digest16::of("x", &["ab", "c"]),
            Digest16::of("x", &["a", "bc"])
        );
        assert_ne!(Digest16::of("x", &["", "a"]), Digest16::of("x", &["a", ""]));
        assert_eq!(Digest16::of("x", &["a"]), Digest16::of("x", &["a"]));
    }
}
