//! The same job over the same faults, straight to the sandbox or through spendcap.

use std::collections::BTreeMap;

use serde_json::Value;
use spendcap::sandbox::cli::SECRET_KEY_DEFAULT;
use spendcap::sandbox::{Fault, FaultKind, Sandbox, SandboxSettings, SeenRequest};

use super::jvm::{Call, Jvm};
use crate::support::{LedgerKind, Outside};

/// Enough for whatever these jobs would take.
const EXPECTED_TOTAL_MINOR: i64 = 1_000_000;

/// Where the job's base URL points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    Straight,
    Through,
}

/// What Stripe does to the first requests of a customer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) customer: &'static str,
    pub(super) fault: Option<FaultKind>,
    pub(super) times: u32,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Run {
    /// One for each customer.
    pub(super) calls: Vec<Call>,
    /// The charges that Stripe really made, by customer.
    pub(super) made: BTreeMap<String, Vec<String>>,
    /// The requests that reached Stripe.
    pub(super) sent: Vec<SeenRequest>,
    /// What spendcap's books say; null without it.
    pub(super) cap: Value,
    /// What spendcap logged.
    pub(super) log: String,
}

impl Run {
    /// Runs the job for every customer of `troubles`, one after the other.
    pub(super) async fn of(mode: &str, route: Route, troubles: &[Trouble]) -> Self {
        let sandbox = Sandbox::start(SandboxSettings::default()).unwrap();
        for trouble in troubles {
            if let Some(kind) = trouble.fault {
                let fault = Fault::new(kind).method("POST").times(trouble.times);
                sandbox.add_fault(fault.customer(trouble.customer));
            }
        }
        let mut arguments = vec!["one-by-one", mode];
        arguments.extend(troubles.iter().map(|trouble| trouble.customer));
        match route {
            Route::Straight => {
                let jvm = Jvm::start(&sandbox.base_url(), SECRET_KEY_DEFAULT, &arguments);
                let calls = jvm.ended().await;
                Self::read(calls, &sandbox)
            }
            Route::Through => {
                let mut outside = Outside::with(sandbox, LedgerKind::Sqlite, &[]).await;
                let key = outside.issue(EXPECTED_TOTAL_MINOR).await;
                let jvm = Jvm::start(&outside.proxy_url(), &key.secret, &arguments);
                let calls = jvm.ended().await;
                let cap = outside.operator().cap(&key, "usd").await;
                outside.daemon.terminate();
                let (status, log) = outside.daemon.ended().await;
                assert!(status.success(), "{status}: {log}");
                let mut run = Self::read(calls, &outside.sandbox);
                (run.cap, run.log) = (cap, log);
                run
            }
        }
    }

    fn read(calls: Vec<Call>, sandbox: &Sandbox) -> Self {
        let mut made: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for charge in sandbox.charges() {
            assert_eq!(charge.amount, 9_900);
            made.entry(charge.customer.unwrap())
                .or_default()
                .push(charge.id);
        }
        let posts = sandbox.requests().into_iter();
        let sent = posts.filter(|seen| seen.method == "POST").collect();
        Self {
            calls,
            made,
            sent,
            cap: Value::Null,
            log: String::new(),
        }
    }

    /// How the call for this customer ended.
    pub(super) fn call(&self, customer: &str) -> &Call {
        let found = self.calls.iter().find(|call| call.customer == customer);
        found.unwrap()
    }

    /// The charges of this customer.
    pub(super) fn charges(&self, customer: &str) -> &[String] {
        self.made.get(customer).map_or(&[], Vec::as_slice)
    }
}
