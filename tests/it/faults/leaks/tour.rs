//! Everything that could make a secret slip: charges, refusals, faults, wrong keys, admin calls.

mod refused;

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use spendcap::clock::Clock;
use spendcap::sandbox::{Fault, FaultKind, Moment, Sandbox};

use super::{ADMIN_TOKEN, CARD_NUMBER, DESCRIPTION, LIVE_KEY, REAL_KEY};
use crate::support::daemon::Daemon;
use crate::support::http::{Client, Reply};
use crate::support::patience::until;
use crate::support::relay::Relay;

/// What came back.
pub(super) struct Seen {
    /// Status, headers and body of every answer but those that show a secret once.
    pub(super) answers: Vec<String>,
    pub(super) vault_secrets: Vec<String>,
}

struct Tour<'a> {
    client: Client,
    daemon: &'a Daemon,
    seen: Seen,
}

pub(super) async fn take(
    daemon: &Daemon,
    sandbox: &Sandbox,
    relay: Option<&Relay>,
    key_file: &Path,
) -> Seen {
    let mut tour = Tour {
        client: Client::new(),
        daemon,
        seen: Seen {
            answers: Vec::new(),
            vault_secrets: Vec::new(),
        },
    };
    let (id, old) = tour.issue().await;
    let rotate = format!("/v1/vault_keys/{id}/rotate");
    let rotated = tour
        .admin_once(&rotate, json!({ "grace_seconds": 3600 }))
        .await;
    let secret = rotated["secret"].as_str().unwrap().to_owned();
    tour.seen.vault_secrets.push(secret.clone());
    tour.charge(&old, "old", "").await;
    tour.charge(&secret, "settled", "").await;
    tour.refusals(&secret).await;
    tour.credentials(&secret).await;
    tour.faults(&secret, sandbox).await;
    tour.operator(&id, &secret).await;
    tour.reload(&secret, sandbox, key_file).await;
    if let Some(relay) = relay {
        relay.cut();
        for customer in ["cut_1", "cut_2"] {
            tour.charge(&secret, customer, "").await;
        }
        tour.admin(Method::GET, "/readyz", None).await;
        tour.admin(Method::GET, &format!("/v1/vault_keys/{id}"), None)
            .await;
        relay.mend();
        until("charges go through", async || {
            (tour.charge(&secret, "mended", "").await.status == 200).then_some(())
        })
        .await;
    }
    tour.seen
}

