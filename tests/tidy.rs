//! The house holds its own rules: who may import whom, how long a file may be, which words we use.
//!
//! The rules are the tables below. A new module gets a row in [`IMPORTS`] in the commit that adds it.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its sources fails"
)]

#[path = "tidy/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{Source, Use};

/// Which of our modules a module may import, outside its tests. An entry may name a single file
/// (`domain::time`). [`EVERYTHING`] is for those that put the parts together.
const IMPORTS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("clock", &["domain"]),
    ("config", &["domain"]),
    ("telemetry", &["domain", "config", "stripe::envelope"]),
    ("stripe", &["domain"]),
    ("ledger", &["domain", "clock"]),
    ("proxy", CORE),
    ("reconcile", CORE),
    // It runs the reading of a gap, which an operator asks for.
    ("admin", CONTROL),
    // Time and nothing else: the stand-in must not repeat a mistake of the code that it tests.
    ("sandbox", &["clock", "domain::time"]),
    ("app", EVERYTHING),
    ("cli", EVERYTHING),
];

const CORE: &[&str] = &["domain", "stripe", "ledger", "clock", "telemetry", "config"];
const CONTROL: &[&str] = &[
    "domain",
    "stripe",
    "ledger",
    "clock",
    "telemetry",
    "config",
    "reconcile::gap",
];
const EVERYTHING: &[&str] = &["*"];

/// Which modules may name a crate or a part of `std`, and why the others may not.
const CRATES: &[(&str, &[&str], &str)] = &[
    ("sqlx", &["ledger"], "one door to the database"),
    (
        "axum",
        &["admin", "sandbox"],
        "the data plane is plain hyper",
    ),
    ("std::env", &["config", "cli"], "settings arrive checked"),
    ("clap", &["cli", "sandbox"], "arguments arrive checked"),
    ("toml", &["config"], "settings arrive checked"),
    (
        "anyhow",
        &["app", "cli", "sandbox"],
        "a module has its own errors",
    ),
    (
        "prometheus",
        &["telemetry"],
        "all metric names stand in one place",
    ),
];

/// What keeps the pure modules pure: no IO, no async runtime, no clock.
const PURE: &[&str] = &["domain", "stripe"];
const IMPURE: &[&str] = &[
    "tokio",
    "hyper",
    "hyper_util",
    "sqlx",
    "axum",
    "tower",
    "tracing",
    "rustix",
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
];

/// A file holds one subject.
const FILE_LINES_MAX: usize = 400;

/// One word, one meaning: what not to write, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("virtual key", "vault key"),
    ("virtual_key", "vault_key"),
    ("proxy key", "vault key"),
    ("master key", "real key"),
    ("spend limit", "cap"),
    ("spend_limit", "cap"),
    ("spending limit", "cap"),
    ("idempotent key", "idempotency key"),
    ("dedup", "duplicate"),
    ("whitelist", "allow-list"),
    ("blacklist", "deny-list"),
    ("tenant", "account or namespace"),
    (
        "language model",
        "nothing: the repository speaks of the project alone",
    ),
    (
        "this session",
        "nothing: the repository speaks of the project alone",
    ),
    (
        "assistant",
        "nothing: the repository speaks of the project alone",
    ),
    (
        "co-authored-by",
        "nothing: the repository speaks of the project alone",
    ),
    ("/home/", "a path relative to the repository"),
    ("/root/", "a path relative to the repository"),
    ("/work/", "a path relative to the repository"),
];

#[test]
fn dependencies_point_inward() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let Some(module) = source.module() else {
            continue;
        };
        let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!(
                "{}: `{module}` has no row in IMPORTS",
                source.name()
            ));
            continue;
        };
        for Use { line, path } in source.own_paths() {
            let inward = path == module
                || path.starts_with(&format!("{module}::"))
                || allowed.iter().any(|entry| covers(entry, &path));
            if !inward {
                let name = source.name();
                wrong.push(format!(
                    "{name}:{line}: `{module}` may not import `crate::{path}`"
                ));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn libraries_stay_behind_their_doors() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let module = source.module().unwrap_or_default();
        for (library, doors, reason) in CRATES {
            if !doors.contains(&module.as_str()) {
                report(&mut wrong, &source, library, reason);
            }
        }
        if PURE.contains(&module.as_str()) {
            for library in IMPURE {
                report(
                    &mut wrong,
                    &source,
                    library,
                    "pure: no IO, no clock, no async",
                );
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn files_hold_one_subject() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let name = source.name();
        if source.lines_outside_tests() > FILE_LINES_MAX {
            let lines = source.lines_outside_tests();
            wrong.push(format!(
                "{name}: {lines} lines, at most {FILE_LINES_MAX}: split it"
            ));
        }
        if name.ends_with("/mod.rs") {
            wrong.push(format!("{name}: write `x.rs` beside `x/`"));
        }
    }
    assert_none(&wrong);
}

#[test]
fn nothing_is_left_undone_or_silenced() {
    let mut wrong = Vec::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        for (needle, instead) in [
            ("todo!", "do it, or leave it out"),
            ("unimplemented!", "do it, or leave it out"),
            ("#[ignore", "a test runs or does not exist"),
            ("#[should_panic", "assert on an error"),
        ] {
            for line in source.lines_containing(needle) {
                wrong.push(format!("{}:{line}: `{needle}`: {instead}", source.name()));
            }
        }
        for line in source.relaxations_without_reason() {
            wrong.push(format!(
                "{}:{line}: a relaxed lint names its reason",
                source.name()
            ));
        }
    }
    assert_none(&wrong);
}

#[test]
fn one_word_one_meaning() {
    let mut wrong = Vec::new();
    for path in files(
        root(),
        &["rs", "md", "toml", "sql", "sh", "json", "snap", ""],
    ) {
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .display()
            .to_string();
        // The tables above spell the words out, and the contract quotes Stripe.
        if ["tests/tidy.rs", "docs/stripe-contract.md"].contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default().to_lowercase();
        for (number, line) in text.lines().enumerate() {
            for (word, instead) in WORDS.iter().filter(|(word, _)| line.contains(word)) {
                wrong.push(format!(
                    "{name}:{}: \"{word}\": write {instead}",
                    number + 1
                ));
            }
        }
    }
    assert_none(&wrong);
}

/// True where the table's `entry` allows `path`, both such as `domain::time`.
fn covers(entry: &str, path: &str) -> bool {
    entry == "*" || path == entry || path.starts_with(&format!("{entry}::"))
}

fn report(wrong: &mut Vec<String>, source: &Source, library: &str, reason: &str) {
    for line in source.lines_naming(library) {
        wrong.push(format!("{}:{line}: `{library}` ({reason})", source.name()));
    }
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<Source> {
    let sources: Vec<_> = files(&root().join(folder), &["rs"])
        .iter()
        .map(|path| Source::read(root(), path))
        .collect();
    assert!(!sources.is_empty(), "no sources under {folder}");
    sources
}

/// Every file below `folder` with one of `extensions`, in order; not what was built or fetched.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default();
            if extensions.iter().any(|wanted| extension == *wanted) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
