//! The client's own name for one send, so that its log and ours can be read side by side.

use http::{HeaderMap, HeaderName};

use crate::domain::echo::masked;

/// What a client names a send with. Unlike `Idempotency-Key` it says nothing about the charge: it goes
/// to Stripe as it came, and no decision depends on it.
static X_ATTEMPT_ID: HeaderName = HeaderName::from_static("x-attempt-id");

/// Room for a UUID (36) or a W3C `traceparent` (55), and too short to fill a log.
const ATTEMPT_ID_BYTES_MAX: usize = 128;

/// The id as it may stand in a log line: one value, visible ASCII, no spaces, nothing that looks like a
/// key. Any other is left out rather than mended, since a mended id would be found nowhere else.
pub(super) fn of(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(&X_ATTEMPT_ID).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let id = value.as_bytes();
    let plain = id.iter().all(u8::is_ascii_graphic);
    let fits = (1..=ATTEMPT_ID_BYTES_MAX).contains(&id.len());
    let id = value.to_str().ok().filter(|_| plain && fits)?;
    (masked(id) == id).then_some(id)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_short_visible_id_is_logged() {
        let (longest, too_long) = ("a".repeat(128), "a".repeat(129));
        let cases: [(&[&[u8]], Option<&str>); 12] = [
            (&[], None),
            (
                &[b"7c9e6679-7425-40de-944b-e07fc1f90ae7"],
                Some("7c9e6679-7425-40de-944b-e07fc1f90ae7"),
            ),
            (&[b"a\",\"level\":\"ERROR"], Some("a\",\"level\":\"ERROR")),
            (&[longest.as_bytes()], Some(&longest)),
            (&[too_long.as_bytes()], None),
            (&[b""], None),
            (&[b"a decision=send"], None),
            (&[b"a\xc2\x85\xff"], None),
            (&[b"a", b"b"], None),
            (&[b"sk_vault_0123456789"], None),
            (&[b"job-7/sk_live_51abc"], None),
            (&[b"Bearer:rk_live_51abc"], None),
        ];
        for (values, logged) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(&X_ATTEMPT_ID, HeaderValue::from_bytes(value).unwrap());
            }
            assert_eq!(of(&headers), logged, "{values:?}");
        }
    }
}
