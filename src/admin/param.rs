//! The values of the control plane's parameters, and how each is refused: Stripe's codes where it has
//! one (docs.stripe.com/error-codes), and always the parameter's name.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::admin::error::BadParameter;
use crate::domain::cap::Headroom;
use crate::domain::money::{AmountMinor, Currency};
use crate::domain::time::UnixMs;

pub(super) use crate::domain::echo::echo;

const INVALID_INTEGER: &str = "parameter_invalid_integer";
const INVALID_EMPTY: &str = "parameter_invalid_empty";
const INVALID: &str = "parameter_invalid";
const MISSING: &str = "parameter_missing";
const UNKNOWN: &str = "parameter_unknown";
const EXCLUSIVE: &str = "parameters_exclusive";
const INVALID_BODY: &str = "body_invalid";

/// A name for a period or a namespace: both stand in derived keys, paths and log lines.
const LABEL_CHARS_MAX: usize = 64;
/// Long enough for a sentence and a ticket, short enough for a table of the audit log.
const REASON_CHARS_MAX: usize = 500;
/// More currencies than Stripe settles in for one account; bounds the rows of one key.
const CURRENCIES_MAX: usize = 50;
/// Bounds of metadata, the same as Stripe's (docs.stripe.com/api/metadata).
const METADATA_KEYS_MAX: usize = 50;
const METADATA_NAME_CHARS_MAX: usize = 40;
const METADATA_VALUE_CHARS_MAX: usize = 500;
/// Connected accounts one key may act on.
const LIST_MAX: usize = 100;

/// The value of `param` is not accepted; `message` says what to send.
pub(super) fn invalid(param: &str, message: impl Into<String>) -> BadParameter {
    refuse(INVALID, param, message.into())
}

/// `param` must be there.
pub(super) fn missing(param: &str) -> BadParameter {
    refuse(
        MISSING,
        param,
        format!("missing required parameter: {param}"),
    )
}

/// Names outside of `known` were sent.
pub(super) fn unknown(first: &str, unknown: &[&str], known: &[&str]) -> BadParameter {
    let unknown: Vec<String> = unknown.iter().take(10).map(|name| echo(name)).collect();
    let unknown = unknown.join(", ");
    let message = if known.is_empty() {
        format!("unknown parameters: {unknown}; this takes none")
    } else {
        format!(
            "unknown parameters: {unknown}; this takes {}",
            known.join(", ")
        )
    };
    refuse(UNKNOWN, first, message)
}

/// `param` and `other` say the same thing, or need each other.
pub(super) fn exclusive(param: &str, message: &str) -> BadParameter {
    refuse(EXCLUSIVE, param, message.to_owned())
}

/// An amount that is too large once multiplied, or not an integer at all.
pub(super) fn invalid_integer(param: &str, message: impl Into<String>) -> BadParameter {
    refuse(INVALID_INTEGER, param, message.into())
}

/// The body as a whole cannot be read.
pub(super) fn body(message: String) -> BadParameter {
    let (code, param) = (INVALID_BODY, None);
    BadParameter {
        code,
        param,
        message,
    }
}

fn refuse(code: &'static str, param: &str, message: String) -> BadParameter {
    let param = Some(echo(param));
    BadParameter {
        code,
        param,
        message,
    }
}

/// A string.
pub(super) fn text(param: &str, value: &Value) -> Result<String, BadParameter> {
    let text = value.as_str();
    text.map(str::to_owned)
        .ok_or_else(|| invalid(param, format!("{param} is a string, not {}", kind(value))))
}

/// `true` or `false`.
pub(super) fn boolean(param: &str, value: &Value) -> Result<bool, BadParameter> {
    value.as_bool().ok_or_else(|| {
        invalid(
            param,
            format!("{param} is true or false, not {}", kind(value)),
        )
    })
}

