//! What `docs/integrations/python.md`, `node.md` and the README show of these SDKs runs as it stands there.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use spendcap::sandbox::{Fault, FaultKind};

use super::client::{node, python_home};
use crate::support::clients::sources;
use crate::support::program::{RUN_MAX, run};
use crate::support::repository::read;
use crate::support::{LedgerKind, VaultKey, World};

/// Where the pages say that spendcap listens.
const PORT: &str = "12110";

/// The page's blocks in that language, in order.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// A spendcap and a vault key for the run of the pages: room for 33000, of which 9900 and 500 are used.
struct Scene {
    world: World,
    key: VaultKey,
}

impl Scene {
    async fn new(refusal_status: u16) -> Self {
        let world = World::on(LedgerKind::Sqlite).await;
        let more = json!({ "refusal_status": refusal_status,
            "permissions": ["charges:write", "charges:read"] });
        let key = world.issue(30_000, more).await;
        let fault = Fault::new(FaultKind::Decline).method("POST");
        world.sandbox.add_fault(fault.customer("cus_declined"));
        Self { world, key }
    }

    /// The program, with this spendcap's port in place of the page's.
    fn here(&self, program: &str) -> String {
        assert!(program.contains(PORT), "{program}");
        let port = self.world.apps[0].proxy_addr().port();
        program.replace(PORT, &port.to_string())
    }

    async fn run(&self, mut command: Command) -> Value {
        command.env("VAULT_KEY", &self.key.secret);
        run(command, RUN_MAX).await.ok().json()
    }

    /// The run came to what the page promises, and the cap's exception shows what it says.
    fn check(&self, seen: &Value, page: &str, class: &str, status: &str) {
        assert_eq!(seen["first"], seen["again"], "{seen}");
        assert_eq!(seen["asked"], json!(["cus_declined"]), "{seen}");
        assert_eq!(seen["class"], class, "{seen}");
        let made = self.world.made();
        let made: Vec<_> = made
            .iter()
            .map(|made| (made.id.as_str(), made.amount))
            .collect();
        let told = ["first", "extra"].map(|name| seen[name].as_str().unwrap());
        assert_eq!(made, [(told[0], 9_900), (told[1], 500)]);
        let [shown] = blocks(page, "text").try_into().unwrap();
        for (name, value) in seen["shown"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            let value = if value == status { "402" } else { value };
            let line = format!("{name:<22} {value}\n");
            assert!(shown.contains(&line), "the page does not say {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_python() {
    let page = read("docs/integrations/python.md");
    let blocks = blocks(&page, "python");
    let rest = fs::read_to_string(sources("python").join("guide.py")).unwrap();
    for (major, status, class) in [
        ("16", 402, "CardError"),
        ("16", 403, "PermissionError"),
        ("6", 402, "CardError"),
    ] {
        let scene = Scene::new(status).await;
        let mut program = blocks.clone();
        program.push(&rest);
        if major == "6" {
            program.retain(|block| !block.starts_with("client = stripe.StripeClient("));
        }
        let mut program = scene.here(&program.join("\n"));
        if major == "6" {
            program = program.replace("stripe.StripeError", "stripe.error.StripeError");
        }
        let mut command = Command::new("python3");
        command
            .args(["-c", &program])
            .env("PYTHONPATH", python_home(major));
        let seen = scene.run(command).await;
        scene.check(&seen, &page, class, &status.to_string());
        assert_eq!(seen.get("read"), (major == "16").then_some(&seen["first"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_node() {
    let page = read("docs/integrations/node.md");
    let rest = fs::read_to_string(sources("node").join("guide.js")).unwrap();
    for (status, class) in [(402, "StripeCardError"), (403, "StripePermissionError")] {
        let scene = Scene::new(status).await;
        let mut program = blocks(&page, "js");
        program.push(&rest);
        let seen = scene.run(node(&scene.here(&program.join("\n")))).await;
        scene.check(&seen, &page, class, &status.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_shows_the_two_lines_as_they_work() {
    let readme = read("README.md");
    let scene = Scene::new(403).await;
    let [two_lines, except] = blocks(&readme, "python").try_into().unwrap();
    let program = format!(
        "import json, os, stripe\n{two_lines}\n\
         called = []\n\
         stop_the_run_and_call_somebody = lambda: called.append('somebody')\n\
         made = stripe.Charge.create(amount=9900, currency='usd', customer='cus_1')\n\
         try:\n    stripe.Charge.create(amount=99000, currency='usd', customer='cus_2')\n{except}\n\
         assert called, 'the cap holds 33000'\n\
         print(json.dumps(made.id))"
    );
    let mut command = Command::new("python3");
    command
        .args(["-c", &scene.here(&program)])
        .env("PYTHONPATH", python_home("16"));
    let of_python = scene.run(command).await;
    let [block] = blocks(&readme, "js").try_into().unwrap();
    let program = format!(
        "import Stripe from 'stripe';\n{block}\n\
         const made = await stripe.charges.create({{ amount: 9900, currency: 'usd', customer: 'cus_1' }});\n\
         console.log(JSON.stringify(made.id));"
    );
    let of_node = scene.run(node(&scene.here(&program))).await;
    let [made] = scene.world.made().try_into().unwrap();
    assert_eq!([&of_python, &of_node], [&json!(made.id); 2]);
}
