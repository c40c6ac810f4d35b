//! The `spendcap` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    spendcap::cli::main()
}
