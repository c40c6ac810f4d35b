//! The disk under the SQLite ledger takes no more bytes, then does again.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use http::Method;
use serde_json::json;
use spendcap::clock::Clock;
use spendcap::sandbox::{Fault, FaultKind, Moment, Sandbox, SandboxSettings};
use tempfile::TempDir;

use super::{SETTLE_WAIT, SLACK, charge};
use crate::support::daemon::Daemon;
use crate::support::http::{Client, Reply};
use crate::support::operator::Operator;
use crate::support::patience::{until, within};
use crate::support::world::{environment, ledger_url, try_charge};
use crate::support::{LedgerKind, VaultKey, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_money_and_loses_nothing() {
    let place = Place::start().await;
    let key = place.operator().issue(100_000, json!({})).await;
    place.charge(&key, "cus_1").await.expect(200);

    place.limit_files_to("0");
    let refused = place.charge(&key, "cus_2").await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    assert!(place.sandbox.charges_of("cus_2").is_empty());
    // Reading works, and yet no money can be taken: a load balancer is told, and told when it is over.
    let operator = place.operator();
    let not_ready = operator
        .admin(Method::GET, "/readyz", None)
        .await
        .expect(503);
    assert!(
        not_ready.text.contains("last write failed"),
        "{}",
        not_ready.text
    );
    place.limit_files_to("unlimited");
    until("it is ready again", async || {
        let ready = operator.admin(Method::GET, "/readyz", None).await;
        (ready.status == 200).then_some(())
    })
    .await;
    place.charge(&key, "cus_2").await.expect(200);

    // And between the reserve and the settle.
    let at = Moment::BeforeCommit;
    let gate = Fault::new(FaultKind::Gate { at }).method("POST").once();
    place.sandbox.add_fault(gate);
    let full = async {
        within("requests at Stripe", place.sandbox.wait_until_held(1)).await;
        place.limit_files_to("0");
        place.sandbox.release_gate();
        Instant::now()
    };
    let (answer, since) = tokio::join!(place.charge(&key, "cus_3"), full);
    assert!(since.elapsed() < SETTLE_WAIT + SLACK);
    answer.expect(200);
    place.limit_files_to("unlimited");
    place.until_balanced(&key).await;
    place.charge(&key, "cus_3").await.expect(200);
    assert_eq!(place.sandbox.charges().len(), 3);
    place.until_balanced(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_moved_away_takes_no_money() {
    let world = World::on(LedgerKind::Sqlite).await;
    let key = world.issue(100_000, json!({})).await;
    world.charge(&key, charge("cus_1", "k1")).await.expect(200);
    let file = PathBuf::from(world.ledger_url().trim_start_matches("sqlite://"));
    let moved = file.with_extension("moved");
    fs::rename(&file, &moved).unwrap();
    for other in ["missing", "replaced"] {
        let refused = world.charge(&key, charge("cus_2", "k2")).await.expect(503);
        assert_eq!(refused.code(), "ledger_unavailable", "{other}");
        fs::write(&file, "").unwrap();
    }
    assert!(world.sandbox.charges_of("cus_2").is_empty());
    fs::rename(&moved, &file).unwrap();
    world.charge(&key, charge("cus_2", "k2")).await.expect(200);
    world.assert_balanced(&key).await;
}

struct Place {
    sandbox: Sandbox,
    client: Client,
    daemon: Daemon,
    _folder: TempDir,
}

impl Place {
    async fn start() -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        let folder = TempDir::new().unwrap();
        let url = ledger_url(LedgerKind::Sqlite, &folder).await;
        let environment = environment(&url, &sandbox.base_url(), &[]);
        // A write over the limit is to fail, as on a full disk, and not to kill.
        let mut command = Command::new("sh");
        let shielded = "trap '' XFSZ; exec \"$0\" \"$@\"";
        command.args(["-c", shielded, env!("CARGO_BIN_EXE_spendcap")]);
        let daemon = Daemon::start_by(command, folder.path(), &environment).await;
        Self {
            sandbox,
            client: Client::new(),
            daemon,
            _folder: folder,
        }
    }

    /// The largest size of a file that the process may write to.
    fn limit_files_to(&self, bytes: &str) {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &self.daemon.id().to_string()]);
        command.arg(format!("--fsize={bytes}:unlimited"));
        assert!(command.status().unwrap().success());
    }

    fn operator(&self) -> Operator {
        Operator {
            client: self.client.clone(),
            admin_url: format!("http://{}", self.daemon.admin),
            clock: Clock::system(),
        }
    }

    async fn charge(&self, key: &VaultKey, customer: &str) -> Reply {
        let url = format!("http://{}", self.daemon.proxy);
        let charge = charge(customer, customer);
        let answer = try_charge(&self.client, &url, &key.secret, charge).await;
        answer.unwrap()
    }

    /// Waits until nothing is reserved; settled is then what the sandbox took.
    async fn until_balanced(&self, key: &VaultKey) {
        let operator = self.operator();
        operator
            .admin(Method::GET, "/healthz", None)
            .await
            .expect(200);
        let taken: i64 = self
            .sandbox
            .charges()
            .iter()
            .map(|charge| charge.amount_captured)
            .sum();
        let cap = until("nothing is reserved", async || {
            let cap = operator.cap(key, "usd").await;
            (cap["reserved"] == 0).then_some(cap)
        });
        assert_eq!(cap.await["settled"], taken);
    }
}
