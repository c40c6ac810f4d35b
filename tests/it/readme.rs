//! What the README and the runbook promise stays true: settings, links, commands, options, variables and codes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use spendcap::domain::refusal::ParameterCode;
use spendcap::stripe::envelope;

use crate::cli::{spendcap, stdout};
use crate::support::repository::{read, root};

/// `section.key` and the default as written; `–` where there is none.
fn settings_of_the_file() -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let (mut section, text) = (String::new(), read("proxy.toml"));
    for line in text.lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            name.clone_into(&mut section);
        }
        let plain = line.strip_prefix('#').unwrap_or(line);
        let Some((key, value)) = plain.split_once(" = ") else {
            continue;
        };
        let is_key = key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if is_key && !section.is_empty() {
            let default = if plain == line {
                format!("`{value}`")
            } else {
                "–".to_owned()
            };
            settings.insert(format!("{section}.{key}"), default);
        }
    }
    assert!(settings.len() > 20, "{settings:?}");
    settings
}

/// The text between each pair of `fence`s.
fn between<'a>(text: &'a str, fence: &str) -> Vec<&'a str> {
    text.split(fence).skip(1).step_by(2).collect()
}

/// The pages that an operator follows to the letter.
const PAGES: [&str; 2] = ["README.md", "docs/runbook.md"];

/// Everything that is written as code: blocks, with continued lines joined, and spans.
fn code() -> Vec<String> {
    PAGES.into_iter().flat_map(code_of).collect()
}

fn code_of(page: &str) -> Vec<String> {
    let page = read(page);
    let mut lines = Vec::new();
    for block in between(&page, "```") {
        let block = block.replace("\\\n", " ");
        lines.extend(block.lines().map(str::to_owned));
    }
    let prose: String = page.split("```").step_by(2).collect();
    lines.extend(
        between(&prose, "`")
            .into_iter()
            .map(|span| span.replace('\n', " ")),
    );
    lines
}

#[test]
fn the_settings_are_those_of_the_file() {
    let readme = read("README.md");
    let mut told = BTreeMap::new();
    for row in readme.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let name = cells[0].trim_matches('`');
        if name.contains('.') && cells.len() == 3 {
            told.insert(name.to_owned(), cells[1].to_owned());
        }
    }
    assert_eq!(told, settings_of_the_file());
}

#[test]
fn links_lead_somewhere() {
    for page in PAGES {
        let text = read(page);
        let targets = text.split("](").skip(1);
        let targets: Vec<&str> = targets
            .map(|rest| rest.split(')').next().unwrap())
            .collect();
        assert!(targets.len() >= 5, "{page}: {targets:?}");
        for target in targets {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = root().join(page).parent().unwrap().to_owned();
            let path = if file.is_empty() {
                root().join(page)
            } else {
                folder.join(file)
            };
            assert!(path.exists(), "{page}: {target}");
            let found = anchor.is_empty() || anchors(&path).contains(anchor);
            assert!(found, "{page}: {target}");
        }
    }
}

/// What `#…` can name on a page.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let titles = text.lines().filter_map(|line| line.strip_prefix("## "));
    titles
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect()
}

#[test]
fn commands_and_options_exist() {
    let folder = tempfile::tempdir().unwrap();
    let mut commands = 0;
    for line in code() {
        let starts = [
            "spendcap ",
            "cargo run --release -- ",
            "SPENDCAP_LOG_FORMAT=text spendcap ",
        ];
        let Some(call) = starts
            .iter()
            .find_map(|start| line.trim().strip_prefix(start))
        else {
            continue;
        };
        let call = call.split(" #").next().unwrap();
        let words = call
            .split_whitespace()
            .take_while(|word| word.bytes().all(|b| b.is_ascii_lowercase()));
        let mut arguments: Vec<&str> = words.collect();
        arguments.push("--help");
        let help = spendcap(folder.path(), &arguments, &[]);
        assert_eq!(help.status.code(), Some(0), "{line}");
        let help = stdout(&help);
        for option in call
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
        {
            assert!(help.contains(option), "{line}: {option}");
        }
        commands += 1;
    }
    assert!(commands >= 30, "{commands}");
}

#[test]
fn variables_are_settings_or_secrets() {
    let known: BTreeSet<String> = settings_of_the_file()
        .into_keys()
        .map(|name| format!("SPENDCAP_{}", name.replace('.', "_").to_uppercase()))
        .collect();
    let others = [
        "STRIPE_SECRET_KEY",
        "STRIPE_SECRET_KEY_FILE",
        "SPENDCAP_ADMIN_TOKEN",
        "SPENDCAP_ADMIN_TOKEN_FILE",
        "SPENDCAP_ADMIN_URL",
        "SPENDCAP_SECTION_KEY",
    ];
    let mut found = 0;
    for line in code() {
        let words = line.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        for word in
            words.filter(|word| word.starts_with("SPENDCAP_") || word.starts_with("STRIPE_"))
        {
            assert!(
                known.contains(word) || others.contains(&word),
                "{line}: {word}"
            );
            found += 1;
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn refusal_codes_are_those_of_the_envelope() {
    let readme = read("README.md");
    let codes: BTreeSet<&str> = envelope::codes().collect();
    let rows = readme.lines().filter(|line| {
        let status = line.strip_prefix("| ").and_then(|rest| rest.get(..3));
        status.is_some_and(|status| status.parse::<u16>().is_ok())
    });
    let mut told = BTreeSet::new();
    for row in rows {
        let codes = row.split('|').nth(2).unwrap();
        told.extend(between(codes, "`").into_iter().map(str::to_owned));
    }
    for code in told.iter().filter(|code| !code.ends_with('…')) {
        assert!(codes.contains(code.as_str()), "{code}");
    }
    // Stripe's own, on objects that are not there or done with, are Stripe's to explain.
    let stripes = ["charge_already_captured", "resource_missing"];
    // Those of a parameter are one row together.
    let of_parameters = ParameterCode::ALL.map(ParameterCode::as_str);
    for code in codes {
        assert!(
            told.contains(code) || stripes.contains(&code) || of_parameters.contains(&code),
            "{code} is not in the README"
        );
    }
}
