//! A file that holds one secret, or a few.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use thiserror::Error;

/// A thousand admin tokens fit; this bounds a path that points elsewhere.
const SECRET_BYTES_MAX: u64 = 1 << 18;

/// Where a secret is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretFile {
    path: PathBuf,
}

/// The file cannot be read as a text of reasonable size.
#[derive(Debug, Error)]
pub enum SecretFileError {
    /// The system refused.
    #[error("cannot be read: {0}")]
    Io(io::ErrorKind),
    /// It is longer than anything that belongs there.
    #[error("longer than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: u64,
    },
    /// It is not UTF-8.
    #[error("not a text")]
    NotText,
}

impl SecretFile {
    /// Names the file; nothing is read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it, without the white space at its end.
    pub fn read(&self) -> Result<SecretString, SecretFileError> {
        let text = read_bounded(&self.path, SECRET_BYTES_MAX)?;
        Ok(SecretString::from(text.trim_end()))
    }
}

/// Reads a text of at most `bytes_max` bytes.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> Result<String, SecretFileError> {
    let io = |error: io::Error| SecretFileError::Io(error.kind());
    let file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    let mut bounded = file.take(bytes_max.saturating_add(1));
    let length = bounded.read_to_end(&mut bytes).map_err(io)?;
    if u64::try_from(length).unwrap_or(u64::MAX) > bytes_max {
        return Err(SecretFileError::TooLong { bytes_max });
    }
    String::from_utf8(bytes).map_err(|_| SecretFileError::NotText)
}
