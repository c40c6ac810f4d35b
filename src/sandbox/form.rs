//! Parameters the way Stripe's ancestor reads them (Rack 2.2, contract §5.1).
//!
//! Lenient on purpose: the last of two equal names wins, the query of a POST counts, stray brackets
//! are forgiven. A request that was forwarded without being judged then shows, because the sandbox
//! charges what Stripe would charge. Nothing here is shared with the proxy's own parser.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::errors::ApiError;

/// Rack refuses deeper nesting than this.
const DEPTH_MAX: usize = 100;

/// One parameter's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Param {
    /// A name without `=`.
    Nil,
    Text(String),
    List(Vec<Self>),
    Map(Tree),
}

/// Parameters by name.
pub(crate) type Tree = BTreeMap<String, Param>;

/// Merges the query and the body of one request; the body wins (contract §5.1).
///
/// # Errors
/// 400 where Rack refuses: a name used both as a scalar and as a list or map, broken percent
/// encoding, text that is not UTF-8, nesting over 100 levels.
pub(crate) fn merge(query: &str, body: &str) -> Result<Tree, ApiError> {
    let mut merged = parse(query)?;
    merged.extend(parse(body)?);
    Ok(merged)
}

/// Reads one `application/x-www-form-urlencoded` text.
pub(crate) fn parse(text: &str) -> Result<Tree, ApiError> {
    let mut tree = Tree::new();
    for pair in text
        .split(['&', ';'])
        .map(|pair| pair.trim_start_matches(' '))
    {
        if pair.is_empty() {
            continue;
        }
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, Param::Text(unescape(value)?)),
            None => (pair, Param::Nil),
        };
        insert(&mut tree, &unescape(name)?, value, 0)?;
    }
    Ok(tree)
}

/// Writes the tree in one canonical text, to compare the parameters of two requests.
pub(crate) fn canonical(tree: &Tree, into: &mut String) {
    for (name, value) in tree {
        // Debug quotes and escapes, so that two trees never share a text.
        let _infallible = write!(into, "{name:?}=");
        write_value(value, into);
        into.push('&');
    }
}

fn write_value(value: &Param, into: &mut String) {
    match value {
        Param::Nil => into.push('-'),
        Param::Text(text) => {
            let _infallible = write!(into, "{text:?}");
        }
        Param::List(items) => {
            into.push('[');
            for item in items {
                write_value(item, into);
                into.push(',');
            }
            into.push(']');
        }
        Param::Map(tree) => {
            into.push('{');
            canonical(tree, into);
            into.push('}');
        }
    }
}

/// Rack's `normalize_params`: puts `value` where the bracketed `name` says.
fn insert(tree: &mut Tree, name: &str, value: Param, depth: usize) -> Result<(), ApiError> {
    if depth >= DEPTH_MAX {
        return Err(ApiError::invalid(
            "Invalid request: parameters are nested too deeply.",
        ));
    }
    let start = name.trim_start_matches(['[', ']']);
    let key = &start[..start.find(['[', ']']).unwrap_or(start.len())];
    if key.is_empty() {
        return Ok(());
    }
    let after = start[key.len()..].trim_start_matches(']');
    if after.is_empty() {
        tree.insert(key.to_owned(), value);
    } else if after == "[" {
        tree.insert(name.to_owned(), value);
    } else if after == "[]" {
        list(tree, key)?.push(value);
    } else if let Some(child) = after.strip_prefix("[]") {
        let child = inner_key(child);
        let items = list(tree, key)?;
        match items.last_mut() {
            Some(Param::Map(last)) if !holds(last, child) => insert(last, child, value, depth + 1)?,
            _ => {
                let mut item = Tree::new();
                insert(&mut item, child, value, depth + 1)?;
                items.push(Param::Map(item));
            }
        }
    } else {
        let slot = tree
            .entry(key.to_owned())
            .or_insert_with(|| Param::Map(Tree::new()));
        match slot {
            Param::Map(inner) => insert(inner, after, value, depth + 1)?,
            Param::Nil => {
                let mut inner = Tree::new();
                insert(&mut inner, after, value, depth + 1)?;
                *slot = Param::Map(inner);
            }
            Param::Text(_) | Param::List(_) => return Err(wrong_type("Hash", key)),
        }
    }
    Ok(())
}

/// `[b]` of `a[][b]` is `b`; anything longer stays as it is.
fn inner_key(child: &str) -> &str {
    child
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .filter(|inner| !inner.contains(['[', ']']))
        .unwrap_or(child)
}

/// Whether a list's last item already has the nested key, so that the next item begins.
fn holds(tree: &Tree, name: &str) -> bool {
    if name.contains("[]") {
        return false;
    }
    let mut parts = name
        .split(['[', ']'])
        .filter(|part| !part.is_empty())
        .peekable();
    let mut level = tree;
    while let Some(part) = parts.next() {
        match level.get(part) {
            None => return false,
            Some(Param::Map(inner)) if parts.peek().is_some() => level = inner,
            Some(_) => return parts.peek().is_none(),
        }
    }
    true
}

fn list<'a>(tree: &'a mut Tree, key: &str) -> Result<&'a mut Vec<Param>, ApiError> {
    let slot = tree.entry(key.to_owned()).or_insert(Param::Nil);
    if *slot == Param::Nil {
        *slot = Param::List(Vec::new());
    }
    match slot {
        Param::List(items) => Ok(items),
        _ => Err(wrong_type("Array", key)),
    }
}

fn wrong_type(expected: &str, key: &str) -> ApiError {
    ApiError::invalid(format!(
        "Invalid request: expected {expected} for param `{key}'"
    ))
    .param(key)
}

fn unescape(text: &str) -> Result<String, ApiError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = tail
                    .get(..2)
                    .and_then(|pair| std::str::from_utf8(pair).ok());
                let digits = digits.filter(|pair| pair.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
                bytes.push(byte.ok_or_else(bad_encoding)?);
                rest = &tail[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad_encoding())
}

fn bad_encoding() -> ApiError {
    ApiError::invalid("Invalid request: parameters are not valid UTF-8 percent-encoded text.")
}

#[cfg(test)]
mod tests;
