//! The grammar of a decoded parameter name: `name([key]|[0]|[])*` (contract §5.1).

use super::{DEPTH_MAX, FormError, PARAMETERS_MAX};
use crate::stripe::parameter::echo;

/// One step from a name to its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Segment {
    /// `[key]`.
    Key(String),
    /// `[0]`.
    Index(usize),
    /// `[]`.
    Push,
}

/// Under this name any key is allowed: it is the client's own.
const METADATA: &str = "metadata";

/// The name before the first bracket, and the steps after it.
pub(super) fn parse(text: &str) -> Result<(String, Vec<Segment>), FormError> {
    let error = || FormError::Name(echo(text));
    let root_end = text.find('[').unwrap_or(text.len());
    let (root, mut rest) = text.split_at(root_end);
    if !is_name(root) {
        return Err(error());
    }
    let mut segments = Vec::new();
    let mut in_metadata = root == METADATA;
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[').ok_or_else(error)?;
        let (key, after) = inner.split_once(']').ok_or_else(error)?;
        segments.push(segment(key, in_metadata).ok_or_else(error)?);
        in_metadata = key == METADATA;
        rest = after;
        // The root counts too.
        if segments.len() >= DEPTH_MAX {
            return Err(FormError::TooDeep(echo(text)));
        }
    }
    if nests_lists_without_indices(&segments) {
        return Err(FormError::Grouping(echo(text)));
    }
    Ok((root.to_owned(), segments))
}

fn segment(key: &str, in_metadata: bool) -> Option<Segment> {
    if key.contains('[') {
        return None;
    }
    if in_metadata {
        return (!key.is_empty()).then(|| Segment::Key(key.to_owned()));
    }
    if key.is_empty() {
        return Some(Segment::Push);
    }
    if key.bytes().all(|byte| byte.is_ascii_digit()) {
        let padded = key.len() > 1 && key.starts_with('0');
        let index: usize = key.parse().ok()?;
        return (!padded && index < PARAMETERS_MAX).then_some(Segment::Index(index));
    }
    is_name(key).then(|| Segment::Key(key.to_owned()))
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !text.is_empty() && text.bytes().all(allowed)
}

/// `a[][b][][c]`: nobody agrees which `a` a second `b` belongs to. A closing `[]` is fine.
fn nests_lists_without_indices(segments: &[Segment]) -> bool {
    let pushes = segments.iter().filter(|step| **step == Segment::Push);
    match pushes.count() {
        0 | 1 => false,
        2 => {
            segments.last() != Some(&Segment::Push)
                || segments.ends_with(&[Segment::Push, Segment::Push])
        }
        _ => true,
    }
}
