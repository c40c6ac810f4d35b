//! Stripe's form parameters: a strict parser into a canonical tree, and back (contract §5.1).
//!
//! Rack, the model for Stripe's parser, merges what it is given: the last of two values wins, stray
//! brackets are forgiven. Here every body that can be read in two ways is refused, and what goes
//! upstream is written anew from the tree.

mod build;
mod name;
mod pairs;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

use super::parameter::{ParameterCode, bad, bad_request, sentence};
use crate::domain::refusal::BadParameter;

/// Most parameters of one request: a charge with 200 lines of level 3 data has fewer.
pub const PARAMETERS_MAX: usize = 2_000;

/// Deepest nesting, the name itself counted: Stripe's own parameters stay below six.
pub const DEPTH_MAX: usize = 8;

/// Names that are refused on any proxied call: credentials of other kinds, and ways to tunnel
/// another method or to change the answer's form (contract §4.3, §5.1).
const REFUSED: [&str; 5] = ["key", "api_key", "access_token", "_method", "callback"];

/// The parameters of one request, free of any second reading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FormTree {
    fields: BTreeMap<String, FormValue>,
}

/// What stands under one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormValue {
    /// A text; empty where a field is to be cleared.
    Scalar(String),
    /// `name[key]=`, in the order of the keys.
    Map(BTreeMap<String, Self>),
    /// `name[]=` or `name[0]=`, in the order sent.
    List(Vec<Self>),
}

/// Why a form was not accepted: what to change, and the name, shortened.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FormError {
    /// Over [`PARAMETERS_MAX`].
    #[error("too many parameters: at most {PARAMETERS_MAX} are accepted")]
    TooMany,
    /// Rack 2 splits pairs at it.
    #[error("a raw `;` is ambiguous in a form body: write it as %3B")]
    Semicolon,
    /// `%` without two hex digits.
    #[error("malformed percent escape: write % itself as %25")]
    Escape,
    /// Not UTF-8 after decoding.
    #[error("parameters must be UTF-8")]
    NotUtf8,
    /// `%00`.
    #[error("parameters must not contain the NUL character")]
    Nul,
    /// Not `name[key][0][]`.
    #[error("invalid parameter name: {0}")]
    Name(String),
    /// Over [`DEPTH_MAX`].
    #[error("parameter nested too deeply: {0}")]
    TooDeep(String),
    /// A name without `=`.
    #[error("parameter without a value: {0} (write `{0}=` to send an empty one)")]
    NoValue(String),
    /// The same name twice.
    #[error("parameter sent more than once: {0}")]
    Duplicate(String),
    /// Scalar and nested, list and map, or two spellings of a list.
    #[error("parameter sent in two different shapes: {0}")]
    Mixed(String),
    /// Indices that do not run 0, 1, 2…
    #[error("array indices must run 0, 1, 2 and so on, in order: {0}")]
    Index(String),
    /// `items[][…]` whose grouping into items depends on the reader.
    #[error("ambiguous array of objects: write indices such as items[0][…] instead of {0}")]
    Grouping(String),
    /// One of `REFUSED`.
    #[error("parameter not accepted here: {0}")]
    Refused(String),
}

impl FormTree {
    /// Reads a body or a query string.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormError> {
        let fields = build::fields(&pairs::decode(bytes)?)?;
        match REFUSED.into_iter().find(|name| fields.contains_key(*name)) {
            Some(name) => Err(FormError::Refused(name.to_owned())),
            None => Ok(Self { fields }),
        }
    }

    /// The one spelling of this tree: names sorted, lists with indices, everything else escaped.
    pub fn serialise(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.fields {
            write(&mut out, name, value);
        }
        out
    }

    /// The outermost names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// What stands under `name`.
    pub fn get(&self, name: &str) -> Option<&FormValue> {
        self.fields.get(name)
    }

    /// The text under `name`; an error where it is nested.
    pub fn scalar(&self, name: &str) -> Result<Option<&str>, BadParameter> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(FormValue::Scalar(text)) => Ok(Some(text)),
            Some(FormValue::Map(_) | FormValue::List(_)) => Err(bad(
                ParameterCode::ChargeInvalid,
                name,
                format!("Invalid {name}: one value is expected, not an array or a hash."),
            )),
        }
    }

    /// `expand` alone, serialised: what a read of the same object must ask for. Empty without one.
    pub fn expand_query(&self) -> String {
        let mut out = String::new();
        if let Some(value) = self.fields.get("expand") {
            write(&mut out, "expand", value);
        }
        out
    }

    /// Puts the judged spelling of a scalar in place of the client's.
    pub(super) fn normalise(&mut self, name: &str, text: &str) {
        self.fields
            .insert(name.to_owned(), FormValue::Scalar(text.to_owned()));
    }
}

fn write(out: &mut String, path: &str, value: &FormValue) {
    match value {
        FormValue::Scalar(text) => {
            if !out.is_empty() {
                out.push('&');
            }
            out.extend(form_urlencoded::byte_serialize(path.as_bytes()));
            out.push('=');
            out.extend(form_urlencoded::byte_serialize(text.as_bytes()));
        }
        FormValue::Map(fields) => {
            for (name, value) in fields {
                write(out, &format!("{path}[{name}]"), value);
            }
        }
        FormValue::List(items) => {
            for (index, value) in items.iter().enumerate() {
                write(out, &format!("{path}[{index}]"), value);
            }
        }
    }
}

impl From<FormError> for BadParameter {
    fn from(error: FormError) -> Self {
        let message = sentence(&error.to_string());
        let (code, param) = match &error {
            FormError::TooMany => (ParameterCode::Unknown, None),
            FormError::Semicolon | FormError::Escape | FormError::NotUtf8 | FormError::Nul => {
                (ParameterCode::InvalidCharacters, None)
            }
            FormError::Name(name) | FormError::TooDeep(name) | FormError::Refused(name) => {
                (ParameterCode::Unknown, Some(name))
            }
            FormError::NoValue(name) => (ParameterCode::InvalidEmpty, Some(name)),
            FormError::Duplicate(name)
            | FormError::Mixed(name)
            | FormError::Index(name)
            | FormError::Grouping(name) => (ParameterCode::Exclusive, Some(name)),
        };
        match param {
            Some(name) => bad(code, name, message),
            None => bad_request(code, message),
        }
    }
}
