//! The disk under the SQLite ledger: a small one that another program fills under load, and a file that
//! becomes read-only.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::daemon::Daemon;
use crate::support::fleet::operator_at;
use crate::support::http::{Client, Reply};
use crate::support::operator::Operator;
use crate::support::patience::until;
use crate::support::program::{RUN_MAX, run};
use crate::support::world::{environment, try_charge};
use crate::support::{Charge, VaultKey};

/// Whoever it is, he is not root: root writes what is read-only.
const NOBODY: u32 = 65_534;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_another_program_fills_refuses_money_until_there_is_room() {
    let folder = TempDir::new().unwrap();
    // The limit of a file's size does the same where this machine lets nobody mount.
    let mounted = may_mount().await;
    let script = if mounted {
        "mount -t tmpfs -o size=2m none . && cd \"$PWD\" && exec \"$0\" \"$@\""
    } else {
        "trap '' XFSZ; exec \"$0\" \"$@\""
    };
    let mut command = Command::new(if mounted { "unshare" } else { "env" });
    command.args(mounted.then_some("--mount"));
    command.args(["sh", "-c", script, env!("CARGO_BIN_EXE_spendcap")]);
    let place = Place::start(command, folder.path()).await;
    let disk = Disk::of(&place.daemon, folder.path(), mounted);
    let key = place.operator().issue(10_000_000, json!({})).await;
    place.charge(&key, "cus_before").await.expect(200);

    disk.fill();
    let refused = place.charge(&key, "cus_refused").await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    assert_eq!(refused.header("stripe-should-retry"), "true");
    assert!(
        place
            .daemon
            .output()
            .text()
            .contains("The ledger was not written")
    );
    let mut load = JoinSet::new();
    for n in 0..20 {
        let asked = place.ask(&key, format!("cus_{n}"));
        load.spawn(asked);
    }
    for refused in load.join_all().await {
        assert_eq!(refused.expect(503).code(), "ledger_unavailable");
    }
    assert_eq!(place.sandbox.charges().len(), 1);

    disk.free();
    for customer in (0..20).map(|n| format!("cus_{n}")) {
        until(&format!("{customer} is charged"), async || {
            let answer = place.charge(&key, &customer).await;
            (answer.status == 200).then_some(())
        })
        .await;
        assert_eq!(place.sandbox.charges_of(&customer).len(), 1);
    }
    place.assert_balanced(&key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_file_refuses_the_start_and_money_until_it_may_be_written() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("spendcap");
    fs::copy(env!("CARGO_BIN_EXE_spendcap"), &program).unwrap();
    let ledger = folder.path().join("books");
    fs::create_dir(&ledger).unwrap();
    if rustix::process::getuid().is_root() {
        for owned in [folder.path(), &program, &ledger] {
            chown(owned, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let mut place = Place::start(as_nobody(&program), &ledger).await;
    let key = place.operator().issue(10_000_000, json!({})).await;
    place.charge(&key, "cus_1").await.expect(200);

    // What is open stays so; the next connection finds a file that it may not write.
    set_writable(&ledger, false);
    limit_files(&place.daemon, "0");
    place.charge(&key, "cus_2").await.expect(503);
    limit_files(&place.daemon, "unlimited");
    let refused = place.charge(&key, "cus_2").await.expect(503);
    assert_eq!(refused.code(), "ledger_unavailable");
    let said = place.daemon.output().text();
    assert!(
        said.contains("readonly") || said.contains("unable to open"),
        "{said}"
    );
    set_writable(&ledger, true);
    until("it is charged again", async || {
        let answer = place.charge(&key, "cus_2").await;
        (answer.status == 200).then_some(())
    })
    .await;
    place.assert_balanced(&key).await;

    place.daemon.kill();
    set_writable(&ledger, false);
    let mut command = as_nobody(&program);
    command.arg("serve").current_dir(&ledger).env_clear();
    command.envs(place.environment.iter().map(|(name, value)| (name, value)));
    let refused = run(command, RUN_MAX).await;
    assert!(!refused.status.success(), "{refused:?}");
    assert!(refused.stderr.contains("cannot be"), "{refused:?}");
    set_writable(&ledger, true);
    place.daemon = Daemon::start_by(as_nobody(&program), &ledger, &place.environment).await;
    place.charge(&key, "cus_3").await.expect(200);
    assert_eq!(place.sandbox.charges().len(), 3);
    place.assert_balanced(&key).await;
}

struct Place {
    sandbox: Sandbox,
    client: Client,
    daemon: Daemon,
    environment: Vec<(String, String)>,
}

impl Place {
    /// Its ledger is in `folder`, as the process finds it there.
    async fn start(command: Command, folder: &Path) -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        let url = format!("sqlite://{}/ledger.db", folder.display());
        let environment = environment(&url, &sandbox.base_url(), &[]);
        let daemon = Daemon::start_by(command, folder, &environment).await;
        Self {
            sandbox,
            client: Client::new(),
            daemon,
            environment,
        }
    }

    fn operator(&self) -> Operator {
        operator_at(&self.client, self.daemon.admin)
    }

    async fn charge(&self, key: &VaultKey, customer: &str) -> Reply {
        self.ask(key, customer.to_owned()).await
    }

    fn ask(&self, key: &VaultKey, customer: String) -> impl Future<Output = Reply> + 'static {
        let (client, secret) = (self.client.clone(), key.secret.clone());
        let url = format!("http://{}", self.daemon.proxy);
        async move {
            let charge = Charge {
                customer: &customer,
                idempotency_key: Some(&customer),
                ..Charge::default()
            };
            try_charge(&client, &url, &secret, charge).await.unwrap()
        }
    }

    async fn assert_balanced(&self, key: &VaultKey) {
        let made = self.sandbox.charges();
        let taken: i64 = made.iter().map(|charge| charge.amount_captured).sum();
        let cap = self.operator().cap(key, "usd").await;
        assert_eq!(cap["settled"], taken, "{cap}");
        assert_eq!(cap["reserved"], 0, "{cap}");
    }
}

/// The disk of a process: full, and free again.
enum Disk<'a> {
    /// One of two megabytes that only the process sees; this file takes the rest of it.
    Small(PathBuf),
    Limit(&'a Daemon),
}

impl<'a> Disk<'a> {
    fn of(daemon: &'a Daemon, folder: &Path, mounted: bool) -> Self {
        if !mounted {
            return Self::Limit(daemon);
        }
        let seen = PathBuf::from(format!("/proc/{}/root", daemon.id()));
        let folder = folder.strip_prefix("/").unwrap();
        Self::Small(seen.join(folder).join("filler"))
    }

    fn fill(&self) {
        match self {
            Self::Small(filler) => {
                let more_than_there_is = vec![0; 4 << 20];
                let full = fs::write(filler, more_than_there_is).unwrap_err();
                assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
            }
            Self::Limit(daemon) => limit_files(daemon, "0"),
        }
    }

    fn free(&self) {
        match self {
            Self::Small(filler) => fs::remove_file(filler).unwrap(),
            Self::Limit(daemon) => limit_files(daemon, "unlimited"),
        }
    }
}

/// Whether a process of ours may mount in a name space of its own.
async fn may_mount() -> bool {
    let mut attempt = Command::new("unshare");
    attempt.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]);
    run(attempt, RUN_MAX).await.status.success()
}

/// The largest size of a file that the process may write to.
fn limit_files(daemon: &Daemon, bytes: &str) {
    let status = fs::metadata(format!("/proc/{}", daemon.id())).unwrap();
    let mut command = Command::new("prlimit");
    if status.uid() != rustix::process::getuid().as_raw() {
        // Whoever runs it may set its limits.
        command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "prlimit",
        ]);
    }
    command.args(["--pid", &daemon.id().to_string()]);
    command.arg(format!("--fsize={bytes}:unlimited"));
    assert!(command.status().unwrap().success());
}

/// A command that ends up in `program`, without a right to write what is read-only.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("sh");
    let shielded = if rustix::process::getuid().is_root() {
        "trap '' XFSZ; exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$@\""
    } else {
        "trap '' XFSZ; exec \"$0\" \"$@\""
    };
    command.args(["-c", shielded]).arg(program);
    command
}

/// Everything in the folder, and the folder.
fn set_writable(folder: &Path, writable: bool) {
    let (files, entries) = if writable {
        (0o600, 0o700)
    } else {
        (0o400, 0o500)
    };
    for entry in fs::read_dir(folder).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(files)).unwrap();
    }
    fs::set_permissions(folder, Permissions::from_mode(entries)).unwrap();
}
