//! What goes in and what Stripe is given, end to end: bodies, targets, headers, connections, TLS.

mod bodies;
mod connections;
mod headers;
mod targets;
mod tls;

use http::Method;
use serde_json::json;

use crate::support::http::Reply;
use crate::support::{LedgerKind, VaultKey, World};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A proxy and a key with room for one charge of $100.00. Parsing comes before the ledger, so one kind
/// of ledger shows it.
struct Scene {
    world: World,
    key: VaultKey,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(settings: &[(&str, &str)]) -> Self {
        let world = World::start(LedgerKind::Sqlite, 1, settings).await;
        let key = world.issue(10_000, json!({ "headroom": "1.00" })).await;
        Self { world, key }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key.secret)
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Reply {
        let bearer = self.bearer();
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let url = format!("{}{target}", self.world.proxy_url(0));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.world
            .client
            .send(method, &url, &all, body.into())
            .await
    }

    async fn post(&self, body: &str) -> Reply {
        self.send("POST", "/v1/charges", &[FORM], body).await
    }

    /// Nothing was sent to Stripe since the start, nothing was reserved.
    async fn assert_untouched(&self, name: &str) {
        let seen = self.world.sandbox.requests();
        let seen: Vec<_> = seen
            .iter()
            .filter(|one| one.path != "/v1/account")
            .collect();
        assert!(seen.is_empty(), "{name}: {seen:?}");
        let rows = self.world.reservations(&self.key).await;
        assert!(rows.is_empty(), "{name}: {rows:?}");
    }
}
