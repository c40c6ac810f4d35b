//! A PostgreSQL of one test's own, which it can kill.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::program::{RUN_MAX, Ran, run};

/// Another process may take the port that was free a moment ago.
const STARTS_MAX: usize = 10;

/// Dropped, it is killed.
pub(crate) struct Cluster {
    bin: PathBuf,
    folder: TempDir,
    address: SocketAddr,
}

impl Cluster {
    /// A new, empty one.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        if rustix::process::getuid().is_root() {
            let mut chown = Command::new("chown");
            chown.arg("postgres").arg(folder.path());
            run(chown, RUN_MAX).await.ok();
        }
        let mut cluster = Self {
            bin: bin(),
            folder,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        let options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
        let mut initdb = cluster.program("initdb", &["-U", "postgres"]);
        initdb.args(options);
        run(initdb, RUN_MAX).await.ok();
        cluster.run_again().await;
        cluster
    }

    /// Starts what was killed, on another port: the old one may be somebody else's by now.
    pub(crate) async fn run_again(&mut self) {
        let log = self.folder.path().join("log");
        for _ in 0..STARTS_MAX {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            self.address = free.local_addr().unwrap();
            drop(free);
            let options = format!(
                "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={}",
                self.address.port(),
                text(self.folder.path())
            );
            let start = ["-l", text(&log), "-o", &options, "-w", "start"];
            if self.control(&start).await.status.success() {
                return;
            }
        }
        let log = std::fs::read_to_string(log).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// Every one of its processes ends at once; nothing is flushed and nobody is told.
    pub(crate) async fn kill(&self) {
        self.control(&["-m", "immediate", "stop"]).await.ok();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its database, as it is found through `address`.
    pub(crate) fn url_at(address: SocketAddr) -> String {
        format!("postgres://postgres@{address}/postgres?sslmode=disable")
    }

    async fn control(&self, what: &[&str]) -> Ran {
        run(self.program("pg_ctl", what), RUN_MAX).await
    }

    /// PostgreSQL refuses to run as root.
    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let program = self.bin.join(name);
        let mut command = if rustix::process::getuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.arg("-D").arg(self.folder.path().join("data"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stop = ["-m", "immediate", "stop"];
        // It may be dead already.
        drop(self.program("pg_ctl", &stop).output());
    }
}

/// The newest PostgreSQL on this machine, as `./test` looks for it.
fn bin() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql");
    let versions = installed.into_iter().flatten();
    let mut found: Vec<_> = versions.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let mut found: Vec<_> = found.iter().map(|version| version.join("bin")).collect();
    found.splice(0..0, ["/usr/bin", "/usr/local/bin"].map(PathBuf::from));
    let whole = |folder: &PathBuf| folder.join("initdb").exists();
    let found = found.into_iter().rev().find(whole);
    found.unwrap_or_else(|| panic!("PostgreSQL's initdb is not installed: run ./test once"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
