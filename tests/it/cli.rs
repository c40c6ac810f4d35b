//! The command as a process: exit codes, and what it prints where.

mod check;
mod demo;
mod healthcheck;
mod migrate;
mod serve;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in `folder` with these variables and no others.
pub(crate) fn spendcap(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spendcap"))
        .current_dir(folder)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const SECRETS: [(&str, &str); 2] = [
    ("STRIPE_SECRET_KEY", "sk_test_hunter2"),
    ("SPENDCAP_ADMIN_TOKEN", "hunter2-hunter2-hunter2"),
];

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&[][..], 2),
        (&["chek"], 2),
        (&["check", "--confg", "x"], 2),
        (&["--help"], 0),
        (&["check", "--help"], 0),
        (&["--version"], 0),
    ] {
        let output = spendcap(folder.path(), arguments, &[]);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(output.stdout.is_empty(), code == 2, "{arguments:?}");
    }
}

#[test]
fn help_names_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = spendcap(folder.path(), &["--help"], &[]);
    insta::assert_snapshot!(stdout(&output));
}
