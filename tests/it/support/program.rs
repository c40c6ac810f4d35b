//! Other programs, which a test runs to their end, and not for ever.

use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// Longest a client of the tests may run, on a machine that is busy with other things.
pub(crate) const RUN_MAX: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(5);

/// What a program that has ended said.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Fails unless the program exited with 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        let Self {
            status,
            stdout,
            stderr,
        } = &self;
        assert!(status.success(), "{status}\n{stdout}\n{stderr}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("not JSON: {self:#?}"))
    }
}

/// A process group that is killed when it is dropped, unless it has ended.
struct Group(Option<Child>);

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        // It may end by itself at this moment.
        let _ended = kill_process_group(Pid::from_child(&child), Signal::KILL);
        drop(child.wait());
    }
}

/// Runs it to its end. Past `limit` it is killed with what it has started, and the test fails.
pub(crate) async fn run(command: Command, limit: Duration) -> Ran {
    run_on(command, String::new(), limit).await
}

/// The same with `input` as its standard input.
pub(crate) async fn run_on(mut command: Command, input: String, limit: Duration) -> Ran {
    let what = format!("{command:?}");
    let spawned = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("{what} does not start: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    // It may end without having read all of it, which its output explains.
    thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let mut group = Group(Some(child));
    let ended = timeout(limit, wait(&mut group)).await.ok();
    // Now nobody holds the output open any more.
    drop(group);
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let Some(status) = ended else {
        panic!("{what} ran longer than {limit:?}\n{stdout}\n{stderr}");
    };
    Ran {
        status,
        stdout,
        stderr,
    }
}

async fn wait(group: &mut Group) -> ExitStatus {
    loop {
        let child = group.0.as_mut().unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            group.0 = None;
            return status;
        }
        sleep(PAUSE).await;
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