/// A whole number within `0..=most`. Not a string, not `1.0`, not `1e3`: those are how amounts get lost.
pub(super) fn integer(param: &str, value: &Value, most: i64) -> Result<i64, BadParameter> {
    match value.as_i64() {
        Some(number) if (0..=most).contains(&number) => Ok(number),
        _ => {
            let found = match value {
                Value::Number(number) => echo(&number.to_string()),
                other => kind(other).to_owned(),
            };
            let message = format!("{param} is a whole number from 0 to {most}, not {found}");
            Err(invalid_integer(param, message))
        }
    }
}

/// An amount in minor units.
pub(super) fn amount(param: &str, value: &Value) -> Result<AmountMinor, BadParameter> {
    integer(param, value, i64::MAX).map(|minor| AmountMinor::new(minor).unwrap_or_default())
}

/// A currency code of any case.
pub(super) fn currency(param: &str, value: &Value) -> Result<Currency, BadParameter> {
    let code = text(param, value)?;
    Currency::parse(&code).map_err(|error| {
        let message = format!("{param} is not a currency: {}: {error}", echo(&code));
        invalid(param, message)
    })
}

/// A map from currency to amount.
pub(super) fn amounts(
    param: &str,
    value: &Value,
) -> Result<BTreeMap<Currency, AmountMinor>, BadParameter> {
    let entries = value.as_object().ok_or_else(|| {
        let message = format!(
            "{param} is an object from currency to amount such as {{\"usd\": 4950000}}, not {}",
            kind(value)
        );
        invalid(param, message)
    })?;
    if entries.len() > CURRENCIES_MAX {
        let message = format!("{param} takes at most {CURRENCIES_MAX} currencies");
        return Err(invalid(param, message));
    }
    let mut amounts = BTreeMap::new();
    for (code, value) in entries {
        let param = format!("{param}[{}]", echo(code));
        let currency = Currency::parse(code)
            .map_err(|error| invalid(&param, format!("{param} is not a currency: {error}")))?;
        let amount = amount(&param, value)?;
        if amounts.insert(currency, amount).is_some() {
            return Err(invalid(&param, format!("{currency} is given twice")));
        }
    }
    Ok(amounts)
}

/// A decimal in a string. A JSON number is a float to many writers.
pub(super) fn headroom(param: &str, value: &Value) -> Result<Headroom, BadParameter> {
    let text = text(param, value)?;
    Headroom::parse(&text).map_err(|error| {
        let message = format!("{param} is not accepted: {}: {error}", echo(&text));
        invalid(param, message)
    })
}

/// A point in time: unix seconds, or RFC 3339 with an offset.
pub(super) fn time(param: &str, value: &Value) -> Result<UnixMs, BadParameter> {
    match value {
        Value::Number(_) => integer(param, value, i64::MAX / 1000).map(UnixMs::from_unix_seconds),
        Value::String(text) => {
            let parsed = text.parse::<Timestamp>().ok();
            let at_ms = parsed.map(Timestamp::as_millisecond).filter(|ms| *ms >= 0);
            at_ms.map(UnixMs).ok_or_else(|| {
                let message = format!(
                    "{param} is unix seconds, or RFC 3339 with an offset such as \
                     2026-09-01T00:00:00Z, not {}",
                    echo(text)
                );
                invalid(param, message)
            })
        }
        other => {
            let message = format!(
                "{param} is unix seconds, or a string as in RFC 3339 with an offset, not {}",
                kind(other)
            );
            Err(invalid(param, message))
        }
    }
}

/// The name of a period or a namespace: no `:`, which separates the parts of a derived key.
pub(super) fn label(param: &str, value: &Value) -> Result<String, BadParameter> {
    let label = text(param, value)?;
    check_label(param, &label).map(|()| label)
}

/// [`label`] for a name that is text already.
pub(super) fn check_label(param: &str, label: &str) -> Result<(), BadParameter> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=LABEL_CHARS_MAX).contains(&label.len()) && label.bytes().all(plain) {
        Ok(())
    } else {
        let message = format!(
            "{param} is 1 to {LABEL_CHARS_MAX} letters, digits, `.`, `_` or `-`, not {}",
            echo(label)
        );
        Err(invalid(param, message))
    }
}

