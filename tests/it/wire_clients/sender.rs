//! The programs under `tests/clients` that send one request as an SDK would.

use std::process::Command;

use serde::Deserialize;

use crate::support::clients::{installed, sources};
use crate::support::program::{RUN_MAX, run};
use crate::support::{VaultKey, World};

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sender {
    /// Go's `net/http` as stripe-go.
    Go,
    /// PHP's curl extension as stripe-php.
    Php,
    /// Ruby's `net/http` as stripe-ruby.
    Ruby,
}

pub(super) const SENDERS: [Sender; 3] = [Sender::Go, Sender::Php, Sender::Ruby];

/// What the sender saw last. A status of 0: no answer came.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    pub(super) attempts: u32,
    pub(super) status: u16,
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) error_type: String,
    pub(super) code: String,
    pub(super) failure: String,
}

impl Sender {
    fn command(self) -> Command {
        let (program, script) = match self {
            Self::Go => return Command::new(installed("go").join("sender")),
            Self::Php => ("php", sources("php").join("sender.php")),
            Self::Ruby => ("ruby", sources("ruby").join("sender.rb")),
        };
        let mut command = Command::new(program);
        command.arg(script);
        command
    }

    /// One call to `base_url`; `arguments` are options, method, path and fields.
    pub(super) async fn send(self, base_url: &str, secret: &str, arguments: &[&str]) -> Seen {
        let mut command = self.command();
        command
            .args(arguments)
            .env("SPENDCAP_URL", base_url)
            .env("VAULT_KEY", secret);
        let ran = run(command, RUN_MAX).await.ok();
        let seen = serde_json::from_str(&ran.stdout);
        seen.unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
    }

    /// A charge of 99.00 USD through the first replica; `options` stand before the method.
    pub(super) async fn charge(
        self,
        world: &World,
        key: &VaultKey,
        customer: &str,
        options: &[&str],
    ) -> Seen {
        let customer = format!("customer={customer}");
        let fields = [
            "POST",
            "/v1/charges",
            "amount=9900",
            "currency=usd",
            &customer,
        ];
        let arguments = [options, &fields].concat();
        self.send(&world.proxy_url(0), &key.secret, &arguments)
            .await
    }
}
