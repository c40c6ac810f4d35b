//! `spendcap check`: says whether `serve` would start, and everything that keeps it from it.

mod account;
mod ledger;
mod reads;

use std::io::{self, Write as _};

use clap::Args;

use super::settings::{SECRETS_HELP, SettingsArgs};
use crate::config::{Settings, read_roots, read_server_identity};

/// Check settings, secrets, ledger and Stripe account, without serving
///
/// Prints a line for each part: ok, warn or wrong. Exits with 1 where anything is wrong. Changes
/// nothing. Whether the listeners' ports are free is not checked. An SQLite ledger that a running
/// `serve` has open is called wrong, since a second `serve` could not start on it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_help = SECRETS_HELP)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Check settings, secrets and files only: ask neither the ledger nor Stripe
    #[arg(long)]
    offline: bool,
}

/// What was found about one part.
struct Finding {
    part: &'static str,
    verdict: Verdict,
}

enum Verdict {
    Ok(String),
    /// It would start, and somebody should know.
    Warn(String),
    /// It would not start, or would not work.
    Wrong(String),
}

pub(super) async fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let settings = args.settings.load()?;
    let mut findings = vec![secrets(&settings), tls(&settings), upstream(&settings)];
    if !args.offline {
        let (found, pinned) = ledger::check(&settings.config.ledger.url).await;
        findings.extend(found);
        findings.push(account::check(&settings, pinned.as_ref()).await);
        findings.push(reads::check(&settings).await);
    }
    print(&findings)?;
    let wrong = findings
        .iter()
        .filter(|finding| matches!(finding.verdict, Verdict::Wrong(_)));
    match wrong.count() {
        0 => Ok(()),
        1 => anyhow::bail!("one part is wrong"),
        count => anyhow::bail!("{count} parts are wrong"),
    }
}

fn print(findings: &[Finding]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for Finding { part, verdict } in findings {
        let (word, text) = match verdict {
            Verdict::Ok(text) => ("ok", text),
            Verdict::Warn(text) => ("warn", text),
            Verdict::Wrong(text) => ("wrong", text),
        };
        writeln!(output, "{part:<10}{word:<7}{text}")?;
    }
    Ok(())
}

fn secrets(settings: &Settings) -> Finding {
    let mode = mode(settings.secrets.stripe_key.livemode());
    let tokens = settings.secrets.admin_tokens.iter().count();
    Finding {
        part: "secrets",
        verdict: Verdict::Ok(format!("a {mode} key and {tokens} admin token(s)")),
    }
}

fn tls(settings: &Settings) -> Finding {
    let listen = settings.config.proxy.listen;
    let verdict = match &settings.config.proxy.tls {
        None if listen.ip().is_loopback() => Verdict::Ok(format!("plain HTTP on {listen}")),
        None => Verdict::Warn(format!(
            "plain HTTP on {listen}: vault keys travel in clear text, so keep it behind a TLS terminator"
        )),
        Some(files) => match read_server_identity(files) {
            Ok(_) => Verdict::Ok(format!("TLS on {listen}")),
            Err(error) => Verdict::Wrong(error.to_string()),
        },
    };
    Finding {
        part: "listener",
        verdict,
    }
}

fn upstream(settings: &Settings) -> Finding {
    let upstream = &settings.config.upstream;
    let verdict = match upstream.ca_file.as_deref().map(read_roots) {
        None => Verdict::Ok(upstream.base_url.to_string()),
        Some(Ok(roots)) => {
            let count = roots.len();
            Verdict::Ok(format!(
                "{}, trusting {count} certificate(s)",
                upstream.base_url
            ))
        }
        Some(Err(error)) => Verdict::Wrong(error.to_string()),
    };
    Finding {
        part: "upstream",
        verdict,
    }
}

const fn mode(livemode: bool) -> &'static str {
    if livemode { "live" } else { "test" }
}
