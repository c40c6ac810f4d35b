//! A Stripe SDK in its own language, driven over JSON lines: `tests/clients/README.md` says how.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::tap::Tap;
use crate::support::clients::{installed, sources};

/// Longest that one call may take: three sends that each end at Stripe's side only by spendcap's time-out,
/// with the SDK's pauses between them, on a busy machine.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// One way to use one SDK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sdk {
    /// In the names of its customers.
    pub(super) name: &'static str,
    /// On the page, behind the SDK's own name and version; empty where there is one way only.
    pub(super) how: &'static str,
    command: fn() -> Command,
}

/// Every SDK that is run. A line here is all that another one takes.
pub(super) const CLIENTS: [Sdk; 8] = [
    Sdk {
        name: "python16",
        how: "",
        command: || python("16", "global"),
    },
    Sdk {
        name: "python16_client",
        how: ", `StripeClient`",
        command: || python("16", "client"),
    },
    Sdk {
        name: "python16_async",
        how: ", `create_async`",
        command: || python("16", "async"),
    },
    Sdk {
        name: "python6",
        how: "",
        command: || python("6", "global"),
    },
    Sdk {
        name: "node23",
        how: "",
        command: node_client,
    },
    Sdk {
        name: "async_stripe",
        how: "",
        command: || async_stripe("once"),
    },
    Sdk {
        name: "async_stripe_backoff",
        how: ", `ExponentialBackoff(3)`",
        command: || async_stripe("backoff"),
    },
    Sdk {
        name: "curl",
        how: "",
        command: curl,
    },
];

fn python(major: &str, mode: &str) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(sources("python").join("client.py"))
        .arg(mode)
        .env("PYTHONPATH", python_home(major));
    command
}

/// Where that version of stripe-python is installed.
pub(super) fn python_home(major: &str) -> PathBuf {
    installed("python").join(major)
}

/// Runs a text as a module, with stripe-node at hand: for a text, Node looks in the working folder.
pub(super) fn node(program: &str) -> Command {
    let mut command = Command::new("node");
    command
        .args(["--input-type=module", "--eval", program])
        .current_dir(installed("node"));
    command
}

fn node_client() -> Command {
    node(&fs::read_to_string(sources("node").join("client.js")).unwrap())
}

fn async_stripe(strategy: &str) -> Command {
    let mut command = Command::new(installed("async-stripe").join("async-stripe-client"));
    command.arg(strategy);
    command
}

/// No SDK: what the answers say, without anything between.
fn curl() -> Command {
    let mut command = Command::new("python3");
    command.arg(sources("curl").join("client.py"));
    command
}

/// What one call came to, as the SDK's user sees it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Record {
    pub(super) client: String,
    pub(super) version: String,
    pub(super) case: String,
    pub(super) class: Option<String>,
    pub(super) code: Option<String>,
    /// Not at the first place where a user would look.
    #[serde(default)]
    pub(super) code_hidden: bool,
    #[serde(rename = "type")]
    pub(super) error_type: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) ids: Vec<String>,
    #[serde(default)]
    pub(super) amount_captured: i64,
    /// What it sent beyond its first request, counted on the wire.
    #[serde(skip)]
    pub(super) retries: usize,
}

impl Record {
    /// The charge of a call that returned one.
    #[track_caller]
    pub(super) fn id(&self) -> &str {
        let [id] = self.ids.as_slice() else {
            panic!("one charge was wanted: {self:?}");
        };
        id
    }
}

/// A running program. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) sdk: Sdk,
    child: Child,
    calls: ChildStdin,
    answers: UnboundedReceiver<String>,
    complaints: Arc<Mutex<String>>,
    taps: HashMap<SocketAddr, Tap>,
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Client {
    pub(super) fn start(sdk: Sdk) -> Self {
        let mut child = (sdk.command)()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", sdk.name));
        let (send, answers) = unbounded_channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines() {
                let gone = line.map_or(true, |line| send.send(line).is_err());
                if gone {
                    return;
                }
            }
        });
        let complaints = Arc::new(Mutex::new(String::new()));
        let (said, mut stderr) = (Arc::clone(&complaints), child.stderr.take().unwrap());
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..length]);
                said.lock().unwrap().push_str(&text);
            }
        });
        Self {
            sdk,
            calls: child.stdin.take().unwrap(),
            child,
            answers,
            complaints,
            taps: HashMap::new(),
        }
    }

    /// Makes one call at the spendcap on `proxy`.
    pub(super) async fn call(&mut self, proxy: SocketAddr, mut call: Value) -> Record {
        self.tap(proxy).await;
        let tap = &self.taps[&proxy];
        call["base_url"] = format!("http://{}", tap.address).into();
        let before = tap.requests();
        // A program that has ended is told of below.
        let _written = writeln!(self.calls, "{call}");
        let Ok(Some(line)) = timeout(CALL_TIMEOUT, self.answers.recv()).await else {
            let said = self.complaints.lock().unwrap();
            panic!("{} did not answer {call}: {said}", self.sdk.name);
        };
        let mut record: Record = serde_json::from_str(&line).unwrap();
        let Record {
            client, version, ..
        } = &record;
        let who = format!("{client} {version}{}", self.sdk.how);
        assert_eq!(record.case, call["case"], "{who}: {line}");
        let sent = tap.requests() - before;
        assert!(sent > 0, "{who}: nothing was sent for {call}");
        record.retries = sent - 1;
        record
    }

    /// What its requests to the spendcap on `proxy` pass.
    pub(super) async fn tap(&mut self, proxy: SocketAddr) -> &Tap {
        match self.taps.entry(proxy) {
            Entry::Occupied(tap) => tap.into_mut(),
            Entry::Vacant(none) => none.insert(Tap::to(proxy).await),
        }
    }
}
