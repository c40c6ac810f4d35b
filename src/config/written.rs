//! `proxy.toml` as written: every value with its line, nothing judged but its shape.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistakes, Place};
use super::secret_file::read_bounded;

/// A file of settings is a few kilobytes; this bounds a path that points elsewhere.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A value as written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    /// A variable's text, which may stand for any of the others.
    Variable(String),
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Truth(bool),
    /// A list of strings.
    List(Vec<String>),
    /// Something no setting takes.
    Other,
}

/// The file's settings by section and key.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) values: BTreeMap<(String, String), (Place, Value)>,
}

impl Written {
    /// Reads `file`; what cannot be read is a mistake, and the rest is returned.
    pub(super) fn read(file: &Path, mistakes: &mut Mistakes) -> Self {
        match read_bounded(file, FILE_BYTES_MAX) {
            Ok(text) => Self::parse(file, &text, mistakes),
            Err(error) => {
                mistakes.push(Place::File(file.to_owned()), error.to_string());
                Self::default()
            }
        }
    }

    fn parse(file: &Path, text: &str, mistakes: &mut Mistakes) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let place = match error.span() {
                Some(span) => Place::line_of(file, text, span.start),
                None => Place::File(file.to_owned()),
            };
            mistakes.push(place, format!("not TOML: {}", error.message()));
        }
        let mut walk = Walk {
            file: file.to_owned(),
            text,
            mistakes,
            written: Self::default(),
        };
        for (section, value) in table.get_ref() {
            walk.section(section, value);
        }
        walk.written
    }
}

struct Walk<'a> {
    file: PathBuf,
    text: &'a str,
    mistakes: &'a mut Mistakes,
    written: Written,
}

impl Walk<'_> {
    fn section(&mut self, name: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let place = Place::line_of(&self.file, self.text, name.span().start);
        let Some(keys) = value.get_ref().as_table() else {
            if !self.refuse_secret(&place, name.get_ref(), value.get_ref()) {
                let message = format!("{}: settings stand in a section", name.get_ref());
                self.mistakes.push(place, message);
            }
            return;
        };
        for (key, value) in keys {
            let place = Place::line_of(&self.file, self.text, key.span().start);
            if !self.refuse_secret(&place, key.get_ref(), value.get_ref()) {
                let name = (name.get_ref().to_string(), key.get_ref().to_string());
                let value = value_of(value.get_ref());
                self.written.values.insert(name, (place, value));
            }
        }
    }

    /// True where the entry is a secret, which is a mistake whatever its key.
    fn refuse_secret(&mut self, place: &Place, key: &str, value: &DeValue<'_>) -> bool {
        let named = SECRET_KEYS.contains(&key);
        let looks = value
            .as_str()
            .is_some_and(|text| SECRET_STARTS.iter().any(|start| text.starts_with(start)));
        if named || looks {
            self.mistakes.push(
                place.clone(),
                "a secret does not belong in this file: set STRIPE_SECRET_KEY, \
                 SPENDCAP_ADMIN_TOKEN, or either with _FILE, and replace this one",
            );
        }
        named || looks
    }
}

const SECRET_KEYS: [&str; 9] = [
    "STRIPE_SECRET_KEY",
    "admin_token",
    "api_key",
    "password",
    "secret",
    "secret_key",
    "stripe_key",
    "stripe_secret_key",
    "token",
];

const SECRET_STARTS: [&str; 4] = ["sk_", "rk_", "whsec_", "-----BEGIN"];

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let digits = integer.as_str();
            i64::from_str_radix(digits, integer.radix()).map_or(Value::Other, Value::Integer)
        }
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str());
            let texts: Option<Vec<_>> = texts.map(|text| text.map(str::to_owned)).collect();
            texts.map_or(Value::Other, Value::List)
        }
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => Value::Other,
    }
}
