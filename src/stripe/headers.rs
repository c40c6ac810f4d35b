//! Request and response headers: what is read strictly, and what crosses the proxy (contract §4.3).

use http::header::{self, HeaderMap, HeaderName};

use super::parameter::{ParameterCode, bad, echo};
use crate::domain::refusal::BadParameter;

mod cross;

#[cfg(test)]
mod tests;

pub use cross::{to_client, to_upstream};

/// What a client names its intent with.
pub static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The connected account whose money moves.
pub static STRIPE_ACCOUNT: HeaderName = HeaderName::from_static("stripe-account");
/// What supersedes `Stripe-Account`.
pub static STRIPE_CONTEXT: HeaderName = HeaderName::from_static("stripe-context");
/// Tells lawful charges of one customer and period apart.
pub static SPENDCAP_REFERENCE: HeaderName = HeaderName::from_static("spendcap-reference");

/// Stripe's own limit (contract §2.1).
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Long enough for an invoice number or a UUID, short enough for an index.
const REFERENCE_BYTES_MAX: usize = 100;
/// Stripe's own limit for ids.
const ACCOUNT_BYTES_MAX: usize = 255;

/// Headers that have a meaning here or change one at Stripe: at most one of each.
const SINGLE: [&str; 6] = [
    "idempotency-key",
    "stripe-account",
    "stripe-context",
    "stripe-version",
    "spendcap-reference",
    "content-type",
];

/// Ways to ask for another method than the one that was judged.
const METHOD_OVERRIDES: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// What the headers of a request say about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestHeaders {
    /// `Idempotency-Key`: 1 to 255 visible ASCII characters.
    pub idempotency_key: Option<String>,
    /// `Stripe-Account` or `Stripe-Context`; empty for the platform's own account.
    pub account: String,
    /// `Spendcap-Reference`; empty by default.
    pub reference: String,
}

/// Reads the headers of a request, refusing what two readers could understand differently.
pub fn read(headers: &HeaderMap) -> Result<RequestHeaders, BadParameter> {
    refuse_tricks(headers)?;
    let idempotency_key = single(headers, &IDEMPOTENCY_KEY)?
        .map(|text| visible(&IDEMPOTENCY_KEY, text, IDEMPOTENCY_KEY_BYTES_MAX))
        .transpose()?;
    let reference = match single(headers, &SPENDCAP_REFERENCE)? {
        None | Some("") => "",
        Some(text) if text.contains(':') => {
            let message = format!("{SPENDCAP_REFERENCE} must not contain `:`.");
            let name = SPENDCAP_REFERENCE.as_str();
            return Err(bad(ParameterCode::InvalidCharacters, name, message));
        }
        Some(text) => visible(&SPENDCAP_REFERENCE, text, REFERENCE_BYTES_MAX)?,
    };
    Ok(RequestHeaders {
        idempotency_key: idempotency_key.map(str::to_owned),
        account: account(headers)?.unwrap_or_default().to_owned(),
        reference: reference.to_owned(),
    })
}

/// Whether the body is a form: v1 reads nothing else (contract §5.1), and without a content type
/// Stripe reads a form.
pub fn require_form(headers: &HeaderMap) -> Result<(), BadParameter> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        let message = "Content-Encoding is not accepted: send the body as it is.";
        let name = header::CONTENT_ENCODING.as_str();
        return Err(bad(ParameterCode::Unknown, name, message.to_owned()));
    }
    match single(headers, &header::CONTENT_TYPE)? {
        None => Ok(()),
        Some(text) if is_form(text) => Ok(()),
        Some(text) => {
            let message = format!(
                "The body is {}, and the v1 API reads application/x-www-form-urlencoded in UTF-8 \
                 only: send the parameters as a form.",
                echo(text)
            );
            let name = header::CONTENT_TYPE.as_str();
            Err(bad(ParameterCode::Missing, name, message))
        }
    }
}

fn is_form(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let form = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded"));
    form && parts.all(|parameter| {
        let charset = parameter.split_once('=').map(|(name, value)| {
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
        });
        parameter.is_empty() || charset == Some(true)
    })
}

fn refuse_tricks(headers: &HeaderMap) -> Result<(), BadParameter> {
    for name in METHOD_OVERRIDES {
        if headers.contains_key(name) {
            let message = format!("{name} is not accepted: send the method itself.");
            return Err(bad(ParameterCode::Unknown, name, message));
        }
    }
    for name in headers.keys() {
        // CGI and Rack read `_` as `-`, so this could be a second value for the same header.
        let dashed = name.as_str().replace('_', "-");
        let tricky = dashed != name.as_str()
            && (SINGLE.contains(&dashed.as_str()) || METHOD_OVERRIDES.contains(&dashed.as_str()));
        if tricky {
            let message = format!("{name} is not accepted: write {dashed}.");
            return Err(bad(ParameterCode::Unknown, name.as_str(), message));
        }
    }
    for name in cross::named_in_connection(headers) {
        if SINGLE.contains(&name.as_str()) {
            let message = format!("Connection must not name {name}: it would not reach Stripe.");
            return Err(bad(ParameterCode::Exclusive, "connection", message));
        }
    }
    for name in SINGLE {
        if headers.get_all(name).iter().count() > 1 {
            let message = format!("{name} was sent more than once: send it once.");
            return Err(bad(ParameterCode::Exclusive, name, message));
        }
    }
    Ok(())
}

/// `Stripe-Context` supersedes `Stripe-Account` and may be a path of accounts, which is more than a
/// vault key can be allowed.
fn account(headers: &HeaderMap) -> Result<Option<&str>, BadParameter> {
    let account = account_id(headers, &STRIPE_ACCOUNT)?;
    let context = account_id(headers, &STRIPE_CONTEXT)?;
    match (account, context) {
        (Some(account), Some(context)) if account != context => {
            let message =
                "Stripe-Account and Stripe-Context name different accounts: send one of them.";
            let name = STRIPE_CONTEXT.as_str();
            Err(bad(ParameterCode::Exclusive, name, message.to_owned()))
        }
        (account, context) => Ok(account.or(context)),
    }
}

fn account_id<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, BadParameter> {
    let Some(text) = single(headers, name)? else {
        return Ok(None);
    };
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain && (1..=ACCOUNT_BYTES_MAX).contains(&text.len()) {
        Ok(Some(text))
    } else {
        let message = format!(
            "Invalid {name}: {}. Send one account id such as acct_123.",
            echo(text)
        );
        Err(bad(
            ParameterCode::InvalidCharacters,
            name.as_str(),
            message,
        ))
    }
}

/// The only value of a header, in visible ASCII and spaces.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, BadParameter> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        let message = format!("{name} was sent more than once: send it once.");
        return Err(bad(ParameterCode::Exclusive, name.as_str(), message));
    }
    value.to_str().map(Some).map_err(|_| {
        let message = format!("{name} must be visible ASCII.");
        bad(ParameterCode::InvalidCharacters, name.as_str(), message)
    })
}

fn visible<'a>(
    name: &HeaderName,
    text: &'a str,
    bytes_max: usize,
) -> Result<&'a str, BadParameter> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if plain && (1..=bytes_max).contains(&text.len()) {
        return Ok(text);
    }
    let code = if text.is_empty() {
        ParameterCode::InvalidEmpty
    } else {
        ParameterCode::InvalidCharacters
    };
    let message = format!(
        "{name} must be 1 to {bytes_max} visible ASCII characters without spaces; it has {}.",
        text.len()
    );
    Err(bad(code, name.as_str(), message))
}
