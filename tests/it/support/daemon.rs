//! spendcap as a process of its own, which a test can kill.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::sync::watch;

use super::patience::{until, within};

/// A start takes well under a second; this is for a machine that is busy with other things.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A running `spendcap serve`.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Owned,
    pub(crate) proxy: SocketAddr,
    pub(crate) admin: SocketAddr,
    output: Output,
    readers: [thread::JoinHandle<()>; 2],
}

/// A process that is killed when it is dropped.
#[derive(Debug)]
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What it has written to standard output and standard error so far.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    grown: watch::Sender<()>,
}

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits until it has said `what` so many times.
    pub(crate) async fn until_said(&self, what: &str, times: usize) {
        let said = self.until(|text| (text.matches(what).count() >= times).then_some(()));
        within(what, said).await;
    }

    fn collect(&self, mut from: impl Read + Send + 'static) -> thread::JoinHandle<()> {
        let output = self.clone();
        thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(length @ 1..) = from.read(&mut chunk) {
                output
                    .bytes
                    .lock()
                    .unwrap()
                    .extend_from_slice(&chunk[..length]);
                output.grown.send_replace(());
            }
        })
    }

    /// Waits until `found` finds what it looks for.
    async fn until<T>(&self, mut found: impl FnMut(&str) -> Option<T>) -> T {
        let mut grown = self.grown.subscribe();
        loop {
            if let Some(found) = found(&self.text()) {
                return found;
            }
            grown.changed().await.unwrap();
        }
    }
}

impl Daemon {
    /// Starts the command with these variables and no others, and waits until it serves.
    pub(crate) async fn start(folder: &Path, environment: &[(String, String)]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_spendcap"));
        Self::start_by(command, folder, environment).await
    }

    /// The same by a command that ends up in spendcap once `serve` is added.
    pub(crate) async fn start_by(
        mut command: Command,
        folder: &Path,
        environment: &[(String, String)],
    ) -> Self {
        let child = command
            .arg("serve")
            .current_dir(folder)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Owned(child);
        let output = Output {
            bytes: Arc::default(),
            grown: watch::Sender::new(()),
        };
        let readers = [
            output.collect(child.0.stdout.take().unwrap()),
            output.collect(child.0.stderr.take().unwrap()),
        ];
        let serving = async {
            tokio::select! {
                addresses = output.until(addresses) => Some(addresses),
                () = ended(&readers) => None,
            }
        };
        let serving = tokio::time::timeout(START_TIMEOUT, serving).await;
        let Ok(Some((proxy, admin))) = serving else {
            panic!("spendcap does not serve: {}", output.text());
        };
        Self {
            child,
            proxy,
            admin,
            output,
            readers,
        }
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// SIGKILL: no handler, no flush, no goodbye.
    pub(crate) fn kill(&mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP: it does nothing from now on, and none of its connections ends.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        // Returns once every thread has stopped.
        let stopped = waitpid(Some(Pid::from_child(&self.child.0)), WaitOptions::UNTRACED);
        let (_, status) = stopped.unwrap().unwrap();
        assert!(status.stopped(), "{}", self.output.text());
    }

    /// SIGCONT: it goes on where it was.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }

    /// Waits for its end; returns how that was and all it has said.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, String) {
        let status = until(
            "the process has ended and all it said is read",
            async || {
                let read = self.readers.iter().all(thread::JoinHandle::is_finished);
                self.child.0.try_wait().unwrap().filter(|_| read)
            },
        );
        (status.await, self.output.text())
    }
}

/// Waits until everything that the process said is read.
async fn ended(readers: &[thread::JoinHandle<()>]) {
    while !readers.iter().all(thread::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Both addresses out of the line that says "Serving", in either format.
fn addresses(log: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (whole_lines, _) = log.rsplit_once('\n')?;
    let line = whole_lines.lines().find(|line| line.contains("Serving"))?;
    let address = |name: &str| {
        let (_, rest) = line.split_once(name)?;
        let rest = rest.trim_start_matches(['"', ':', '=']);
        let end = rest.find([' ', '"', ',', '}']).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    Some((address("proxy")?, address("admin")?))
}
