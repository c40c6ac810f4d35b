//! How a parameter or header is refused: Stripe's own codes (docs.stripe.com/error-codes).

use crate::domain::refusal::BadParameter;

/// The value holds characters that the field does not take.
pub(super) const INVALID_CHARACTERS: &str = "invalid_characters";
/// A required value is empty.
pub(super) const INVALID_EMPTY: &str = "parameter_invalid_empty";
/// A value that must be an integer is not.
pub(super) const INVALID_INTEGER: &str = "parameter_invalid_integer";
/// A value that is not allowed for the charge.
pub(super) const CHARGE_INVALID: &str = "charge_invalid_parameter";
/// A required value is absent.
pub(super) const MISSING: &str = "parameter_missing";
/// A name that is not taken here.
pub(super) const UNKNOWN: &str = "parameter_unknown";
/// Two values where one is allowed.
pub(super) const EXCLUSIVE: &str = "parameters_exclusive";

/// Longest piece of a request that an error repeats: enough to find the mistake, too little to fill
/// a log.
const ECHO_CHARS_MAX: usize = 100;

/// `param` as the client wrote it, shortened.
pub(super) fn bad(code: &'static str, param: &str, message: String) -> BadParameter {
    BadParameter {
        code,
        param: Some(echo(param)),
        message,
    }
}

/// For a request that is wrong as a whole.
pub(super) fn bad_request(code: &'static str, message: String) -> BadParameter {
    BadParameter {
        code,
        param: None,
        message,
    }
}

/// An error's text as a sentence of its own.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let rest = letters.as_str().trim_end_matches('.');
    format!("{}{rest}.", first.map_or_else(String::new, String::from))
}

/// `text` as an error may repeat it: short, and without control characters.
pub(super) fn echo(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(ECHO_CHARS_MAX)
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    if text.chars().nth(ECHO_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}
