use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

const KEY: (&str, &str) = ("STRIPE_SECRET_KEY", "sk_test_51abcdef");
const TOKEN: (&str, &str) = ("SPENDCAP_ADMIN_TOKEN", "a-token-of-an-operator");

/// Every setting, as a file and as a variable writes another value than the default.
const OTHERS: &[(&str, &str, &str)] = &[
    ("proxy.listen", r#""[::]:80""#, "[::]:80"),
    ("proxy.tls_cert_file", r#""a.crt""#, "a.crt"),
    ("proxy.tls_key_file", r#""a.key""#, "a.key"),
    ("proxy.repeat_wait_ms", "1", "1"),
    ("proxy.settle_wait_ms", "1", "1"),
    ("proxy.drain_ms", "0", "0"),
    ("proxy.body_bytes_max", "2048", "2048"),
    ("proxy.in_flight_max", "1", "1"),
    ("admin.listen", r#""127.0.0.1:0""#, "127.0.0.1:0"),
    ("admin.tokens_file", r#""tokens""#, "tokens"),
    (
        "upstream.base_url",
        r#""http://127.0.0.1:1""#,
        "http://127.0.0.1:1",
    ),
    ("upstream.ca_file", r#""ca.crt""#, "ca.crt"),
    ("upstream.connect_timeout_ms", "1", "1"),
    ("upstream.timeout_ms", "6000", "6000"),
    ("upstream.resends_max", "0", "0"),
    ("ledger.url", r#""postgres://u@db/s""#, "postgres://u@db/s"),
    ("defaults.headroom", r#""1.25""#, "1.25"),
    ("defaults.on_duplicate", r#""reject""#, "reject"),
    (
        "defaults.permissions",
        r#"["charges:write", "events:read"]"#,
        "charges:write, events:read",
    ),
    ("breaker.unknown_outcomes_max", "1", "1"),
    ("breaker.probe_interval_ms", "10", "10"),
    ("reconcile.enabled", "false", "false"),
    ("reconcile.interval_ms", "10", "10"),
    ("reconcile.reads_per_second", "1", "1"),
    ("reconcile.feed_interval_ms", "10", "10"),
    ("reconcile.write_off", "true", "true"),
    ("log.format", r#""text""#, "text"),
    ("log.level", r#""debug""#, "debug"),
];

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().copied().collect()
}

fn defaults() -> Config {
    Config::load(None, &Environment::default()).unwrap()
}

/// A file of `text`, and the folder that keeps it.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proxy.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// The mistakes, one a line, without the folder's name.
fn mistakes_of(text: &str, variables: &[(&str, &str)]) -> String {
    let (folder, path) = file(text);
    let mistakes = Settings::load(Some(&path), &environment(variables)).unwrap_err();
    let folder = format!("{}/", folder.path().display());
    mistakes.to_string().replace(&folder, "")
}

#[test]
fn proxy_toml_is_the_defaults_and_names_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("proxy.toml");
    let config = Config::load(Some(&path), &Environment::default()).unwrap();
    assert_eq!(format!("{config:?}"), format!("{:?}", defaults()));

    let text = std::fs::read_to_string(&path).unwrap();
    let mut named = BTreeSet::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name;
        } else if let Some((key, _)) = line.trim_start_matches('#').split_once(" = ") {
            named.insert(format!("{section}.{key}"));
        }
    }
    assert_eq!(named, settings());
}

fn settings() -> BTreeSet<String> {
    let environment = Environment::default();
    let mut reader = Reader::open(None, &environment);
    let _config = Config::read(&mut reader);
    reader.asked()
}

#[test]
fn every_setting_is_a_key_and_a_variable() {
    let tested: BTreeSet<_> = OTHERS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(tested, settings());

    for (name, written, variable_text) in OTHERS {
        let (section, key) = name.split_once('.').unwrap();
        let variable = format!("SPENDCAP_{section}_{key}").to_uppercase();
        // Certificate and key are set together.
        let other = match key {
            "tls_cert_file" => "tls_key_file = \"k\"",
            "tls_key_file" => "tls_cert_file = \"c\"",
            _ => "",
        };
        let (_folder, path) = file(&format!("[{section}]\n{key} = {written}\n{other}\n"));
        let from_file = Config::load(Some(&path), &Environment::default()).unwrap();
        let (_folder, path) = file(&format!("[{section}]\n{other}\n"));
        let variables = environment(&[(&variable, variable_text)]);
        let from_variable = Config::load(Some(&path), &variables).unwrap();
        assert_eq!(
            format!("{from_file:?}"),
            format!("{from_variable:?}"),
            "{name}"
        );
        assert_ne!(
            format!("{from_file:?}"),
            format!("{:?}", defaults()),
            "{name}"
        );
    }
}

#[test]
fn a_variable_wins_and_an_empty_one_is_unset() {
    let (_folder, path) = file("[log]\nlevel = \"warn\"\nformat = \"text\"\n");
    let variables = environment(&[("SPENDCAP_LOG_LEVEL", "debug"), ("SPENDCAP_LOG_FORMAT", "")]);
    let log = Config::load(Some(&path), &variables).unwrap().log;
    assert_eq!(log.level, tracing::level_filters::LevelFilter::DEBUG);
    assert_eq!(log.format, LogFormat::Text);
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_place() {
    let text = r#"
[proxy]
listen = 12110
tls_cert_file = "a.crt"
body_bytes_max = 1
lisen = "127.0.0.1:1"

[admin]
listen = "localhost"

[upstream]
base_url = "https://api.stripe.com/v1"
connect_timeout_ms = 80000
timeout_ms = "75000"

[ledger]
url = "postgres://spendcap:hunter2@db/spendcap"

[defaults]
headroom = 1.1
on_duplicate = "ignore"
permissions = ["charges:write", "refunds:write"]

[breakr]
unknown_outcomes_max = 10

[log]
level = "loud"
"#;
    let variables = [
        ("SPENDCAP_LOG_FORMAT", "xml"),
        ("SPENDCAP_PROXY_LISTN", "127.0.0.1:1"),
        ("SPENDCAP_PROXY_SERVICE_HOST", "10.0.0.1"),
        ("SPENDCAP_PROXY_PORT", "tcp://10.0.0.1:12110"),
        ("SPENDCAP_TEST_POSTGRES_URL", "postgres://localhost/x"),
        ("STRIPE_SECRET_KEY", "pk_test_1"),
        ("SPENDCAP_ADMIN_TOKEN", "short"),
    ];
    insta::assert_snapshot!(mistakes_of(text, &variables), @r#"
proxy.toml:3: proxy.listen: write an address and port such as 127.0.0.1:12110
proxy.toml:4: proxy.tls_cert_file: write proxy.tls_key_file too, or neither
proxy.toml:5: proxy.body_bytes_max: write a whole number from 1024 to 16777216
proxy.toml:6: proxy.lisen: unknown key: [proxy] takes body_bytes_max, drain_ms, in_flight_max, listen, repeat_wait_ms, settle_wait_ms, tls_cert_file, tls_key_file
proxy.toml:9: admin.listen: write an address and port such as 127.0.0.1:12112
proxy.toml:12: upstream.base_url: write https://host or http://host:port, without a path
proxy.toml:13: upstream.connect_timeout_ms: write a whole number from 1 to 60000
proxy.toml:14: upstream.timeout_ms: write a whole number from 1 to 600000
proxy.toml:17: ledger.url: write the URL without its password, or set SPENDCAP_LEDGER_URL or SPENDCAP_LEDGER_URL_FILE: a secret does not belong in this file
proxy.toml:20: defaults.headroom: write a decimal from 1 to 10 in quotes, such as "1.10"
proxy.toml:21: defaults.on_duplicate: write one of replay, reject, flag
proxy.toml:22: defaults.permissions: write a list of charges:write, charges:read, customers:read, payment_methods:read, balance_transactions:read, events:read
proxy.toml:25: [breakr]: unknown section: the sections are admin, breaker, defaults, ledger, log, proxy, reconcile, upstream
proxy.toml:28: log.level: write one of error, warn, info, debug, trace
SPENDCAP_LOG_FORMAT: log.format: write json or text
SPENDCAP_PROXY_LISTN: unknown setting: [proxy] takes body_bytes_max, drain_ms, in_flight_max, listen, repeat_wait_ms, settle_wait_ms, tls_cert_file, tls_key_file
STRIPE_SECRET_KEY: a Stripe key begins with sk_test_, sk_live_, rk_test_ or rk_live_
SPENDCAP_ADMIN_TOKEN: a token is at least 16 visible ASCII characters
"#);
}

#[test]
fn what_is_not_toml_is_reported_with_what_is_wrong_in_the_rest() {
    let text = "[proxy]\nlisten = \nbody_bytes_max = 1\n[log\nlevel = \"info\"\nlevel = \"info\"\n";
    insta::assert_snapshot!(mistakes_of(text, &[KEY, TOKEN]), @r"
proxy.toml:2: not TOML: string values must be quoted, expected literal string
proxy.toml:2: proxy.listen: write an address and port such as 127.0.0.1:12110
proxy.toml:3: proxy.body_bytes_max: write a whole number from 1024 to 16777216
proxy.toml:4: not TOML: unclosed table, expected `]`
");
    insta::assert_snapshot!(mistakes_of("listen = 1\nproxy = 2\n", &[KEY, TOKEN]), @r"
proxy.toml:1: listen: settings stand in a section
proxy.toml:2: proxy: settings stand in a section
");
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake() {
    let path = Path::new("no/such/proxy.toml");
    let mistakes = Config::load(Some(path), &Environment::default()).unwrap_err();
    insta::assert_snapshot!(mistakes, @"no/such/proxy.toml: cannot be read: entity not found");
}

#[test]
fn secrets_in_the_file_are_refused() {
    for text in [
        "[upstream]\nstripe_secret_key = \"hunter2\"\n",
        "[admin]\ntoken = \"hunter2\"\n",
        "secret_key = \"hunter2\"\n",
        "[proxy]\nlisten = \"sk_live_hunter2\"\n",
        "[log]\nsome = \"rk_live_hunter2\"\n",
        "[ledger]\nurl = \"postgres://u:hunter2@db/s\"\n",
        "[ledger]\nurl = \"postgres://db/s?password=hunter2\"\n",
        "[upstream]\nbase_url = \"https://sk_test_hunter2@api.stripe.com\"\n",
        "[proxy]\nlisten = sk_live_hunter2\n",
    ] {
        let mistakes = mistakes_of(text, &[KEY, TOKEN]);
        assert!(!mistakes.contains("hunter2"), "{mistakes}");
        assert!(mistakes.contains("proxy.toml:"), "{mistakes}");
    }
    insta::assert_snapshot!(mistakes_of("[admin]\ntoken = \"t\"\n", &[KEY, TOKEN]), @"proxy.toml:2: a secret does not belong in this file: set STRIPE_SECRET_KEY, SPENDCAP_ADMIN_TOKEN, or either with _FILE, and replace this one");
}

#[test]
fn missing_and_doubled_secrets_are_reported() {
    insta::assert_snapshot!(mistakes_of("", &[]), @r"
STRIPE_SECRET_KEY: set this to the real Stripe key, or STRIPE_SECRET_KEY_FILE to its file
SPENDCAP_ADMIN_TOKEN: set this, SPENDCAP_ADMIN_TOKEN_FILE or admin.tokens_file: without a token nobody can issue a vault key
");
    let variables = [
        KEY,
        TOKEN,
        ("STRIPE_SECRET_KEY_FILE", "a"),
        ("SPENDCAP_ADMIN_TOKEN_FILE", "b"),
        ("SPENDCAP_LEDGER_URL", "sqlite://a.db"),
        ("SPENDCAP_LEDGER_URL_FILE", "no/such/url"),
    ];
    insta::assert_snapshot!(mistakes_of("", &variables), @r"
no/such/url: cannot be read: entity not found
SPENDCAP_LEDGER_URL_FILE: set this or SPENDCAP_LEDGER_URL, not both
STRIPE_SECRET_KEY_FILE: set this or the variable itself, not both
SPENDCAP_ADMIN_TOKEN_FILE: set this or the variable itself, not both
");
}

#[test]
fn a_live_key_never_travels_in_clear_text() {
    let live = ("STRIPE_SECRET_KEY", "sk_live_51abcdef");
    let text = "[upstream]\nbase_url = \"http://stripe.example\"\n";
    insta::assert_snapshot!(mistakes_of(text, &[live, TOKEN]), @"proxy.toml:2: upstream.base_url: write an https URL: a live key never travels in clear text");
    let (_folder, path) = file(text);
    Settings::load(Some(&path), &environment(&[KEY, TOKEN])).unwrap();
    Settings::load(None, &environment(&[live, TOKEN])).unwrap();
}

#[test]
fn debug_shows_no_secret() {
    let variables = environment(&[
        ("STRIPE_SECRET_KEY", "sk_live_hunter2"),
        ("SPENDCAP_ADMIN_TOKEN", "hunter2-hunter2-hunter2"),
        (
            "SPENDCAP_LEDGER_URL",
            "postgres://u:hunter2@db/s?password=hunter2",
        ),
    ]);
    let settings = Settings::load(None, &variables).unwrap();
    let shown = format!("{settings:?} {settings:#?} {variables:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("postgres://db/s"), "{shown}");
    assert!(settings.secrets.stripe_key.livemode());
}

#[test]
fn the_ledger_url_may_stand_in_a_file_of_its_own() {
    let (_folder, path) = file("postgres://u:p@db/s\n");
    let path = path.display().to_string();
    let variables = environment(&[("SPENDCAP_LEDGER_URL_FILE", &path)]);
    let config = Config::load(None, &variables).unwrap();
    assert!(
        matches!(config.ledger.url, LedgerUrl::Postgres(url) if url.expose() == "postgres://u:p@db/s")
    );
}
