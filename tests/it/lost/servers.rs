//! A PostgreSQL and its standby, of this test alone: to be stopped, cut off and promoted.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tempfile::TempDir;

use crate::support::patience::until;
use crate::support::program::run;
use crate::support::relay::Relay;

/// Longest that one of PostgreSQL's programs may run, on a machine that is busy with other tests.
const PROGRAM_MAX: Duration = Duration::from_mins(2);

/// Another process may take the port that was free a moment ago.
const STARTS_MAX: usize = 10;

/// Both, and what the standby hears of the primary. Dropped, they are stopped.
pub(crate) struct Servers {
    pub(crate) primary: Server,
    pub(crate) standby: Server,
    /// From the primary to the standby.
    pub(crate) wire: Relay,
    _folder: TempDir,
}

/// One of them.
pub(crate) struct Server {
    bin: PathBuf,
    data: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Servers {
    /// A primary and a standby that follows it, not synchronously.
    pub(crate) async fn start() -> Self {
        let bin = bin();
        let folder = TempDir::new().unwrap();
        if rustix::process::getuid().is_root() {
            let chown = Command::new("chown")
                .arg("postgres")
                .arg(folder.path())
                .status();
            assert!(
                chown.unwrap().success(),
                "the folder cannot be given to postgres"
            );
        }
        let primary = folder.path().join("primary");
        program(
            &bin,
            "initdb",
            &[
                "-U",
                "postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
                text(&primary),
            ],
        )
        .await;
        let primary = Server::start(&bin, primary, folder.path()).await;
        let wire = Relay::to(primary.address);
        let standby = folder.path().join("standby");
        let source = format!(
            "host={} port={} user=postgres",
            wire.addr().ip(),
            wire.addr().port()
        );
        program(
            &bin,
            "pg_basebackup",
            &[
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "--no-sync",
                "-d",
                &source,
                "-D",
                text(&standby),
            ],
        )
        .await;
        let standby = Server::start(&bin, standby, folder.path()).await;
        Self {
            primary,
            standby,
            wire,
            _folder: folder,
        }
    }

    /// Waits until the standby has what the primary has now.
    pub(crate) async fn until_followed(&self) {
        let here = self.primary.ask("SELECT pg_current_wal_lsn()::TEXT").await;
        let behind = format!("SELECT (pg_last_wal_replay_lsn() >= '{here}'::pg_lsn)::TEXT");
        until("the standby follows", async || {
            (self.standby.ask(&behind).await == "true").then_some(())
        })
        .await;
    }

    /// The primary dies at once, and the standby takes over.
    pub(crate) async fn fail_over(&self) {
        self.primary.stop();
        self.standby.control(&["promote", "-w", "-t", "60"]).await;
    }
}

impl Server {
    async fn start(bin: &Path, data: PathBuf, sockets: &Path) -> Self {
        let log = sockets.join("server.log");
        for _ in 0..STARTS_MAX {
            let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = taken.local_addr().unwrap();
            drop(taken);
            let options = format!(
                "-p {} -c listen_addresses=127.0.0.1 -c fsync=off -c unix_socket_directories={}",
                address.port(),
                text(sockets)
            );
            let server = Self {
                bin: bin.to_owned(),
                data: data.clone(),
                address,
            };
            let start = [
                "-D",
                text(&data),
                "-l",
                text(&log),
                "-o",
                &options,
                "-w",
                "-t",
                "60",
                "start",
            ];
            let ran = run(as_postgres(bin, "pg_ctl", &start), PROGRAM_MAX).await;
            if ran.status.success() {
                return server;
            }
        }
        let log = std::fs::read_to_string(log).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    /// As a ledger's URL.
    pub(crate) fn url_at(address: SocketAddr) -> String {
        format!("postgres://postgres@{address}/postgres")
    }

    /// The first column of the first row, as text.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let mut connection = PgConnection::connect(&Self::url_at(self.address))
            .await
            .unwrap();
        let row = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut connection)
            .await;
        row.unwrap().get(0)
    }

    /// At once: connections break, nothing is flushed.
    pub(crate) fn stop(&self) {
        let stop = ["-D", text(&self.data), "-m", "immediate", "stop"];
        // It may be stopped already.
        drop(as_postgres(&self.bin, "pg_ctl", &stop).output());
    }

    async fn control(&self, what: &[&str]) {
        let mut args = vec!["-D", text(&self.data)];
        args.extend(what);
        program(&self.bin, "pg_ctl", &args).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The newest PostgreSQL on this machine, as `./test` looks for it.
fn bin() -> PathBuf {
    let mut found: Vec<PathBuf> = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).into();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut versions: Vec<PathBuf> = versions
        .map(|version| version.unwrap().path().join("bin"))
        .collect();
    versions.sort();
    found.extend(versions);
    let wanted = ["initdb", "pg_ctl", "pg_basebackup"];
    let whole = |folder: &PathBuf| wanted.iter().all(|name| folder.join(name).exists());
    let Some(found) = found.into_iter().rev().find(whole) else {
        panic!("PostgreSQL's initdb, pg_ctl and pg_basebackup are not installed: run ./test once");
    };
    found
}

async fn program(bin: &Path, name: &str, args: &[&str]) {
    run(as_postgres(bin, name, args), PROGRAM_MAX).await.ok();
}

/// PostgreSQL refuses to run as root.
fn as_postgres(bin: &Path, name: &str, args: &[&str]) -> Command {
    let program = bin.join(name);
    let mut command = if rustix::process::getuid().is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(args).current_dir("/");
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
