//! Commands that fail say why, and no secret.

use std::process::Command;

use spendcap::sandbox::{Sandbox, SandboxSettings};
use tempfile::TempDir;

use super::{ADMIN_TOKEN, DATABASE_PASSWORD, REAL_KEY, assert_free_of, disguises};
use crate::support::relay::ClosedPort;

#[tokio::test(flavor = "multi_thread")]
async fn that_fail_print_no_secret() {
    let folder = TempDir::new().unwrap();
    let nowhere = ClosedPort::take();
    // It takes another key.
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let database = format!("postgres://u:{DATABASE_PASSWORD}@{}/db", nowhere.addr());
    let admin = format!("http://{}", nowhere.addr());
    let secrets = [REAL_KEY, ADMIN_TOKEN, DATABASE_PASSWORD];
    let secrets: Vec<String> = secrets
        .iter()
        .flat_map(|secret| disguises(secret))
        .collect();
    for (arguments, ledger, key) in [
        ("serve", database.as_str(), REAL_KEY),
        ("serve", "sqlite://ledger.db", REAL_KEY),
        ("serve", "sqlite://ledger.db", DATABASE_PASSWORD),
        ("check", &database, REAL_KEY),
        ("migrate", &database, REAL_KEY),
        ("healthcheck", &database, REAL_KEY),
        ("keys list", &database, REAL_KEY),
        ("keys show sk_vault_x", &database, REAL_KEY),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
        command
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .env_clear()
            .env("SPENDCAP_LEDGER_URL", ledger)
            .env("STRIPE_SECRET_KEY", key)
            .env("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("SPENDCAP_ADMIN_URL", &admin)
            .env("SPENDCAP_UPSTREAM_BASE_URL", sandbox.base_url())
            .env("SPENDCAP_PROXY_LISTEN", "127.0.0.1:0")
            .env("SPENDCAP_ADMIN_LISTEN", "127.0.0.1:0")
            .env("SPENDCAP_LOG_LEVEL", "trace")
            .env("RUST_BACKTRACE", "full");
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = output.await.unwrap();
        assert!(!output.status.success(), "{arguments}");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(!said.is_empty(), "{arguments}");
        assert_free_of(&secrets, arguments, &said);
    }
}