impl Tour<'_> {
    async fn issue(&mut self) -> (String, String) {
        let expires_at = Clock::system().now().unix_seconds() + 86_400;
        let wish = json!({
            "billing_period": "2026-08", "expected_total": 1_000_000, "currency": "usd",
            "expires_at": expires_at, "permissions": ["charges:write", "charges:read"],
        });
        let issued = self.admin_once("/v1/vault_keys", wish).await;
        let text = |name: &str| issued[name].as_str().unwrap().to_owned();
        self.seen.vault_secrets.push(text("secret"));
        (text("id"), text("secret"))
    }

    async fn faults(&mut self, secret: &str, sandbox: &Sandbox) {
        let hang = FaultKind::Hang {
            at: Moment::BeforeCommit,
        };
        for (number, kind) in [
            FaultKind::Decline,
            FaultKind::RateLimit429,
            FaultKind::CommitThenRst,
            FaultKind::TruncateBody,
            FaultKind::NonJson200,
            FaultKind::Html502,
            // The ninth unknown outcome in a row opens the breaker: what is lost is sent three times.
            hang,
        ]
        .into_iter()
        .enumerate()
        {
            let customer = format!("fault_{number}");
            let fault = Fault::new(kind)
                .method("POST")
                .customer(format!("cus_{customer}"));
            sandbox.add_fault(fault.times(3));
            let answer = self.charge(secret, &customer, "").await;
            assert!(!answer.status.is_success(), "{}", answer.text);
        }
        until("charges go through", async || {
            (self.charge(secret, "recovered", "").await.status == 200).then_some(())
        })
        .await;
    }

    async fn operator(&mut self, id: &str, secret: &str) {
        for path in [
            "/v1/vault_keys",
            "/v1/reservations?limit=100",
            "/v1/flags",
            "/v1/audit_log",
            "/v1/periods/2026-08",
            "/metrics",
            "/healthz",
            "/readyz",
            "/openapi.json",
            // An operator who pastes the secret where the id belongs.
            &format!("/v1/vault_keys/{secret}"),
            &format!("/v1/reservations?vault_key={secret}"),
            &format!("/v1/vault_keys?starting_after={secret}"),
        ] {
            self.admin(Method::GET, path, None).await;
        }
        let key = format!("/v1/vault_keys/{id}");
        let revoke_secret = format!("/v1/vault_keys/{secret}/revoke");
        for (path, body) in [
            (
                &key,
                json!({ "expected_total": 2_000_000, "currency": "usd", "reason": "r" }),
            ),
            (&key, json!({ "secret": secret })),
            (&revoke_secret, json!({ "reason": "r" })),
        ] {
            self.admin(Method::POST, path, Some(body)).await;
        }
        for bearer in [
            format!("Bearer {ADMIN_TOKEN}x"),
            format!("Bearer {secret}"),
            ADMIN_TOKEN.to_owned(),
        ] {
            let url = format!("http://{}/v1/vault_keys", self.daemon.admin);
            let headers = [("authorization", bearer.as_str())];
            let answer = self.client.send(Method::GET, &url, &headers, "").await;
            self.keep(&answer.expect(401));
        }
    }

    /// The real key's file holds one nonsense after another, and Stripe no longer takes the real key.
    async fn reload(&mut self, secret: &str, sandbox: &Sandbox, key_file: &Path) {
        for (content, said) in [
            (format!("{REAL_KEY}\n{LIVE_KEY}"), "cannot be read again"),
            (format!("nonsense {REAL_KEY}"), "cannot be read again"),
            (LIVE_KEY.to_owned(), "real key is refused"),
        ] {
            let before = self.daemon.output().text().matches(said).count();
            std::fs::write(key_file, &content).unwrap();
            let output = self.daemon.output();
            output.until_said(said, before + 1).await;
        }
        std::fs::write(key_file, REAL_KEY).unwrap();
        sandbox.set_secret_key("sk_test_another");
        let refused = self.charge(secret, "unknown_to_stripe", "").await;
        assert_eq!(refused.status, 401);
        sandbox.set_secret_key(REAL_KEY);
    }

    async fn charge(&mut self, secret: &str, customer: &str, more: &str) -> Reply {
        let url = format!("http://{}/v1/charges", self.daemon.proxy);
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", bearer.as_str()), ("content-type", FORM)];
        let body = format!(
            "amount=100&currency=usd&customer=cus_{customer}&source[number]={CARD_NUMBER}\
             &source[object]=card&description={DESCRIPTION}{more}"
        );
        let answer = self.client.send(Method::POST, &url, &headers, body).await;
        self.keep(&answer);
        answer
    }

    async fn admin(&mut self, method: Method, path: &str, body: Option<Value>) {
        let answer = self.ask(method, path, body).await;
        self.keep(&answer);
    }

    /// An answer that shows a secret: the one place where it may stand.
    async fn admin_once(&mut self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, Some(body))
            .await
            .expect(200)
            .json()
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let url = format!("http://{}{path}", self.daemon.admin);
        let bearer = format!("Bearer {ADMIN_TOKEN}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.client.send(method, &url, &headers, body).await
    }

    fn keep(&mut self, answer: &Reply) {
        let Reply {
            status,
            headers,
            text,
        } = answer;
        self.seen
            .answers
            .push(format!("{status} {headers:?} {text}"));
    }
}

const FORM: &str = "application/x-www-form-urlencoded";
