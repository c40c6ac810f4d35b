//! `spendcap healthcheck`: `/readyz` as an exit code, for containers that have no curl.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::settings::SettingsArgs;

/// `/readyz` itself gives up on the ledger sooner than this.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A status and a few reasons.
const ANSWER_BYTES_MAX: usize = 1 << 16;

/// Ask the running server whether it is ready to serve: exit code 0 or 1
#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Needs the admin listener's address and no secret.
pub(super) async fn run(args: &HealthcheckArgs) -> anyhow::Result<()> {
    let listen = args.settings.without_secrets()?.admin.listen;
    let url = format!("http://{}/readyz", reachable(listen));
    let answer = tokio::time::timeout(TIMEOUT, ask(&url)).await;
    let (status, body) = answer
        .map_err(|_elapsed| anyhow!("no answer within {} s", TIMEOUT.as_secs()))
        .flatten()
        .with_context(|| format!("not ready: {url} does not answer"))?;
    if status == StatusCode::OK {
        writeln!(io::stdout().lock(), "ready")?;
        return Ok(());
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reasons = body["reasons"].as_array().map(Vec::as_slice);
    let reasons = reasons.unwrap_or_default().iter().filter_map(Value::as_str);
    let reasons: Vec<&str> = reasons.collect();
    if reasons.is_empty() {
        bail!("not ready: {url} answered {status}");
    }
    bail!("not ready: {}", reasons.join(", "))
}

async fn ask(url: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let response = client
        .request(Request::get(url).body(Empty::new())?)
        .await?;
    let (status, body) = (response.status(), response.into_body());
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow!("the answer broke off: {error}"))?;
    Ok((status, body.to_bytes()))
}

/// A listener on every address is asked on loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_asked_on_loopback() {
        for (listen, asked) in [
            ("127.0.0.1:12112", "127.0.0.1:12112"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
