//! The image and the compose file: built and run as users do, but without a container engine.

mod compose;
mod image;

use std::path::Path;

use serde_json::{Value, json};
use spendcap::sandbox::{Sandbox, SandboxSettings};

use crate::support::clients::sources;
use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::operator::Operator;
use crate::support::program;
use crate::support::repository::root;
use crate::support::world::{Charge, environment, try_charge};
use image::Image;

/// What the image may have above its base. The binary measured here is the tests' own, since a release takes
/// eight minutes of processor time. Unoptimised and without link-time optimisation it is the larger one: of
/// the same sources it had 34.9 million bytes and the release's 21.1, both without line tables.
const BYTES_MAX: u64 = 50_000_000;

const REAL_KEY: &str = "sk_test_51KeyThatNoImageMayHold";

#[tokio::test(flavor = "multi_thread")]
async fn the_image_serves_as_nobody_on_a_read_only_root() {
    let image = Image::build(REAL_KEY).await;
    image.size_above_its_base(BYTES_MAX);
    let settings = image.settings().await;
    settings_are_those_of_a_service(&settings);
    assert!(!settings.to_string().contains(REAL_KEY));

    let sandbox = Sandbox::start(SandboxSettings {
        secret_key: REAL_KEY.to_owned(),
        ..SandboxSettings::default()
    })
    .unwrap();
    let config = &settings["Docker"]["config"];
    let volume = image.volume();
    let variables = variables(config, &sandbox);
    let entrypoint = words(&config["Entrypoint"]);
    let command = image.program(config, &volume, &entrypoint);
    let mut daemon = Daemon::start_by(command, &volume, &variables).await;

    // The health check exactly as the image has it; the tests' port is another.
    let health = words(&config["Healthcheck"]["Test"]);
    assert_eq!(health[0], "CMD");
    let mut check = image.program(config, &volume, &health[1..]);
    let listen = daemon.admin.to_string();
    check.env_clear().envs(variables.clone());
    check.env("SPENDCAP_ADMIN_LISTEN", listen);
    let checked = program::run(check, program::RUN_MAX).await.ok();
    assert_eq!(checked.stdout, "ready\n");

    let operator = Operator {
        client: Client::new(),
        admin_url: format!("http://{}", daemon.admin),
        clock: spendcap::clock::Clock::system(),
    };
    let key = operator.issue(100_000, json!({})).await;
    let proxy = format!("http://{}", daemon.proxy);
    let charge = Charge::default();
    let charged = try_charge(&operator.client, &proxy, &key.secret, charge).await;
    charged.unwrap().expect(200);
    assert_eq!(sandbox.charges().len(), 1);

    daemon.terminate();
    let (status, log) = daemon.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("Stopped"), "{log}");
    // It could write nowhere else.
    for written in names(&volume) {
        assert!(written.starts_with("spendcap.db"), "{written}");
    }
    assert!(volume.join("spendcap.db").exists());
}

fn settings_are_those_of_a_service(settings: &Value) {
    let config = &settings["Docker"]["config"];
    assert_eq!(config["User"], "65532:65532", "{config}");
    assert_eq!(config["Entrypoint"], json!(["/usr/local/bin/spendcap"]));
    assert_eq!(config["Cmd"], json!(["serve"]));
    assert_eq!(config["StopSignal"], "SIGTERM");
    assert_eq!(config["WorkingDir"], "/var/lib/spendcap");
    assert_eq!(config["Volumes"], json!({ "/var/lib/spendcap": {} }));
    assert_eq!(config["ExposedPorts"], json!({ "12110/tcp": {} }));
    let names: Vec<&str> = config["Env"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(names, ["PATH", "SPENDCAP_PROXY_LISTEN", "TMPDIR"]);
}

fn name(variable: &Value) -> &str {
    variable.as_str().unwrap().split_once('=').unwrap().0
}

/// The image's variables, the tests' ports, and the default ledger: a file in the working directory.
fn variables(config: &Value, sandbox: &Sandbox) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = words(&config["Env"])
        .iter()
        .filter_map(|variable| variable.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let given = environment("", &sandbox.base_url(), &[("STRIPE_SECRET_KEY", REAL_KEY)]);
    all.extend(given);
    all.retain(|(name, _)| name != "SPENDCAP_LEDGER_URL");
    all
}

fn words(list: &Value) -> Vec<String> {
    serde_json::from_value(list.clone()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

/// Whatever lies about in the folder of a checkout stays out of the build.
#[tokio::test(flavor = "multi_thread")]
async fn the_build_sees_sources_alone() {
    let context = tempfile::tempdir().unwrap();
    let ignore = root().join(".dockerignore");
    std::fs::copy(ignore, context.path().join(".dockerignore")).unwrap();
    for file in [
        "Cargo.toml",
        "src/domain/money.rs",
        "migrations/sqlite/0001.sql",
        "secrets/stripe_secret_key",
        ".env",
        ".git/config",
        "spendcap.db",
        "proxy.toml",
        "target/release/spendcap",
        "Dockerfile",
    ] {
        let path = context.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let dockerfile = context.path().join("Dockerfile");
    std::fs::write(dockerfile, "FROM scratch\nCOPY . /\n").unwrap();
    let seen = image::contents(context.path()).await;
    assert_eq!(seen, ["Cargo.toml", "migrations", "src"]);
}
