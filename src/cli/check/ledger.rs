//! The ledger: can it be reached, is it ours to take, does its schema fit, is it safe with money.

use std::error::Error as _;

use secrecy::SecretString;

use super::{Finding, Verdict};
use crate::config::LedgerUrl;
use crate::ledger::{Inspected, Ledger, OpenError, Weakness};

/// Whose money the ledger says it holds; nothing before the first `serve`.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    pub(super) mode: Option<String>,
    pub(super) account: Option<String>,
}

/// The findings, and what is pinned where the ledger could be read.
pub(super) async fn check(url: &LedgerUrl) -> (Vec<Finding>, Option<Pinned>) {
    let inspected = match url {
        LedgerUrl::Sqlite(file) => Ledger::inspect_sqlite(file).await,
        LedgerUrl::Postgres(url) => {
            let url = SecretString::from(url.expose());
            Ledger::inspect_postgres(&url).await.map(Some)
        }
    };
    match inspected {
        Ok(None) => {
            let text = format!("{url} does not exist yet: `serve` creates it");
            (vec![finding(Verdict::Ok(text))], Some(Pinned::default()))
        }
        Ok(Some(found)) => {
            let findings = findings(url, &found);
            let Inspected { mode, account, .. } = found;
            (findings, Some(Pinned { mode, account }))
        }
        Err(error) => {
            let text = format!("{url}: {}", told(&error));
            (vec![finding(Verdict::Wrong(text))], None)
        }
    }
}

fn findings(url: &LedgerUrl, found: &Inspected) -> Vec<Finding> {
    let version = found.schema_version;
    let schema = match (version, found.migrated) {
        (_, true) => format!("{url} has schema version {version}"),
        (0, false) => format!("{url} has no schema yet: `serve` or `migrate` creates it"),
        (_, false) => {
            format!("{url} has schema version {version}: `serve` or `migrate` updates it")
        }
    };
    let weaknesses = found.weaknesses.iter().map(|weakness| verdict(*weakness));
    std::iter::once(Verdict::Ok(schema))
        .chain(weaknesses)
        .map(finding)
        .collect()
}

fn verdict(weakness: Weakness) -> Verdict {
    let text = weakness.message().to_owned();
    if weakness.is_fatal() {
        Verdict::Wrong(text)
    } else {
        Verdict::Warn(text)
    }
}

/// The error and what is behind it, each once.
fn told(error: &OpenError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

fn finding(verdict: Verdict) -> Finding {
    Finding {
        part: "ledger",
        verdict,
    }
}