/// Why an operator does something; it stands in the audit log for good.
pub(super) fn reason(param: &str, value: &Value) -> Result<String, BadParameter> {
    let reason = text(param, value)?;
    let reason = reason.trim();
    if reason.is_empty() {
        let message = format!("{param} may not be empty: say why, for whoever reads the audit log");
        return Err(refuse(INVALID_EMPTY, param, message));
    }
    if reason.chars().count() > REASON_CHARS_MAX || reason.chars().any(char::is_control) {
        let message = format!(
            "{param} is one line of at most {REASON_CHARS_MAX} characters, without control characters"
        );
        return Err(invalid(param, message));
    }
    Ok(reason.to_owned())
}

/// One of a closed list of names.
pub(super) fn choice<T>(
    param: &str,
    value: &Value,
    parse: impl FnOnce(&str) -> Option<T>,
    names: &[&str],
) -> Result<T, BadParameter> {
    let name = text(param, value)?;
    parse(&name).ok_or_else(|| not_a_choice(param, &name, names))
}

/// `name` is not among `names`.
pub(super) fn not_a_choice(param: &str, name: &str, names: &[&str]) -> BadParameter {
    let message = format!("{param} is one of {}, not {}", names.join(", "), echo(name));
    invalid(param, message)
}

/// A list whose entries `read` takes; no entry twice.
pub(super) fn list<T: PartialEq>(
    param: &str,
    value: &Value,
    read: impl Fn(&str, &Value) -> Result<T, BadParameter>,
) -> Result<Vec<T>, BadParameter> {
    let entries = value
        .as_array()
        .ok_or_else(|| invalid(param, format!("{param} is a list, not {}", kind(value))))?;
    if entries.len() > LIST_MAX {
        let message = format!("{param} takes at most {LIST_MAX} entries");
        return Err(invalid(param, message));
    }
    let mut list = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let param = format!("{param}[{index}]");
        let entry = read(&param, entry)?;
        if list.contains(&entry) {
            return Err(invalid(&param, format!("{param} is given twice")));
        }
        list.push(entry);
    }
    Ok(list)
}

/// The id of a connected account, `acct_…`.
pub(super) fn account(param: &str, value: &Value) -> Result<String, BadParameter> {
    let account = text(param, value)?;
    let rest = account.strip_prefix("acct_").unwrap_or_default();
    let plain = rest
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !rest.is_empty() && account.len() <= 255 && plain {
        Ok(account)
    } else {
        let message = format!(
            "{param} is a Stripe account such as acct_…, not {}",
            echo(&account)
        );
        Err(invalid(param, message))
    }
}

/// The id of the Stripe object that shows that money moved.
pub(super) fn object_id(param: &str, value: &Value) -> Result<String, BadParameter> {
    let id = text(param, value)?;
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if (1..=255).contains(&id.len()) && plain {
        Ok(id)
    } else {
        let message = format!(
            "{param} is the id of a Stripe object such as ch_…, not {}",
            echo(&id)
        );
        Err(invalid(param, message))
    }
}

/// The operator's own notes.
pub(super) fn metadata(
    param: &str,
    value: &Value,
) -> Result<BTreeMap<String, String>, BadParameter> {
    let entries = value
        .as_object()
        .ok_or_else(|| invalid(param, format!("{param} is an object, not {}", kind(value))))?;
    if entries.len() > METADATA_KEYS_MAX {
        let message = format!("{param} takes at most {METADATA_KEYS_MAX} keys");
        return Err(invalid(param, message));
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in entries {
        let param = format!("{param}[{}]", echo(name));
        let value = text(&param, value)?;
        let name_chars = name.chars().count();
        if !(1..=METADATA_NAME_CHARS_MAX).contains(&name_chars) {
            let message = format!("a metadata key is 1 to {METADATA_NAME_CHARS_MAX} characters");
            return Err(invalid(&param, message));
        }
        if value.chars().count() > METADATA_VALUE_CHARS_MAX {
            let message = format!("{param} is at most {METADATA_VALUE_CHARS_MAX} characters long");
            return Err(invalid(&param, message));
        }
        metadata.insert(name.clone(), value);
    }
    Ok(metadata)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
