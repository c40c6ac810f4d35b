//! Raw bytes to decoded pairs. `form_urlencoded` forgives bad escapes and bad UTF-8; here both are
//! errors, so that nothing is judged that Stripe would read otherwise.

use super::{FormError, PARAMETERS_MAX};
use crate::stripe::parameter::echo;

/// Name and value of every pair, in order, decoded once. Empty pairs (`a=1&&b=2`) are skipped, as
/// every reader does.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<(String, String)>, FormError> {
    if bytes.contains(&b';') {
        return Err(FormError::Semicolon);
    }
    let raw = bytes.split(|byte| *byte == b'&');
    let mut pairs = Vec::new();
    for pair in raw.filter(|pair| !pair.is_empty()) {
        if pairs.len() == PARAMETERS_MAX {
            return Err(FormError::TooMany);
        }
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = text(halves.next().unwrap_or_default())?;
        let Some(value) = halves.next() else {
            return Err(FormError::NoValue(echo(&name)));
        };
        pairs.push((name, text(value)?));
    }
    Ok(pairs)
}

fn text(encoded: &[u8]) -> Result<String, FormError> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let [high, low, after @ ..] = after else {
                    return Err(FormError::Escape);
                };
                let (high, low) = (hex(*high)?, hex(*low)?);
                decoded.push((high << 4) | low);
                rest = after;
            }
            other => decoded.push(*other),
        }
    }
    if decoded.contains(&0) {
        return Err(FormError::Nul);
    }
    String::from_utf8(decoded).map_err(|_| FormError::NotUtf8)
}

fn hex(digit: u8) -> Result<u8, FormError> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(FormError::Escape)
}
