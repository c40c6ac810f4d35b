//! Secrets stay where they belong: nothing that is logged, answered, printed or stored carries one.

mod at_rest;
mod commands;
mod debug;
mod tour;

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tempfile::TempDir;

use crate::support::LedgerKind;
use crate::support::daemon::Daemon;
use crate::support::postgres::fresh_database;
use crate::support::relay::Relay;
use crate::support::world::{environment, ledger_url};

const REAL_KEY: &str = "sk_test_51RealKeyThatNobodyMaySee";
const LIVE_KEY: &str = "sk_live_51LiveKeyThatNobodyMaySee";
const ADMIN_TOKEN: &str = "admin-token-that-nobody-may-see";
const DATABASE_PASSWORD: &str = "database-password-that-nobody-may-see";

/// What a customer's request carries: it may be passed on, never logged or stored.
const CARD_NUMBER: &str = "4242424242424242";
const DESCRIPTION: &str = "a-description-that-nobody-may-see";

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_with_json_lines() {
    nothing_leaks(LedgerKind::Sqlite, "json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_with_text_lines() {
    nothing_leaks(LedgerKind::Sqlite, "text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_with_json_lines() {
    nothing_leaks(LedgerKind::Postgres, "json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_with_text_lines() {
    nothing_leaks(LedgerKind::Postgres, "text").await;
}

async fn nothing_leaks(ledger: LedgerKind, format: &str) {
    let folder = TempDir::new().unwrap();
    let sandbox = Sandbox::start(SandboxSettings {
        secret_key: REAL_KEY.to_owned(),
        ..SandboxSettings::default()
    })
    .unwrap();
    let (url, relay) = match ledger {
        LedgerKind::Sqlite => (ledger_url(ledger, &folder).await, None),
        LedgerKind::Postgres => {
            let (url, relay) = database_with_a_password().await;
            (url, Some(relay))
        }
    };
    let key_file = folder.path().join("stripe_key");
    std::fs::write(&key_file, REAL_KEY).unwrap();
    let settings = [
        ("SPENDCAP_LOG_LEVEL", "trace"),
        ("SPENDCAP_LOG_FORMAT", format),
        ("SPENDCAP_UPSTREAM_TIMEOUT_MS", "1500"),
        ("SPENDCAP_UPSTREAM_CONNECT_TIMEOUT_MS", "1500"),
        ("SPENDCAP_BREAKER_UNKNOWN_OUTCOMES_MAX", "9"),
        ("SPENDCAP_BREAKER_PROBE_INTERVAL_MS", "10"),
        ("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN),
        ("STRIPE_SECRET_KEY", ""),
        ("STRIPE_SECRET_KEY_FILE", key_file.to_str().unwrap()),
        // What libraries look at, where they look at anything.
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "full"),
    ];
    let environment = environment(&url, &sandbox.base_url(), &settings);
    let mut daemon = Daemon::start(folder.path(), &environment).await;
    let seen = tour::take(&daemon, &sandbox, relay.as_ref(), &key_file).await;
    daemon.terminate();
    let (_, log) = daemon.ended().await;

    let mut secrets = vec![
        REAL_KEY.to_owned(),
        LIVE_KEY.to_owned(),
        ADMIN_TOKEN.to_owned(),
        DATABASE_PASSWORD.to_owned(),
    ];
    secrets.extend(seen.vault_secrets);
    let secrets: Vec<String> = secrets
        .iter()
        .flat_map(|secret| disguises(secret))
        .collect();
    for answer in &seen.answers {
        assert_free_of(&secrets, "an answer", answer);
    }
    let mut unlogged = secrets;
    unlogged.extend([CARD_NUMBER, DESCRIPTION].map(str::to_owned));
    assert!(log.contains("Serving") && log.contains("Stopped"), "{log}");
    assert_free_of(&unlogged, "the log", &log);
    let stored = match ledger {
        LedgerKind::Sqlite => at_rest::files(folder.path(), &key_file),
        LedgerKind::Postgres => at_rest::tables(&url).await,
    };
    assert!(stored.contains("cus_settled"), "the charges are stored");
    assert_free_of(&unlogged, "the ledger", &stored);
}

/// The ways in which a secret may come out.
fn disguises(secret: &str) -> Vec<String> {
    let hex = |text: &str| {
        text.bytes()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
    };
    // Without what every key of its kind begins with.
    let core = secret.rsplit('_').next().unwrap_or(secret);
    vec![
        core.to_owned(),
        STANDARD.encode(format!("{secret}:")),
        STANDARD.encode(secret),
        hex(core),
    ]
}

#[track_caller]
fn assert_free_of(secrets: &[String], place: &str, text: &str) {
    for secret in secrets {
        if let Some(at) = text.find(secret.as_str()) {
            let before = text[..at].chars().rev().take(300).collect::<Vec<_>>();
            let before: String = before.into_iter().rev().collect();
            panic!("{secret} is in {place}, after: {before}");
        }
    }
}

/// A database of a user who needs a password, behind a relay.
async fn database_with_a_password() -> (String, Relay) {
    let url = fresh_database().await;
    let (server, database) = url.rsplit_once('/').unwrap();
    let (_, host) = server.rsplit_once('@').unwrap();
    let host: SocketAddr = host.parse().unwrap();
    let user = format!("{database}_user");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    for statement in [
        format!("CREATE ROLE {user} LOGIN PASSWORD '{DATABASE_PASSWORD}'"),
        format!("ALTER DATABASE {database} OWNER TO {user}"),
        format!("ALTER SCHEMA public OWNER TO {user}"),
    ] {
        let statement = sqlx::AssertSqlSafe(statement);
        sqlx::query(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let relay = Relay::to_postgres(host);
    let (login, address) = (format!("{user}:{DATABASE_PASSWORD}"), relay.addr());
    let url = format!("postgres://{login}@{address}/{database}?sslmode=disable");
    (url, relay)
}
