//! What a request authenticates with.

use http::header::{AUTHORIZATION, HeaderMap};
use serde::{Deserialize, Serialize};

/// A key's prefix ends at an underscore within this many characters.
const PREFIX_CHARS_MAX: usize = 12;

/// How a request authenticated. Never the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    /// `bearer`, `basic`, `none` or `other`.
    pub scheme: String,
    /// The key up to its last underscore, such as `sk_test_` or `sk_vault_`.
    pub key_prefix: String,
}

/// A request's key and how it was presented. Has no `Debug`: it holds the key.
pub(crate) struct Credentials {
    scheme: &'static str,
    pub(crate) key: String,
}

impl Credentials {
    /// Reads `Bearer <key>` or `Basic base64(<key>:)` (contract §4.3).
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
        else {
            return Self {
                scheme: "none",
                key: String::new(),
            };
        };
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Self {
                scheme: "bearer",
                key: rest.trim().to_owned(),
            };
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded = base64_text(rest.trim()).unwrap_or_default();
            let key = decoded.split(':').next().unwrap_or_default().to_owned();
            return Self {
                scheme: "basic",
                key,
            };
        }
        Self {
            scheme: "other",
            key: String::new(),
        }
    }

    /// What may be recorded of it.
    pub(crate) fn described(&self) -> Authorization {
        let head: String = self.key.chars().take(PREFIX_CHARS_MAX).collect();
        let prefix = head.rfind('_').map_or("", |end| &head[..=end]);
        Authorization {
            scheme: self.scheme.to_owned(),
            key_prefix: prefix.to_owned(),
        }
    }
}

/// Standard base64 to text; padding is optional.
fn base64_text(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_and_described_without_the_key() {
        let rows = [
            ("Bearer sk_test_abc", "bearer", "sk_test_abc", "sk_test_"),
            ("bearer sk_vault_abc", "bearer", "sk_vault_abc", "sk_vault_"),
            ("Basic c2tfdGVzdF9hYmM6", "basic", "sk_test_abc", "sk_test_"),
            (
                "Basic c2tfdGVzdF9hYmM6cHc=",
                "basic",
                "sk_test_abc",
                "sk_test_",
            ),
            ("Basic ***", "basic", "", ""),
            ("Digest x", "other", "", ""),
            (
                "Bearer secretwithoutprefix",
                "bearer",
                "secretwithoutprefix",
                "",
            ),
        ];
        for (value, scheme, key, prefix) in rows {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            let found = Credentials::of(&headers);
            let described = found.described();
            assert_eq!(
                (described.scheme.as_str(), found.key.as_str()),
                (scheme, key),
                "{value}"
            );
            assert_eq!(described.key_prefix, prefix, "{value}");
        }
        assert_eq!(
            Credentials::of(&HeaderMap::new()).described().scheme,
            "none"
        );
    }
}
