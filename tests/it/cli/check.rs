//! `spendcap check`: whether `serve` would start.

use std::fs;
use std::process::Output;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Sandbox, SandboxSettings};

use super::{SECRETS, spendcap, stderr, stdout};
use crate::support::postgres::fresh_database;
use crate::support::repository::root;
use crate::support::{LedgerKind, World};

/// Checks with the sandbox's key, its upstream and this ledger; what is printed names neither port
/// nor database.
fn check(sandbox: &Sandbox, ledger_url: &str, more: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let upstream = sandbox.base_url();
    let mut variables = vec![
        ("STRIPE_SECRET_KEY", SECRET_KEY_DEFAULT),
        SECRETS[1],
        ("SPENDCAP_UPSTREAM_BASE_URL", &upstream),
        ("SPENDCAP_LEDGER_URL", ledger_url),
    ];
    variables.extend(more);
    let output = spendcap(folder.path(), &["check"], &variables);
    (output.status.code(), redacted(&output, sandbox, ledger_url))
}

fn redacted(output: &Output, sandbox: &Sandbox, ledger_url: &str) -> String {
    let text = stdout(output) + &stderr(output);
    let text = text.replace(&sandbox.base_url(), "SANDBOX");
    let ledger = ledger_url
        .rsplit_once('@')
        .map_or(ledger_url, |(_, rest)| rest);
    text.replace(ledger, "LEDGER")
        .replace(ledger_url.trim_start_matches("sqlite://"), "FILE")
}

#[test]
fn the_repositorys_settings_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join("proxy.toml"), folder.path().join("proxy.toml")).unwrap();
    let arguments = ["check", "--offline", "--config", "proxy.toml"];
    let output = spendcap(folder.path(), &arguments, &SECRETS);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @r"
secrets   ok     a test key and 1 admin token(s)
listener  ok     plain HTTP on 127.0.0.1:12110
upstream  ok     https://api.stripe.com
");
    assert_eq!(stderr(&output), "");
}

#[test]
fn every_mistake_is_reported_once_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("proxy.toml"),
        "[proxy]\nlisten = 1\n[upstream]\nsecret_key = \"hunter2\"\n",
    )
    .unwrap();
    let variables = [SECRETS[1], ("SPENDCAP_CONFIG", "proxy.toml")];
    let output = spendcap(folder.path(), &["check"], &variables);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    insta::assert_snapshot!(stderr(&output), @r"
spendcap: the settings cannot be used:
proxy.toml:2: proxy.listen: write an address and port such as 127.0.0.1:12110
proxy.toml:4: a secret does not belong in this file: set STRIPE_SECRET_KEY, SPENDCAP_ADMIN_TOKEN, or either with _FILE, and replace this one
STRIPE_SECRET_KEY: set this to the real Stripe key, or STRIPE_SECRET_KEY_FILE to its file
");
}

#[test]
fn the_files_that_settings_name_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let issue = || generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let CertifiedKey { cert, signing_key } = issue();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("a.crt", cert.pem());
    write("a.key", signing_key.serialize_pem());
    write("other.key", issue().signing_key.serialize_pem());

    let check = |key: &str, ca: &str| {
        let files = [
            ("SPENDCAP_PROXY_TLS_CERT_FILE", "a.crt"),
            ("SPENDCAP_PROXY_TLS_KEY_FILE", key),
            ("SPENDCAP_UPSTREAM_CA_FILE", ca),
        ];
        spendcap(
            folder.path(),
            &["check", "--offline"],
            &[&SECRETS[..], &files].concat(),
        )
    };
    let output = check("a.key", "a.crt");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @r"
secrets   ok     a test key and 1 admin token(s)
listener  ok     TLS on 127.0.0.1:12110
upstream  ok     https://api.stripe.com, trusting 1 certificate(s)
");
    let output = check("other.key", "missing.crt");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&output), @r"
secrets   ok     a test key and 1 admin token(s)
listener  wrong  other.key is not the key of the certificate in a.crt
upstream  wrong  missing.crt holds no PEM certificate that can be read
");
    assert_eq!(stderr(&output), "spendcap: 2 parts are wrong\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_ledger_and_a_stripe_that_answers_are_fine() {
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    let (code, printed) = check(&sandbox, &format!("sqlite://{}", file.display()), &[]);
    assert_eq!(code, Some(0), "{printed}");
    insta::assert_snapshot!(printed);
    assert!(!file.exists(), "a check changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_another_process_has_is_refused() {
    let world = World::on(LedgerKind::Sqlite).await;
    let (code, printed) = check(&world.sandbox, world.ledger_url(), &[]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(printed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_is_served_shows_its_schema_its_account_and_its_weaknesses() {
    let world = World::on(LedgerKind::Postgres).await;
    let (code, printed) = check(&world.sandbox, world.ledger_url(), &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("ledger    ok     postgres://LEDGER has schema version 2"),
        "{printed}"
    );
    assert!(
        printed.contains("ledger    warn   no synchronous standby"),
        "{printed}"
    );
    assert!(printed.contains("account   ok     acct_"), "{printed}");
    assert!(printed.contains(", as pinned in the ledger"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_mode_another_account_and_a_dead_key_are_wrong() {
    let world = World::on(LedgerKind::Postgres).await;
    let live = [("STRIPE_SECRET_KEY", "sk_live_hunter2")];
    let (code, printed) = check(&world.sandbox, world.ledger_url(), &live);
    assert_eq!(code, Some(1));
    let told = "account   wrong  this ledger holds test money, and the key is for live mode";
    assert!(printed.contains(told), "{printed}");

    let other = Sandbox::start(SandboxSettings {
        account_id: "acct_other".to_owned(),
        ..SandboxSettings::default()
    })
    .unwrap();
    let (code, printed) = check(&other, world.ledger_url(), &[]);
    assert_eq!(code, Some(1));
    assert!(
        printed.contains("and the key is for acct_other"),
        "{printed}"
    );

    let dead = [("STRIPE_SECRET_KEY", "sk_test_hunter2")];
    let (code, printed) = check(&world.sandbox, world.ledger_url(), &dead);
    assert_eq!(code, Some(1));
    let told = "account   wrong  Stripe does not accept the key (401)";
    assert!(printed.contains(told), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stripe_that_does_not_answer_is_a_warning_and_a_missing_database_is_wrong() {
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let ledger_url = fresh_database().await;
    // Nothing listens on port 1.
    let silent = [("SPENDCAP_UPSTREAM_BASE_URL", "http://127.0.0.1:1")];
    let (code, printed) = check(&sandbox, &ledger_url, &silent);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("account   warn   whose key it is was not checked"),
        "{printed}"
    );
    assert!(printed.contains("has no schema yet"), "{printed}");

    let (code, printed) = check(&sandbox, "postgres://user:hunter2@127.0.0.1:1/none", &[]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("ledger    wrong  "), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}
