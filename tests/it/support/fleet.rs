//! Replicas as processes of their own: the real binary, as an operator starts it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

/// Longest a replica may take to listen, on a machine that is busy with other tests.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// One process that serves; it is killed when this is dropped.
pub(crate) struct Replica {
    child: Child,
    pub(crate) proxy_url: String,
}

impl Replica {
    /// Starts `spendcap serve` with these settings and waits until it listens. It begins with room for
    /// few open files, as many systems give it.
    pub(crate) async fn start(environment: &[(String, String)]) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -Sn 256 && exec \"$0\" serve"])
            .arg(env!("CARGO_BIN_EXE_spendcap"))
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = child.stderr.take().unwrap();
        let (serving, address) = oneshot::channel();
        std::thread::spawn(move || follow(log, serving));
        // Kept from here on, so that a replica that does not start is killed too.
        let mut replica = Self {
            child,
            proxy_url: String::new(),
        };
        let started = tokio::time::timeout(START_TIMEOUT, address).await;
        match started.unwrap().unwrap() {
            Ok(proxy) => replica.proxy_url = format!("http://{proxy}"),
            Err(log) => panic!("the replica ended:\n{log}"),
        }
        replica
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended by itself; the test that needed it has failed then.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Reads the log to its end, so that the replica never waits for a reader. Tells where it listens, or
/// all it said where it ended before that.
fn follow(log: ChildStderr, serving: oneshot::Sender<Result<String, String>>) {
    let mut serving = Some(serving);
    let mut said = String::new();
    for line in BufReader::new(log).lines().map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let proxy = event["proxy"].as_str();
        if let Some(proxy) = proxy.filter(|_| event["message"] == "Serving")
            && let Some(serving) = serving.take()
        {
            let _gone = serving.send(Ok(proxy.to_owned()));
        }
        if serving.is_some() {
            said = format!("{said}{line}\n");
        }
    }
    if let Some(serving) = serving {
        let _gone = serving.send(Err(said));
    }
}
