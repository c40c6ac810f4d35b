//! How many files the process may hold open: every client and every request to Stripe is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit to the most it may give itself. The usual 1024 is kept low for programs
/// that use `select`; a proxy that stops accepting at 500 requests would fail a billing run.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Refused by nothing that is known; where it is, the limit stays as the operator sees it.
    let _best_effort = setrlimit(Resource::Nofile, raised);
}
