//! The files of this repository, which tests hold against what runs.

use std::fs;
use std::path::Path;

/// Its folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file by its path in the repository.
#[track_caller]
pub(crate) fn read(path: &str) -> String {
    let text = fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}
