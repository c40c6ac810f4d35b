//! Issues the demo's vault key the way an operator does: over the admin API.

use anyhow::Context as _;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::EXPECTED_TOTAL_MINOR;
use crate::cli::admin_client::AdminClient;
use crate::clock::Clock;
use crate::config::BaseUrl;

/// Forty days: longer than any run and its late retries.
const LIFE_SECONDS: i64 = 40 * 86_400;

/// Returns the secret.
pub(super) async fn issue(
    admin_url: &str,
    token: &str,
    on_duplicate: &str,
) -> anyhow::Result<String> {
    let wish = json!({
        "billing_period": "2026-08",
        "expected_total": EXPECTED_TOTAL_MINOR,
        "currency": "usd",
        "headroom": "1.10",
        "on_duplicate": on_duplicate,
        "expires_at": Clock::system().now().unix_seconds().saturating_add(LIFE_SECONDS),
    });
    let base = BaseUrl::parse(admin_url).context("the admin API's address is not a URL")?;
    let client = AdminClient::new(base, SecretString::from(token))?;
    let issued = client.post("/v1/vault_keys", &wish).await?;
    let secret = issued.get("secret").and_then(Value::as_str);
    Ok(secret
        .context("the admin API answered without a secret")?
        .to_owned())
}
