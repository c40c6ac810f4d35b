//! A small model of Rack 2's parameter merging, independent of the parser it checks: the last value
//! wins, stray brackets are forgiven, `;` separates pairs.

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Rack {
    Text(String),
    Hash(BTreeMap<String, Self>),
    Array(Vec<Self>),
}

/// What Rack makes of a body; `None` where it answers 400.
pub(crate) fn parse(body: &str) -> Option<BTreeMap<String, Rack>> {
    let mut params = BTreeMap::new();
    for pair in body.split(['&', ';']) {
        let pair = pair.trim_start_matches(' ');
        if pair.is_empty() {
            continue;
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        normalise(&mut params, &unescape(name)?, &unescape(value)?)?;
    }
    Some(params)
}

fn unescape(text: &str) -> Option<String> {
    let query = format!("x={}", text.replace('&', "%26"));
    let decoded = form_urlencoded::parse(query.as_bytes())
        .next()?
        .1
        .into_owned();
    (!decoded.contains('\u{fffd}')).then_some(decoded)
}

/// `params[name] = value`, in Rack's way: strip leading brackets, take a name up to the next bracket,
/// skip closing ones, look at what follows.
fn normalise(params: &mut BTreeMap<String, Rack>, name: &str, value: &str) -> Option<()> {
    let stripped = name.trim_start_matches(['[', ']']);
    let end = stripped.find(['[', ']']).unwrap_or(stripped.len());
    let (key, after) = stripped.split_at(end);
    let after = after.trim_start_matches(']');
    if key.is_empty() {
        return Some(());
    }
    if after.is_empty() {
        params.insert(key.to_owned(), Rack::Text(value.to_owned()));
        return Some(());
    }
    if after == "[" {
        params.insert(name.to_owned(), Rack::Text(value.to_owned()));
        return Some(());
    }
    if let Some(child) = after.strip_prefix("[]") {
        let slot = params
            .entry(key.to_owned())
            .or_insert_with(|| Rack::Array(Vec::new()));
        let Rack::Array(items) = slot else {
            return None;
        };
        if child.is_empty() {
            items.push(Rack::Text(value.to_owned()));
            return Some(());
        }
        if let Some(Rack::Hash(last)) = items.last_mut()
            && !has_key(last, child)
        {
            return normalise(last, child, value);
        }
        let mut item = BTreeMap::new();
        normalise(&mut item, child, value)?;
        items.push(Rack::Hash(item));
        return Some(());
    }
    let slot = params
        .entry(key.to_owned())
        .or_insert_with(|| Rack::Hash(BTreeMap::new()));
    match slot {
        Rack::Hash(child) => normalise(child, after, value),
        Rack::Text(_) | Rack::Array(_) => None,
    }
}

fn has_key(hash: &BTreeMap<String, Rack>, key: &str) -> bool {
    if key.contains("[]") {
        return false;
    }
    let mut here = hash;
    let mut parts = key
        .split(['[', ']'])
        .filter(|part| !part.is_empty())
        .peekable();
    while let Some(part) = parts.next() {
        match here.get(part) {
            None => return false,
            Some(Rack::Hash(child)) => here = child,
            Some(_) => return parts.peek().is_none(),
        }
    }
    true
}
