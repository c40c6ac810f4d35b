//! What is wrong with the settings, where, and what to write instead.
//!
//! A message never repeats the value: a secret may stand where another setting belongs.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a mistake stands. Lines sort first, in the order of the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A line of a file, counted from 1.
    Line(PathBuf, usize),
    /// A file as a whole.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong, or what to write.
    pub message: String,
}

/// All mistakes. As an error it prints one a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Every one.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }

    pub(super) fn push(&mut self, place: Place, message: impl Into<String>) {
        let message = message.into();
        self.0.push(Mistake { place, message });
    }

    /// The same, those of one file in the order of its lines.
    pub(super) fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| a.place.cmp(&b.place));
        self
    }

    /// These, then `more`.
    pub(super) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// `value` where there is no mistake.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl Place {
    /// The line of `text` in which the byte `offset` stands.
    pub(super) fn line_of(file: &Path, text: &str, offset: usize) -> Self {
        let before = text.bytes().take(offset);
        let line = before.filter(|byte| *byte == b'\n').count() + 1;
        Self::Line(file.to_owned(), line)
    }
}

impl Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { place, message }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{place}: {message}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}
