//! A sandbox, and a spendcap in front of it.

use anyhow::Context as _;
use tempfile::TempDir;
use uuid::Uuid;

use super::issue::issue;
use crate::app::App;
use crate::clock::Clock;
use crate::config::{Environment, Settings};
use crate::sandbox::{Sandbox, SandboxSettings};

/// Everything one race runs on; the ledger's file goes with it.
pub(super) struct World {
    sandbox: Sandbox,
    app: App,
    admin_token: String,
    vault_key: String,
    _directory: TempDir,
}

/// A sandbox that does not keep requests: only its charges count here.
pub(super) fn sandbox() -> anyhow::Result<Sandbox> {
    let settings = SandboxSettings {
        record_requests: false,
        ..SandboxSettings::default()
    };
    Sandbox::start(settings).context("the sandbox could not listen")
}

impl World {
    /// Starts both and issues the vault key of 2026-08 with this duplicate policy.
    pub(super) async fn start(on_duplicate: &str) -> anyhow::Result<Self> {
        let sandbox = sandbox()?;
        let directory = TempDir::new().context("no directory for the ledger")?;
        let admin_token = Uuid::new_v4().simple().to_string();
        let file = directory.path().join("ledger.db");
        let environment: Environment = [
            ("SPENDCAP_PROXY_LISTEN", "127.0.0.1:0".to_owned()),
            ("SPENDCAP_PROXY_DRAIN_MS", "0".to_owned()),
            ("SPENDCAP_ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
            (
                "SPENDCAP_LEDGER_URL",
                format!("sqlite://{}", file.display()),
            ),
            ("SPENDCAP_UPSTREAM_BASE_URL", sandbox.base_url()),
            (
                "STRIPE_SECRET_KEY",
                crate::sandbox::cli::SECRET_KEY_DEFAULT.to_owned(),
            ),
            ("SPENDCAP_ADMIN_TOKEN", admin_token.clone()),
        ]
        .into_iter()
        .collect();
        let settings = Settings::load(None, &environment)?;
        let app = App::start(settings, Clock::system()).await?;
        let admin_url = format!("http://{}", app.admin_addr());
        let vault_key = issue(&admin_url, &admin_token, on_duplicate).await?;
        Ok(Self {
            sandbox,
            app,
            admin_token,
            vault_key,
            _directory: directory,
        })
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(super) fn proxy_url(&self) -> String {
        format!("http://{}", self.app.proxy_addr())
    }

    pub(super) fn admin_url(&self) -> String {
        format!("http://{}", self.app.admin_addr())
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    pub(super) fn vault_key(&self) -> &str {
        &self.vault_key
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.app.stop().await?;
        self.sandbox.shutdown().await;
        Ok(())
    }
}
