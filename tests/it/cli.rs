//! The command as a process: exit codes, and what it prints where.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rcgen::{CertifiedKey, generate_simple_self_signed};

/// Runs the command in `folder` with these variables and no others.
fn spendcap(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spendcap"))
        .current_dir(folder)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const SECRETS: [(&str, &str); 2] = [
    ("STRIPE_SECRET_KEY", "sk_test_hunter2"),
    ("SPENDCAP_ADMIN_TOKEN", "hunter2-hunter2-hunter2"),
];

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&[][..], 2),
        (&["chek"], 2),
        (&["check", "--confg", "x"], 2),
        (&["--help"], 0),
        (&["check", "--help"], 0),
        (&["--version"], 0),
    ] {
        let output = spendcap(folder.path(), arguments, &[]);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(output.stdout.is_empty(), code == 2, "{arguments:?}");
    }
}

#[test]
fn check_says_that_the_repositorys_settings_are_fine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root.join("proxy.toml"), folder.path().join("proxy.toml")).unwrap();
    let output = spendcap(
        folder.path(),
        &["check", "--config", "proxy.toml"],
        &SECRETS,
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @r"
secrets   ok     a test key and 1 admin token(s)
listener  ok     plain HTTP on 127.0.0.1:12110
upstream  ok     https://api.stripe.com
");
    assert_eq!(stderr(&output), "");
}

#[test]
fn check_reports_every_mistake_once_and_no_secret() {
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
fn check_reads_the_files_that_settings_name() {
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
        spendcap(folder.path(), &["check"], &[&SECRETS[..], &files].concat())
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
