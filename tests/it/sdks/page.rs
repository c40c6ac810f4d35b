//! `docs/sdks.md`: its prose is written by hand, its tables by the run.

use std::fmt::Write as _;
use std::fs;

use spendcap::domain::refusal::ParameterCode;
use spendcap::stripe::envelope;

use super::client::{Record, Sdk};
use super::faults::{self, Story};
use super::refusals;
use crate::support::repository::{read, root};

const PAGE: &str = "docs/sdks.md";

/// What one SDK's run came to, in the order of the cases.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) sdk: Sdk,
    pub(super) refusals: Vec<Record>,
    pub(super) faults: Vec<Story>,
}

/// Set, the page is written; otherwise it is compared.
const WRITE: &str = "SPENDCAP_WRITE_DOCS";

/// Fails where the page says anything else than what was seen.
pub(super) fn check(reports: &[Report]) {
    let page = read(PAGE);
    let mut seen = page.clone();
    for (name, table) in [
        ("refusals", refusal_table(reports)),
        ("retries", retry_table(reports)),
        ("faults", fault_table(reports)),
    ] {
        seen = put(&seen, name, &table);
    }
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting")]
    if std::env::var(WRITE).is_ok() {
        fs::write(root().join(PAGE), seen).unwrap();
        return;
    }
    if page != seen {
        let told: Vec<&str> = page.lines().collect();
        let new: String = seen
            .lines()
            .filter(|line| !told.contains(line))
            .fold(String::new(), |all, line| all + line + "\n");
        panic!("{PAGE} is not what was seen. {WRITE}=1 writes it anew. What it lacks:\n{new}");
    }
}

/// Puts a table between its two marks.
fn put(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: by the run -->\n"), "<!-- end -->");
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{begin}{table}{end}{after}")
}

/// One column for each version of an SDK: its uses raise the same.
fn refusal_table(reports: &[Report]) -> String {
    let mut columns: Vec<&Report> = Vec::new();
    for report in reports {
        let same_version = |other: &&&Report| version(other) == version(report);
        let Some(other) = columns.iter().find(same_version) else {
            columns.push(report);
            continue;
        };
        for (one, same) in report.refusals.iter().zip(&other.refusals) {
            let shown = |record: &Record| (record.class.clone(), record.code_hidden);
            assert_eq!(shown(one), shown(same), "{one:?} {same:?}");
        }
    }
    let mut rows = vec![vec!["status".into(), "`code`".into(), "when".into()]];
    rows[0].extend(columns.iter().map(|report| version(report)));
    for (at, case) in refusals::CASES.iter().enumerate() {
        let code = case
            .code
            .map_or_else(|| "none".into(), |code| format!("`{code}`"));
        let mut row = vec![case.status.to_string(), code, case.what.to_owned()];
        row.extend(columns.iter().map(|report| class(&report.refusals[at])));
        rows.push(row);
    }
    table(&rows)
}

/// What each use of an SDK sends again by itself, where it is told that it may.
fn retry_table(reports: &[Report]) -> String {
    let mut rows = vec![vec!["answer".to_owned()]];
    rows[0].extend(reports.iter().map(usage));
    for (at, case) in refusals::CASES.iter().enumerate() {
        if !case.should_retry {
            continue;
        }
        let mut row = vec![format!("{} `{}`", case.status, case.code.unwrap())];
        let retries = reports.iter().map(|report| report.refusals[at].retries);
        row.extend(retries.map(|retries| retries.to_string()));
        rows.push(row);
    }
    table(&rows)
}

fn fault_table(reports: &[Report]) -> String {
    let mut rows = vec![vec!["what goes wrong, once".to_owned()]];
    rows[0].extend(reports.iter().map(usage));
    for (at, case) in faults::CASES.iter().enumerate() {
        let mut row = vec![case.what.to_owned()];
        row.extend(reports.iter().map(|report| ending(&report.faults[at])));
        rows.push(row);
    }
    table(&rows)
}

/// What the call ended with, and the next one if that was an exception.
fn ending(story: &Story) -> String {
    let Some(again) = &story.again else {
        return "the charge".to_owned();
    };
    let first = class(&story.first);
    match &again.class {
        None => format!("{first}; again: the charge"),
        Some(_) => format!("{first}; again: the same"),
    }
}

fn class(record: &Record) -> String {
    let hidden = if record.code_hidden { " †" } else { "" };
    format!("`{}`{hidden}", record.class.as_deref().unwrap())
}

fn version(report: &Report) -> String {
    let Record {
        client, version, ..
    } = &report.refusals[0];
    format!("{client} {version}")
}

fn usage(report: &Report) -> String {
    format!("{}{}", version(report), report.sdk.how)
}

fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        writeln!(out, "| {} |", row.join(" | ")).unwrap();
        if at == 0 {
            writeln!(out, "|{}", "---|".repeat(row.len())).unwrap();
        }
    }
    out
}

/// What a refusal becomes is known for every one that there is.
#[test]
fn every_refusal_has_a_case() {
    // Those of a parameter differ in nothing that an SDK looks at: one stands for all.
    let of_parameters = ParameterCode::ALL.map(ParameterCode::as_str);
    for code in envelope::codes().filter(|code| !of_parameters.contains(code)) {
        // Where there is no code, it is the type that is counted.
        let mut cases = refusals::CASES.iter();
        let found = cases.any(|case| case.code.unwrap_or(case.error_type) == code);
        assert!(found, "{code} has no case in tests/it/sdks/refusals.rs");
    }
}
