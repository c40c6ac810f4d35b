//! How a parameter or header is refused.

use crate::domain::refusal::BadParameter;

pub(super) use crate::domain::echo::echo;
pub(super) use crate::domain::refusal::ParameterCode;

/// `param` as the client wrote it, shortened.
pub(super) fn bad(code: ParameterCode, param: &str, message: String) -> BadParameter {
    BadParameter {
        code,
        param: Some(echo(param)),
        message,
    }
}

/// For a request that is wrong as a whole.
pub(super) fn bad_request(code: ParameterCode, message: String) -> BadParameter {
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
