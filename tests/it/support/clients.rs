//! What `./test` installs for the clients under `tests/clients`.

use std::path::{Path, PathBuf};

use super::repository::root;

/// The folder that `tests/clients/{name}/install` filled.
///
/// # Panics
/// Without `SPENDCAP_TEST_CLIENTS`: a missing client is a failure, never a skipped test.
pub(crate) fn installed(name: &str) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting")]
    let Ok(clients) = std::env::var("SPENDCAP_TEST_CLIENTS") else {
        panic!("SPENDCAP_TEST_CLIENTS is not set: run the tests with ./test");
    };
    Path::new(&clients).join(name)
}

/// The folder of the client's own sources.
pub(crate) fn sources(name: &str) -> PathBuf {
    root().join("tests/clients").join(name)
}
