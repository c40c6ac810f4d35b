//! `compose.yaml`: accepted by Compose itself, and every name in it leads somewhere.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};
use spendcap::config::{Config, Environment};

use crate::cli::{spendcap, stdout};
use crate::support::postgres::fresh_database;
use crate::support::program::{RUN_MAX, run};
use crate::support::repository::{read, root};

/// The file as it is written, with its anchors resolved.
async fn written() -> Value {
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
    let mut python = Command::new("sh");
    let convert = "exec /usr/bin/python3 -c \"$1\" <compose.yaml";
    python
        .args(["-c", convert, "sh", script])
        .current_dir(root());
    run(python, RUN_MAX).await.ok().json()
}

fn services(file: &Value) -> &Map<String, Value> {
    file["services"].as_object().unwrap()
}

/// A list's words; none where there is no list.
fn words(list: &Value) -> Vec<&str> {
    let words = list.as_array().into_iter().flatten();
    words.map(|word| word.as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_accepts_it() {
    for profile in [&[][..], &["--profile", "sandbox"]] {
        let mut compose = Command::new("docker-compose");
        compose
            .args(["--file", "compose.yaml"])
            .args(profile)
            .args(["config", "--quiet"])
            .current_dir(root());
        run(compose, RUN_MAX).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_service_is_locked_down_pinned_and_watched() {
    let file = written().await;
    for (name, service) in services(&file) {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        let options = words(&service["security_opt"]);
        assert_eq!(options, ["no-new-privileges:true"], "{name}");
        let (image, tag) = service["image"].as_str().unwrap().split_once(':').unwrap();
        let version: Vec<&str> = tag.split('.').collect();
        assert!(version.len() >= 2 && tag != "latest", "{image}:{tag}");
        let ours = service.get("build").is_some();
        assert_eq!(ours, image == "spendcap", "{name}");
        assert!(!ours || tag == env!("CARGO_PKG_VERSION"), "{name}: {tag}");
        let watched = ours || !words(&service["healthcheck"]["test"]).is_empty();
        assert!(watched, "{name} has no health check");
        let waits = service["depends_on"].as_object();
        for (awaited, how) in waits.into_iter().flatten() {
            assert_eq!(how["condition"], "service_healthy", "{name}");
            assert!(services(&file).contains_key(awaited), "{name}: {awaited}");
        }
    }
    assert_eq!(
        file["services"]["spendcap"]["stop_grace_period"], "120s",
        "an outcome may come as late as the upstream timeout"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_volumes_networks_and_secrets_are_there() {
    let file = written().await;
    for (name, service) in services(&file) {
        for volume in words(&service["volumes"]) {
            let source = volume.split(':').next().unwrap();
            let is_there = match source.strip_prefix("./") {
                Some(path) => root().join(path).exists(),
                None => file["volumes"].get(source).is_some(),
            };
            assert!(is_there, "{name}: {volume}");
        }
        for network in words(&service["networks"]) {
            assert!(file["networks"].get(network).is_some(), "{name}: {network}");
        }
        let secrets = words(&service["secrets"]);
        let mut mounted = Vec::new();
        for value in service["environment"].as_object().into_iter().flatten() {
            let path = value.1.as_str().unwrap();
            mounted.extend(path.strip_prefix("/run/secrets/"));
        }
        mounted.sort_unstable();
        assert_eq!(mounted, secrets, "{name}");
        for secret in secrets {
            let path = file["secrets"][secret]["file"].as_str().unwrap();
            assert_eq!(path, format!("./secrets/{secret}"));
        }
    }
    let ignored = read(".gitignore");
    assert!(ignored.lines().any(|line| line == "/secrets"));
}

/// The commands of the README make exactly the secrets that the file names.
#[tokio::test(flavor = "multi_thread")]
async fn the_readme_makes_the_secrets() {
    let file = written().await;
    let readme = read("README.md");
    let lines = readme.lines();
    let mut made: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once(" > secrets/")?.1))
        .collect();
    made.sort_unstable();
    let secrets = file["secrets"].as_object().unwrap();
    let mut named: Vec<&str> = secrets.keys().map(String::as_str).collect();
    named.sort_unstable();
    assert_eq!(made, named);
}

#[tokio::test(flavor = "multi_thread")]
async fn spendcap_takes_its_variables_and_commands() {
    let file = written().await;
    let service = &file["services"]["spendcap"];
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("ledger_url");
    std::fs::write(secret, "postgres://spendcap:password@postgres/spendcap").unwrap();
    let secrets = format!("{}/", folder.path().display());
    let variables = service["environment"].as_object().unwrap();
    let environment: Environment = variables
        .iter()
        .map(|(name, value)| (name.clone(), default_of(value.as_str().unwrap())))
        .map(|(name, value)| (name, value.replace("/run/secrets/", &secrets)))
        .collect();
    let config = Config::load(None, &environment).unwrap();
    assert!(config.admin.listen.ip().is_unspecified());
    let scraped = read("grafana/prometheus.yml");
    let port = format!("port: {}\n", config.admin.listen.port());
    assert!(scraped.contains("names: [spendcap]") && scraped.contains(&port));

    let command = words(&file["services"]["sandbox"]["command"]);
    let help = spendcap(folder.path(), &[command[0], "--help"], &[]);
    assert!(stdout(&help).contains(command[1]));
}

/// What `${NAME:-default}` is where the variable is not set.
fn default_of(value: &str) -> String {
    let default = value.strip_prefix("${").and_then(|rest| {
        let (_, default) = rest.strip_suffix('}')?.split_once(":-")?;
        Some(default)
    });
    default.unwrap_or(value).to_owned()
}

/// PostgreSQL's check as it is written, against the tests' own PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_postgresql_finds_one() {
    let file = written().await;
    let check = words(&file["services"]["postgres"]["healthcheck"]["test"]);
    assert_eq!(check[..2], ["CMD", "pg_isready"]);
    let server = fresh_database().await;
    let port = server.rsplit_once(':').unwrap().1.split('/').next();
    let mut ready = Command::new(pg_isready());
    ready.args(&check[2..]).env("PGPORT", port.unwrap());
    run(ready, RUN_MAX).await.ok();
}

/// Debian keeps it with its server, out of the `PATH`.
fn pg_isready() -> PathBuf {
    let servers = std::fs::read_dir("/usr/lib/postgresql");
    let servers = servers.into_iter().flatten().map(Result::unwrap);
    let mut found = servers.map(|server| server.path().join("bin/pg_isready"));
    let installed = found.find(|path| path.exists());
    installed.unwrap_or_else(|| PathBuf::from("pg_isready"))
}
