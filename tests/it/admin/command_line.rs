//! `spendcap keys`, `reservations` and `flags`: the real binary against a real server.

use std::process::{Command, Output};

use serde_json::{Value, json};
use spendcap::domain::outcome::Outcome;

use super::server::{ADMIN, Server, VIEWER};
use super::vault_keys::{issue, stored};
use crate::ledger::scene;

/// Runs the command under `token`, with nothing else in its environment.
async fn spendcap(server: &Server, token: &str, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
    command
        .args(line.split(' '))
        .env_clear()
        .env("SPENDCAP_ADMIN_URL", format!("http://{}", server.address))
        .env("SPENDCAP_ADMIN_TOKEN", token);
    run(command).await
}

async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

/// What it printed, where it succeeded.
async fn printed(server: &Server, line: &str) -> String {
    let output = spendcap(server, ADMIN, line).await;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), errors.as_str()),
        (Some(0), ""),
        "{line}"
    );
    String::from_utf8(output.stdout).unwrap()
}

async fn printed_json(server: &Server, line: &str) -> Value {
    serde_json::from_str(&printed(server, &format!("{line} --json")).await).unwrap()
}

/// What it complained about, where it failed.
async fn complaint(server: &Server, token: &str, line: &str) -> String {
    let output = spendcap(server, token, line).await;
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert_eq!(output.stdout, b"", "{line}");
    String::from_utf8(output.stderr).unwrap()
}

fn issue_line(server: &Server) -> String {
    let expires_at = server.in_an_hour();
    format!(
        "keys issue --period 2026-08 --expected-total 4950000 --currency usd --expires-at {expires_at}"
    )
}

/// `text` with what differs from run to run taken out.
fn steady(text: &str, key: &Value) -> String {
    let mut text = text.to_owned();
    for (value, instead) in [
        ("id", "vk_…"),
        ("secret_hint", "…a1b2"),
        ("secret", "sk_vault_…"),
    ] {
        if let Some(value) = key[value].as_str() {
            text = text.replace(value, instead);
        }
    }
    for time in ["created", "expires_at"] {
        let at = jiff::Timestamp::from_second(key[time].as_i64().unwrap()).unwrap();
        text = text.replace(&at.to_string(), time);
    }
    // Columns are as wide as what stands in them.
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join("  "));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_key_is_issued_and_looked_at() {
    let server = Server::start().await;
    let text = printed(&server, &issue_line(&server)).await;
    let list = printed_json(&server, "keys list").await;
    let mut key = list["data"][0].clone();
    let secret = text.lines().last().unwrap().trim();
    assert!(secret.starts_with("sk_vault_"), "{text}");
    key["secret"] = json!(secret);
    insta::assert_snapshot!("issue", steady(&text, &key));
    insta::assert_snapshot!("list", steady(&printed(&server, "keys list").await, &key));
    let show = format!("keys show {}", key["id"].as_str().unwrap());
    assert!(!printed(&server, &show).await.contains("sk_vault_"));
    let shown = printed_json(&server, &show).await;
    assert_eq!(shown, list["data"][0]);
    server.stop().await;
}

#[tokio::test]
async fn a_key_is_raised_rotated_and_revoked() {
    let server = Server::start().await;
    let key = printed_json(&server, &issue_line(&server)).await;
    let id = key["id"].as_str().unwrap();
    let raised =
        format!("keys raise {id} --expected usd=6000000 --expected eur=5 --reason INC-4411");
    let raised = printed_json(&server, &raised).await;
    assert_eq!(raised["caps"][1]["max_amount"], json!(6_600_000));
    let rotated = printed_json(&server, &format!("keys rotate {id} --grace-seconds 0")).await;
    assert!(
        rotated["secret"]
            .as_str()
            .is_some_and(|secret| key["secret"] != secret)
    );
    let revoked = printed_json(&server, &format!("keys revoke {id} --reason leaked")).await;
    assert_eq!(revoked["status"], "revoked");
    server.stop().await;
}

#[tokio::test]
async fn reservations_and_flags_are_worked_through() {
    let server = Server::start().await;
    let key = issue(&server, &json!({})).await;
    let (vault_key, ledger) = (stored(&server, &key).await, &server.opened.ledger);
    let lost = scene::reserve(ledger, scene::ask(&vault_key, "cus_1", 9900, "key-1")).await;
    scene::settle(ledger, &lost, Outcome::Unknown).await;
    let paid = scene::reserve(ledger, scene::ask(&vault_key, "cus_2", 9900, "key-2")).await;
    scene::settle(ledger, &paid, scene::paid("ch_2", 9900)).await;
    let again = scene::ask(&vault_key, "cus_2", 9900, "key-3");
    ledger.reserve(again).await.unwrap();

    let table = printed(&server, "reservations list --state held").await;
    assert!(
        table.contains("cus_1") && table.contains("9900 (99.00 USD)"),
        "{table}"
    );
    let rows = printed_json(&server, "reservations list --customer cus_1 --limit 1").await;
    let id = rows["data"][0]["id"].as_str().unwrap();
    let held = printed(&server, "held list").await;
    assert!(held.contains(id) && held.contains("key-1"), "{held}");
    let resolve = format!("held resolve {id} --state released --reason absent");
    assert!(printed(&server, &resolve).await.contains("released"));

    let flags = printed_json(&server, "flags list --acknowledged false").await;
    let id = flags["data"][0]["id"].as_str().unwrap();
    assert!(
        printed(&server, &format!("flags acknowledge {id}"))
            .await
            .contains("ops")
    );
    let seen = printed_json(&server, "flags list --acknowledged true").await;
    assert_eq!(seen["data"][0]["id"], id);
    server.stop().await;
}

#[tokio::test]
async fn complaints_are_the_apis_own() {
    let server = Server::start().await;
    let line = issue_line(&server);
    for (token, line, says) in [
        (ADMIN, "keys show vk_1", "no such vault key: vk_1"),
        (ADMIN, "keys show ../../healthz", "no such vault key"),
        (
            ADMIN,
            &format!("{line} --on-duplicate ignore"),
            "on_duplicate is one of replay",
        ),
        (ADMIN, "keys list --limit 0", "limit is a whole number"),
        (VIEWER, &line, "role viewer"),
        ("wrong-token-of-nobody", "keys list", "no valid admin token"),
    ] {
        let text = complaint(&server, token, line).await;
        assert!(
            text.starts_with("spendcap: ") && text.contains(says),
            "{line}: {text}"
        );
        assert!(!text.contains(token), "{text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_token_may_stand_in_a_file() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{ADMIN}\n")).unwrap();
    let url = format!("http://{}", server.address);
    let mut command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
    command
        .args(["keys", "list", "--admin-url", &url])
        .env_clear();
    let without = run(command).await;
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stderr).contains("SPENDCAP_ADMIN_TOKEN"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
    command
        .args(["keys", "list", "--admin-url", &url])
        .env_clear();
    command.env("SPENDCAP_ADMIN_TOKEN_FILE", &file);
    assert_eq!(run(command).await.status.code(), Some(0));
    server.stop().await;
}
