//! `spendcap sandbox`: the stand-in as a program of its own.

use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{Sandbox, SandboxSettings};

/// Where stripe-mock listens too, so that existing settings fit.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:12111";
/// The key of demos; it opens nothing but this sandbox.
pub const SECRET_KEY_DEFAULT: &str = "sk_test_spendcap_sandbox";

/// Run a stand-in for Stripe, for trying things out
#[derive(Debug, Clone, Args)]
pub struct SandboxArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN_DEFAULT)]
    pub listen: SocketAddr,
    /// The one key that is let in; every other is answered 401 and recorded
    #[arg(long, value_name = "KEY", default_value = SECRET_KEY_DEFAULT)]
    pub secret_key: String,
    /// Do not keep the requests seen, for benchmarks
    #[arg(long)]
    pub no_record_requests: bool,
}

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// Where the address cannot be listened on.
pub async fn run(args: SandboxArgs) -> anyhow::Result<()> {
    let settings = SandboxSettings {
        listen: args.listen,
        secret_key: args.secret_key,
        record_requests: !args.no_record_requests,
        ..SandboxSettings::default()
    };
    let key = settings.secret_key.clone();
    let sandbox = Sandbox::start(settings)
        .with_context(|| format!("the sandbox cannot listen on {}", args.listen))?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A closed standard output does not stop the server.
    let _best_effort = std::io::stdout().write_all(greeting(&sandbox.base_url(), &key).as_bytes());
    tokio::select! {
        _signal = interrupt.recv() => {}
        _signal = terminate.recv() => {}
    }
    sandbox.shutdown().await;
    Ok(())
}

fn greeting(url: &str, key: &str) -> String {
    format!(
        "Sandbox Stripe on {url}

Charge a customer:
  curl {url}/v1/charges -u {key}: -H 'Idempotency-Key: k1' \\
    -d amount=9900 -d currency=usd -d customer=cus_1
Charges really made:
  curl {url}/_sandbox/charges
Break the next charge after it was made:
  curl {url}/_sandbox/faults -d '{{\"kind\":\"commit_then_fin\",\"times\":1}}'
Everything else:
  curl {url}/_sandbox
"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        sandbox: SandboxArgs,
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let cli = Cli::try_parse_from(["sandbox"]).unwrap();
        assert_eq!(cli.sandbox.listen.to_string(), LISTEN_DEFAULT);
        assert_eq!(cli.sandbox.secret_key, SECRET_KEY_DEFAULT);
        assert!(!cli.sandbox.no_record_requests);
    }
}
