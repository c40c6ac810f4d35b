//! A billing job of `tests/clients/java` in a JVM of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::support::clients::installed;

/// A run takes seconds; this is for a machine that is busy with other things.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);

/// How a call of the job ended, as it printed it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Call {
    pub(super) customer: String,
    /// 0 where the call ended with an exception.
    pub(super) status: u16,
    /// The charge's id; empty where there is none.
    pub(super) charge: String,
    /// `error.code`.
    pub(super) code: String,
    /// Whether the answer said `Idempotent-Replayed`.
    pub(super) replayed: bool,
    pub(super) exception: String,
    /// What the job makes of the answer.
    pub(super) verdict: String,
}

/// A running job; killed when it is dropped.
#[derive(Debug)]
pub(super) struct Jvm {
    child: Child,
    lines: UnboundedReceiver<String>,
    errors: Option<thread::JoinHandle<String>>,
    deadline: Instant,
}

impl Jvm {
    /// Starts `Main` with a base URL and a key as a billing service finds them: in its environment.
    pub(super) fn start(api_base: &str, api_key: &str, arguments: &[&str]) -> Self {
        let classpath = fs::read_to_string(installed("java").join("classpath"));
        let Ok(classpath) = classpath else {
            panic!("the billing jobs are not compiled: run the tests with ./test");
        };
        // Short runs: less time in the compiler, and little memory, since several run at once.
        let child = Command::new("java")
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"])
            .args(["-cp", &classpath, "billing.Main"])
            .args(arguments)
            .env("STRIPE_API_BASE", api_base)
            .env("STRIPE_API_KEY", api_key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("java does not start: {error}"));
        let (said, lines) = unbounded_channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            // Nobody listens any more once the test has failed.
            for line in output.lines().map_while(Result::ok) {
                drop(said.send(line));
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            drop(stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            lines,
            errors: Some(errors),
            deadline: Instant::now() + RUN_TIMEOUT,
        }
    }

    /// Waits until it says that it is ready.
    pub(super) async fn ready(&mut self) {
        assert_eq!(self.line().await.as_deref(), Some("ready"));
    }

    /// Says when to start, which it waits for once it is ready.
    pub(super) fn go(&mut self, when: &str) {
        let mut input = self.child.stdin.take().unwrap();
        writeln!(input, "{when}").unwrap();
    }

    /// Waits for its end. How each call ended, in the order in which they did.
    pub(super) async fn ended(mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        while let Some(line) = self.line().await {
            let call = serde_json::from_str(&line);
            calls.push(call.unwrap_or_else(|error| panic!("{error}: {line}")));
        }
        let status = self.child.wait().unwrap();
        let errors = self.errors.take().map(|errors| errors.join().unwrap());
        assert!(status.success(), "{status}: {}", errors.unwrap_or_default());
        calls
    }

    /// Its next line; `None` when it has ended.
    async fn line(&mut self) -> Option<String> {
        if let Ok(line) = timeout_at(self.deadline, self.lines.recv()).await {
            return line;
        }
        self.child.kill().unwrap();
        let errors = self.errors.take().map(|errors| errors.join().unwrap());
        panic!("the JVM hangs: {}", errors.unwrap_or_default());
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
