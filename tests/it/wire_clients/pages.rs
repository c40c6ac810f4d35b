//! The pages of docs/integrations for languages whose SDK is not to be had: their programs run as they stand
//! there, and what was not run says so.

use std::fs;
use std::process::Command;

use http::Method;
use serde_json::json;
use spendcap::sandbox::{Fault, FaultKind};
use tempfile::TempDir;

use crate::support::clients::{installed, sources};
use crate::support::program::{RUN_MAX, Ran, run};
use crate::support::repository::{read, root};
use crate::support::{LedgerKind, VaultKey, World};

const PAGES: [&str; 5] = ["curl", "go", "php", "ruby", "rust"];

/// A fenced block, and the prose since the one before it.
struct Block {
    language: String,
    code: String,
    prose: String,
}

fn page(name: &str) -> String {
    read(&format!("docs/integrations/{name}.md"))
}

fn blocks(name: &str) -> Vec<Block> {
    let page = page(name);
    let parts: Vec<&str> = page.split("```").collect();
    let pairs = parts.chunks_exact(2);
    let block = |pair: &[&str]| {
        let (language, code) = pair[1].split_once('\n').unwrap();
        Block {
            language: language.to_owned(),
            code: code.to_owned(),
            prose: pair[0].to_owned(),
        }
    };
    pairs.map(block).collect()
}

/// The blocks that the page says are run.
fn run_blocks(name: &str) -> Vec<Block> {
    let mut blocks = blocks(name);
    if name != "curl" {
        blocks.retain(|block| block.prose.contains("A test runs this"));
        assert_eq!(blocks.len(), 1, "{name}");
    }
    blocks
}

#[test]
fn every_block_was_run_or_says_that_it_was_not() {
    assert!(page("curl").contains("Everything on this page is run by a test"));
    for name in PAGES.iter().filter(|name| **name != "curl") {
        for block in blocks(name) {
            let told = ["A test runs this", "ot run here"];
            let told = told.iter().filter(|told| block.prose.contains(**told));
            assert_eq!(told.count(), 1, "{name}: {}", block.code);
        }
    }
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    let folder = root().join("docs/integrations");
    let mut links = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            assert!(folder.join(target).exists(), "{target}");
            links += 1;
        }
    }
    assert!(links > 15, "{links}");
}

#[test]
fn the_page_of_rust_shows_what_the_client_of_the_tests_is_built_from() {
    let source = fs::read_to_string(sources("async-stripe").join("src/bill.rs")).unwrap();
    assert_eq!(run_blocks("rust")[0].code, source);
    let page = page("rust");
    let lock = fs::read_to_string(sources("async-stripe").join("Cargo.lock")).unwrap();
    let (_, rest) = lock
        .split_once("name = \"async-stripe\"\nversion = \"")
        .unwrap();
    let version = rest.split('"').next().unwrap();
    assert!(
        page.contains(&format!("async-stripe {version}")),
        "{version}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_curl() {
    let folder = TempDir::new().unwrap();
    let blocks = run_blocks("curl");
    let [charge, branch, addon, left] = blocks.as_slice() else {
        panic!("another number of blocks");
    };
    let script = |name: &str, code: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("set -eu\n{code}")).unwrap();
        program("sh", &[path.to_str().unwrap()])
    };
    let bill = format!("{}{}", charge.code, branch.code);
    let (world, key) = bills(|| script("bill", &bill)).await;

    let raised = json!({ "expected_total": 27_500, "currency": "usd", "reason": "more to bill" });
    let path = format!("/v1/vault_keys/{}", key.id);
    let raise = world.admin(Method::POST, &path, Some(raised));
    raise.await.expect(200);
    // Its `--retry` sends the POST again.
    let lost = Fault::new(FaultKind::CommitThen503).method("POST").once();
    world.sandbox.add_fault(lost.customer("cus_lost"));
    let again = call(
        &world,
        &key,
        script("bill", &bill),
        &["cus_lost", "2026-08"],
    )
    .await;
    let made = world.sandbox.charges_of("cus_lost");
    assert_eq!(made.len(), 1, "{again:?}");
    assert_eq!(again.stdout.trim_end(), format!("charged {}", made[0].id));
    let second = call(&world, &key, script("addon", &addon.code), &["cus_1"]).await;
    assert_eq!(second.json()["amount"], 500, "{second:?}");
    assert_eq!(world.sandbox.charges_of("cus_1").len(), 2);
    let left = call(&world, &key, script("left", &left.code), &[]).await;
    assert_eq!(left.json()["caps"][0]["remaining"], 50, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_go() {
    let folder = TempDir::new().unwrap();
    let (source, program) = (folder.path().join("bill.go"), folder.path().join("bill"));
    fs::write(&source, &run_blocks("go")[0].code).unwrap();
    let mut build = Command::new("go");
    build
        .args(["build", "-o"])
        .args([&program, &source])
        .current_dir(folder.path())
        .env("GOCACHE", installed("go").join("cache"))
        .env("GOPROXY", "off");
    run(build, 3 * RUN_MAX).await.ok();
    bills(|| Command::new(&program)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_php() {
    interpreted("php").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_ruby() {
    interpreted("ruby").await;
}

async fn interpreted(language: &str) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bill");
    let block = run_blocks(language).remove(0);
    assert_eq!(block.language, language);
    fs::write(&path, block.code).unwrap();
    bills(|| program(language, &[path.to_str().unwrap()])).await;
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

async fn call(world: &World, key: &VaultKey, mut command: Command, arguments: &[&str]) -> Ran {
    command
        .args(arguments)
        .env("SPENDCAP_URL", world.proxy_url(0))
        .env("VAULT_KEY", &key.secret);
    run(command, RUN_MAX).await.ok()
}

/// What every page's program does: it bills once however often it is run, and tells a cap from a decline.
async fn bills(bill: impl Fn() -> Command) -> (World, VaultKey) {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(18_000, json!({})).await;
    let decline = Fault::new(FaultKind::Decline).method("POST").once();
    world.sandbox.add_fault(decline.customer("cus_poor"));
    let say = async |customer: &str| {
        let ran = call(&world, &key, bill(), &[customer, "2026-08"]).await;
        ran.stdout.trim_end().to_owned()
    };
    let first = say("cus_1").await;
    let made = world.sandbox.charges_of("cus_1");
    assert_eq!(made.len(), 1, "{first}");
    assert_eq!(first, format!("charged {}", made[0].id));
    let sent_key = made[0].idempotency_key.as_deref();
    assert_eq!(sent_key, Some("bill-cus_1-2026-08"));
    assert_eq!(say("cus_1").await, first);
    assert_eq!(say("cus_poor").await, "card declined");
    assert!(say("cus_2").await.starts_with("charged ch_"));
    assert_eq!(say("cus_3").await, "cap reached");
    assert_eq!(world.taken(), 2 * 9900);
    world.assert_balanced(&key).await;
    (world, key)
}
