//! Typed reading of parameters, with Stripe's errors.

use std::collections::BTreeMap;

use super::errors::ApiError;
use super::form::{Param, Tree};

/// Metadata bounds (contract §5.4).
const METADATA_KEYS_MAX: usize = 50;
const METADATA_NAME_CHARS_MAX: usize = 40;
const METADATA_VALUE_CHARS_MAX: usize = 500;

/// The parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Params(pub(crate) Tree);

impl Params {
    /// Refuses every parameter that is not named in `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let message = format!("Received unknown parameter: {name}");
                Err(ApiError::invalid(message)
                    .code("parameter_unknown")
                    .param(name))
            }
        }
    }

    /// A string; an empty one is refused, as Stripe does for ids and enums.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.0.get(name) {
            None | Some(Param::Nil) => Ok(None),
            Some(Param::Text(text)) if text.is_empty() => Err(empty(name)),
            Some(Param::Text(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::invalid("Invalid string: {}").param(name)),
        }
    }

    /// A string that may be empty, such as a description.
    pub(crate) fn free_text(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.get(name) {
            Some(Param::Text(text)) if text.is_empty() => Ok(None),
            _ => Ok(self.text(name)?.map(str::to_owned)),
        }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.text(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(ApiError::invalid(format!("Invalid boolean: {other}")).param(name)),
        }
    }

    /// An integer as Ruby's `Integer()` reads it (contract §5.2).
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let text = match self.0.get(name) {
            None => return Ok(None),
            Some(Param::Nil) => "",
            Some(Param::Text(text)) => text,
            Some(_) => return Err(bad_integer(name, "{}")),
        };
        ruby_integer(text)
            .map(Some)
            .ok_or_else(|| bad_integer(name, text))
    }

    /// A list of strings, written `name[]=…` or `name[0]=…`.
    pub(crate) fn strings(&self, name: &str) -> Result<Vec<&str>, ApiError> {
        let items: Vec<&Param> = match self.0.get(name) {
            None | Some(Param::Nil) => Vec::new(),
            Some(Param::List(items)) => items.iter().collect(),
            Some(Param::Map(items)) => items.values().collect(),
            Some(Param::Text(_)) => {
                return Err(ApiError::invalid("Invalid array").param(name));
            }
        };
        items
            .into_iter()
            .map(|item| match item {
                Param::Text(text) => Ok(text.as_str()),
                _ => Err(ApiError::invalid("Invalid string: {}").param(name)),
            })
            .collect()
    }

    /// A nested map, such as `created[gte]=…`.
    pub(crate) fn map(&self, name: &str) -> Option<&Tree> {
        match self.0.get(name) {
            Some(Param::Map(tree)) => Some(tree),
            _ => None,
        }
    }

    /// `metadata`, within Stripe's bounds; empty values clear and are dropped.
    pub(crate) fn metadata(&self) -> Result<BTreeMap<String, String>, ApiError> {
        let tree = match self.0.get("metadata") {
            None | Some(Param::Nil) => return Ok(BTreeMap::new()),
            Some(Param::Text(text)) if text.is_empty() => return Ok(BTreeMap::new()),
            Some(Param::Map(tree)) => tree,
            Some(_) => return Err(ApiError::invalid("Invalid hash").param("metadata")),
        };
        if tree.len() > METADATA_KEYS_MAX {
            let message = format!("Metadata can have up to {METADATA_KEYS_MAX} keys.");
            return Err(ApiError::invalid(message).param("metadata"));
        }
        let mut metadata = BTreeMap::new();
        for (name, value) in tree {
            let param = format!("metadata[{name}]");
            let Param::Text(value) = value else {
                return Err(ApiError::invalid("Metadata values must be strings.").param(param));
            };
            if name.chars().count() > METADATA_NAME_CHARS_MAX
                || value.chars().count() > METADATA_VALUE_CHARS_MAX
            {
                let message = "Metadata keys can have up to 40 characters, values up to 500.";
                return Err(ApiError::invalid(message).param(param));
            }
            if !value.is_empty() {
                metadata.insert(name.clone(), value.clone());
            }
        }
        Ok(metadata)
    }
}

/// 400 `parameter_missing`.
pub(crate) fn missing(name: &str) -> ApiError {
    let message = format!("Missing required param: {name}.");
    ApiError::invalid(message)
        .code("parameter_missing")
        .param(name)
}

fn empty(name: &str) -> ApiError {
    let message = format!(
        "You passed an empty string for '{name}'. We assume empty values are an attempt to unset \
         a parameter; however '{name}' cannot be unset. You should remove '{name}' from your \
         request or supply a non-empty value."
    );
    ApiError::invalid(message)
        .code("parameter_invalid_empty")
        .param(name)
}

fn bad_integer(name: &str, text: &str) -> ApiError {
    let message = format!("Invalid integer: {text}");
    ApiError::invalid(message)
        .code("parameter_invalid_integer")
        .param(name)
}

/// Ruby's `Integer("…")`: spaces around, a sign, `0x`, `0b`, `0o` or a leading zero for octal, and
/// single underscores between digits.
fn ruby_integer(text: &str) -> Option<i64> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (sign, unsigned) = match trimmed.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0d") => (10, &lower[2..]),
        Some(_) if lower.starts_with('0') => (8, lower[1..].trim_start_matches('_')),
        _ => (10, lower.as_str()),
    };
    let plain = digits.replace('_', "");
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if misplaced || plain.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{plain}"), radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_ruby_reads_them() {
        let rows = [
            ("100", Some(100)),
            (" 100", Some(100)),
            ("+100", Some(100)),
            ("-5", Some(-5)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("0x10", Some(16)),
            ("1_000", Some(1000)),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("", None),
            ("1e3", None),
            ("1.0", None),
            ("--1", None),
            ("0x-1", None),
            ("ten", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in rows {
            assert_eq!(ruby_integer(text), expected, "{text:?}");
        }
    }
}
