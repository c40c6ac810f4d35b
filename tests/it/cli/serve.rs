//! `spendcap serve` as a process: what it logs, and how it ends.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use spendcap::clock::Clock;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Fault, FaultKind, Outage, Sandbox, SandboxSettings};

use crate::support::Charge;
use crate::support::http::Client;
use crate::support::operator::{ADMIN_TOKEN, Operator};
use crate::support::world::try_charge;

/// Longer than any step here takes; a hang fails instead of hanging.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server and its log, line by line.
struct Server {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<Value>,
}

impl Server {
    fn start(sandbox: &Sandbox, folder: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spendcap"))
            .arg("serve")
            .current_dir(folder)
            .env_clear()
            .env("STRIPE_SECRET_KEY", SECRET_KEY_DEFAULT)
            .env("SPENDCAP_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("SPENDCAP_UPSTREAM_BASE_URL", sandbox.base_url())
            .env("SPENDCAP_PROXY_LISTEN", "127.0.0.1:0")
            .env("SPENDCAP_ADMIN_LISTEN", "127.0.0.1:0")
            .env("SPENDCAP_PROXY_DRAIN_MS", "0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || log.lines().try_for_each(|line| send.send(line.unwrap())));
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The next line with this message.
    fn line(&mut self, message: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            self.seen.push(line.clone());
            if line["message"] == message {
                return line;
            }
        }
    }

    /// SIGTERM, and the exit code.
    fn terminate(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(told.success());
        self.line("Stopped");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already, unless the test failed.
        let _ended = self.child.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_money_request_is_a_line_and_no_line_holds_a_secret() {
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&sandbox, folder.path());
    let starting = server.line("Starting");
    assert_eq!(starting["ledger"], "sqlite://spendcap.db");
    assert_eq!(starting["upstream"], sandbox.base_url());
    assert_eq!(starting["mode"], "test");
    assert!(starting["account"].as_str().unwrap().starts_with("acct_"));
    let serving = server.line("Serving");
    let url = |name: &str| format!("http://{}", serving[name].as_str().unwrap());

    let client = Client::new();
    let operator = Operator {
        client: client.clone(),
        admin_url: url("admin"),
        clock: Clock::system(),
    };
    let key = operator.issue(20_000, json!({})).await;
    let charge = async |customer, idempotency_key| {
        let charge = Charge {
            customer,
            idempotency_key: Some(idempotency_key),
            more: "&description=hunter2",
            ..Charge::default()
        };
        try_charge(&client, &url("proxy"), &key.secret, charge)
            .await
            .unwrap()
    };

    let reply = charge("cus_1", "a").await.expect(200);
    let line = server.line("Money request");
    assert_eq!(line["vault_key"], key.id.as_str());
    assert_eq!(line["customer"], "cus_1");
    assert_eq!(line["operation"], "charges.create");
    assert_eq!(line["amount_minor"], 9900);
    assert_eq!(line["currency"], "usd");
    assert_eq!(line["decision"], "send");
    assert_eq!(line["state"], "settled");
    assert_eq!(line["status"], 200);
    assert_eq!(line["stripe_request_id"], reply.header("request-id"));
    for stage in ["reserve_ms", "stripe_ms", "settle_ms", "total_ms"] {
        assert!(line[stage].is_u64(), "{line}");
    }

    charge("cus_1", "b").await.expect(200);
    let line = server.line("Money request");
    assert_eq!(line["decision"], "answer_with_existing");
    assert_eq!(line["flags"], "duplicate_customer_period");

    sandbox.add_fault(Fault::new(FaultKind::CommitThenFin).customer("cus_2"));
    charge("cus_2", "c").await.expect(504);
    let held = server.line("A reservation is held: its outcome is unknown");
    assert_eq!(held["level"], "WARN");
    let line = server.line("Money request");
    assert_eq!(
        (&line["outcome"], &line["state"]),
        (&json!("unknown"), &json!("held"))
    );
    assert_eq!(line["reservation"], held["reservation"]);

    let reply = charge("cus_3", "d").await.expect(402);
    let line = server.line("Money request");
    assert_eq!(line["decision"], "refuse");
    assert_eq!(line["code"], "spend_cap_reached");
    assert_eq!(line["request_id"], reply.header("request-id"));

    assert_eq!(server.terminate(), Some(0));
    let log = json!(server.seen).to_string();
    for secret in [SECRET_KEY_DEFAULT, ADMIN_TOKEN, &key.secret, "hunter2"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_key_that_stripe_does_not_accept_does_not_start() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
    sandbox.set_secret_key("sk_test_another");
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&sandbox, folder.path());
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    let told: Vec<String> = server.lines.iter().collect();
    let last = told.last().unwrap();
    assert!(
        last.ends_with("Stripe does not accept the real key (401)"),
        "{told:?}"
    );
}

/// A key of another account would charge anew what this ledger knows as charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_money_moves_before_stripe_has_told_whose_the_real_key_is() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::new();
    let mut secret = String::new();
    for (account_id, told, status) in [
        ("acct_one", "The real key is in use", 200),
        ("acct_other", "The real key is refused", 503),
    ] {
        let sandbox = Sandbox::start(SandboxSettings {
            account_id: account_id.to_owned(),
            ..SandboxSettings::default()
        })
        .unwrap();
        sandbox.set_outage(Outage::Status503);
        let mut server = Server::start(&sandbox, folder.path());
        let serving = server.line("Serving");
        let url = |name: &str| format!("http://{}", serving[name].as_str().unwrap());
        if secret.is_empty() {
            let operator = Operator {
                client: client.clone(),
                admin_url: url("admin"),
                clock: Clock::system(),
            };
            secret = operator.issue(20_000, json!({})).await.secret;
        }
        let proxy_url = url("proxy");
        let charge = || try_charge(&client, &proxy_url, &secret, Charge::default());
        let early = charge().await.unwrap().expect(503);
        assert_eq!(early.code(), "upstream_unhealthy");
        sandbox.set_outage(Outage::Off);
        server.line(told);
        charge().await.unwrap().expect(status);
        assert_eq!(sandbox.charges().len(), usize::from(status == 200));
        assert_eq!(server.terminate(), Some(0));
    }
}
