//! Finds each setting in the environment or the file, and collects what is wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::Environment;
use super::mistake::{Mistakes, Place};
use super::written::{Value, Written};

/// Variables that look like settings of a section and are not.
const OTHER_VARIABLES: [&str; 4] = [
    "SPENDCAP_ADMIN_TOKEN",
    "SPENDCAP_ADMIN_TOKEN_FILE",
    "SPENDCAP_ADMIN_URL",
    "SPENDCAP_LEDGER_URL_FILE",
];

/// Reads settings one by one; what was never asked for is unknown.
pub(super) struct Reader<'a> {
    written: Written,
    environment: &'a Environment,
    asked: BTreeSet<(&'static str, &'static str)>,
    mistakes: Mistakes,
}

impl<'a> Reader<'a> {
    pub(super) fn open(file: Option<&Path>, environment: &'a Environment) -> Self {
        let mut mistakes = Mistakes::default();
        let written = file.map(|file| Written::read(file, &mut mistakes));
        Self {
            written: written.unwrap_or_default(),
            environment,
            asked: BTreeSet::new(),
            mistakes,
        }
    }

    /// The setting as `parse` reads it; `None` where it is not set, or wrong and reported.
    pub(super) fn setting<T>(
        &mut self,
        section: &'static str,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.asked.insert((section, key));
        let (_, value) = self.find(section, key)?;
        match parse(&value) {
            Ok(value) => Some(value),
            Err(instead) => {
                self.refuse(section, key, &instead);
                None
            }
        }
    }

    /// An integer within `range`, both ends included.
    pub(super) fn integer(
        &mut self,
        section: &'static str,
        key: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        self.setting(section, key, |value| {
            let integer = match value {
                Value::Integer(integer) => u32::try_from(*integer).ok(),
                Value::Variable(text) => text.parse().ok(),
                Value::Text(_) | Value::Truth(_) | Value::List(_) | Value::Other => None,
            };
            integer
                .filter(|integer| range.contains(integer))
                .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A number of milliseconds within `range`, both ends included.
    pub(super) fn duration_ms(
        &mut self,
        section: &'static str,
        key: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<Duration> {
        let ms = self.integer(section, key, range)?;
        Some(Duration::from_millis(u64::from(ms)))
    }

    /// A text that `parse` understands; `instead` says what to write.
    pub(super) fn text<T>(
        &mut self,
        section: &'static str,
        key: &'static str,
        instead: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.setting(section, key, |value| match value {
            Value::Text(text) | Value::Variable(text) => {
                parse(text).ok_or_else(|| instead.to_owned())
            }
            Value::Integer(_) | Value::Truth(_) | Value::List(_) | Value::Other => {
                Err(instead.to_owned())
            }
        })
    }

    /// `true` or `false`.
    pub(super) fn truth(&mut self, section: &'static str, key: &'static str) -> Option<bool> {
        self.setting(section, key, |value| match value {
            Value::Truth(truth) => Ok(*truth),
            Value::Variable(text) if text == "true" => Ok(true),
            Value::Variable(text) if text == "false" => Ok(false),
            _ => Err("true or false".to_owned()),
        })
    }

    /// A file's path, relative to the working directory.
    pub(super) fn path(&mut self, section: &'static str, key: &'static str) -> Option<PathBuf> {
        let instead = "a file's path, or leave the key out";
        self.text(section, key, instead, |text| {
            (!text.is_empty()).then(|| PathBuf::from(text))
        })
    }

    /// A list of texts; a variable separates them by commas.
    pub(super) fn list<T>(
        &mut self,
        section: &'static str,
        key: &'static str,
        instead: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.setting(section, key, |value| {
            let parsed: Option<Vec<T>> = match value {
                Value::List(items) => items.iter().map(|item| parse(item)).collect(),
                Value::Variable(text) => text.split(',').map(|item| parse(item.trim())).collect(),
                Value::Text(_) | Value::Integer(_) | Value::Truth(_) | Value::Other => None,
            };
            parsed.ok_or_else(|| instead.to_owned())
        })
    }

    /// A variable that is no setting's own.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name)
    }

    /// True where the setting's value comes from the file.
    pub(super) fn is_from_file(&self, section: &'static str, key: &'static str) -> bool {
        matches!(self.find(section, key), Some((Place::Line(..), _)))
    }

    /// Reports the setting, where it stands, and what to write instead.
    pub(super) fn refuse(&mut self, section: &'static str, key: &'static str, instead: &str) {
        let place = match self.find(section, key) {
            Some((place, _)) => place,
            None => Place::Variable(variable_of(section, key)),
        };
        self.report(place, format!("{section}.{key}: write {instead}"));
    }

    pub(super) fn report(&mut self, place: Place, message: String) {
        self.mistakes.push(place, message);
    }

    /// Every setting that was asked for, as `section.key`.
    #[cfg(test)]
    pub(super) fn asked(&self) -> BTreeSet<String> {
        let asked = self.asked.iter();
        asked
            .map(|(section, key)| format!("{section}.{key}"))
            .collect()
    }

    /// The mistakes, those about unknown keys and variables included.
    pub(super) fn finish(mut self) -> Mistakes {
        self.report_unknown_keys();
        self.report_unknown_variables();
        self.mistakes.sorted()
    }

    fn find(&self, section: &'static str, key: &'static str) -> Option<(Place, Value)> {
        let variable = variable_of(section, key);
        if let Some(text) = self.environment.get(&variable) {
            return Some((Place::Variable(variable), Value::Variable(text.to_owned())));
        }
        let name = (section.to_owned(), key.to_owned());
        self.written.values.get(&name).cloned()
    }

    fn report_unknown_keys(&mut self) {
        for ((section, key), (place, _)) in &self.written.values {
            if self.asked.contains(&(section.as_str(), key.as_str())) {
                continue;
            }
            let known = self.keys_of(section);
            let message = if known.is_empty() {
                format!(
                    "[{section}]: unknown section: the sections are {}",
                    self.sections()
                )
            } else {
                format!("{section}.{key}: unknown key: [{section}] takes {known}")
            };
            self.mistakes.push(place.clone(), message);
        }
    }

    fn report_unknown_variables(&mut self) {
        for name in self.environment.names() {
            if OTHER_VARIABLES.contains(&name) {
                continue;
            }
            let Some((section, key)) = name
                .strip_prefix("SPENDCAP_")
                .and_then(|s| s.split_once('_'))
            else {
                continue;
            };
            // Kubernetes sets these for a Service of that name.
            if key == "PORT" || key.starts_with("PORT_") || key.starts_with("SERVICE_") {
                continue;
            }
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            let known = self.keys_of(&section);
            let asked = self.asked.contains(&(section.as_str(), key.as_str()));
            if !known.is_empty() && !asked {
                let message = format!("unknown setting: [{section}] takes {known}");
                self.mistakes
                    .push(Place::Variable(name.to_owned()), message);
            }
        }
    }

    fn keys_of(&self, section: &str) -> String {
        let keys = self.asked.iter().filter(|(of, _)| *of == section);
        keys.map(|(_, key)| *key).collect::<Vec<_>>().join(", ")
    }

    fn sections(&self) -> String {
        let sections: BTreeSet<_> = self.asked.iter().map(|(section, _)| *section).collect();
        sections.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn variable_of(section: &str, key: &str) -> String {
    format!("SPENDCAP_{section}_{key}").to_uppercase()
}
