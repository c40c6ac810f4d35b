//! `spendcap check`: says whether `serve` would start, and everything that keeps it from it.

use std::io::{self, Write as _};

use clap::Args;

use super::settings::SettingsArgs;
use crate::config::{Settings, read_roots, read_server_identity};

/// Check settings, secrets and the files they name, without serving.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// What was found about one part.
struct Finding {
    part: &'static str,
    verdict: Result<String, String>,
}

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let settings = args.settings.load()?;
    let findings = [secrets(&settings), tls(&settings), upstream(&settings)];
    let mut output = io::stdout().lock();
    for Finding { part, verdict } in &findings {
        let (word, text) = match verdict {
            Ok(text) => ("ok", text),
            Err(text) => ("wrong", text),
        };
        writeln!(output, "{part:<10}{word:<7}{text}")?;
    }
    let wrong = findings.iter().filter(|finding| finding.verdict.is_err());
    match wrong.count() {
        0 => Ok(()),
        1 => anyhow::bail!("one part is wrong"),
        count => anyhow::bail!("{count} parts are wrong"),
    }
}

fn secrets(settings: &Settings) -> Finding {
    let mode = if settings.secrets.stripe_key.livemode() {
        "live"
    } else {
        "test"
    };
    let tokens = settings.secrets.admin_tokens.iter().count();
    Finding {
        part: "secrets",
        verdict: Ok(format!("a {mode} key and {tokens} admin token(s)")),
    }
}

fn tls(settings: &Settings) -> Finding {
    let listen = settings.config.proxy.listen;
    let verdict = match &settings.config.proxy.tls {
        None => Ok(format!("plain HTTP on {listen}")),
        Some(files) => match read_server_identity(files) {
            Ok(_) => Ok(format!("TLS on {listen}")),
            Err(error) => Err(error.to_string()),
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
        None => Ok(upstream.base_url.to_string()),
        Some(Ok(roots)) => {
            let count = roots.len();
            Ok(format!(
                "{}, trusting {count} certificate(s)",
                upstream.base_url
            ))
        }
        Some(Err(error)) => Err(error.to_string()),
    };
    Finding {
        part: "upstream",
        verdict,
    }
}
