//! The credential of a request: `Bearer`, as SDKs send it, or `Basic`, as `curl -u key:` does
//! (contract §4.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap};

use crate::domain::refusal::Refusal;
use crate::domain::secret::VaultSecret;

/// The vault key a request presents. Several credentials, another scheme, and anything that is not a
/// well-formed vault key are [`Refusal::VaultKeyInvalid`].
pub fn presented(headers: &HeaderMap) -> Result<VaultSecret, Refusal> {
    read(headers).ok_or(Refusal::VaultKeyInvalid)
}

fn read(headers: &HeaderMap) -> Option<VaultSecret> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, credential) = value.to_str().ok()?.split_once(' ')?;
    let credential = credential.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") {
        VaultSecret::parse(credential).ok()
    } else if scheme.eq_ignore_ascii_case("basic") {
        let decoded = String::from_utf8(STANDARD.decode(credential).ok()?).ok()?;
        // The key is the user's name; the password is empty.
        VaultSecret::parse(decoded.strip_suffix(':')?).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn bearer_and_basic_carry_the_same_key() {
        let secret = VaultSecret::from_entropy([9; 24]);
        let key = secret.reveal();
        let basic = STANDARD.encode(format!("{key}:"));
        for value in [
            format!("Bearer {key}"),
            format!("bearer  {key}"),
            format!("Basic {basic}"),
            format!("BASIC {basic}"),
        ] {
            let read = presented(&headers(&[&value])).unwrap();
            assert_eq!(read.hash(), secret.hash());
        }
    }

    #[test]
    fn anything_else_is_an_invalid_key() {
        let key = VaultSecret::from_entropy([9; 24]).reveal().to_owned();
        let bearer = format!("Bearer {key}");
        let password = STANDARD.encode(format!("{key}:x"));
        let no_colon = STANDARD.encode(&key);
        let cases: [&[&str]; 9] = [
            &[],
            &[&bearer, &bearer],
            &["Bearer"],
            &["Bearer sk_test_123"],
            &[&key],
            &[&format!("Token {key}")],
            &[&format!("Basic {password}")],
            &[&format!("Basic {no_colon}")],
            &["Basic !!!"],
        ];
        for values in cases {
            let refusal = presented(&headers(values)).unwrap_err();
            assert_eq!(refusal, Refusal::VaultKeyInvalid);
        }
    }
}
