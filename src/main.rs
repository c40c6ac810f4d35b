//! The `spendcap` command.

fn main() {}
