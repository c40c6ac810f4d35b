//! An operator: whoever holds the admin token.

use http::Method;
use serde_json::{Value, json};
use spendcap::clock::Clock;

use super::http::{Client, Reply};

pub(crate) const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// Calls one admin API.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) client: Client,
    pub(crate) admin_url: String,
    pub(crate) clock: Clock,
}

/// A vault key as its issuer sees it.
#[derive(Clone, Debug)]
pub(crate) struct VaultKey {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Operator {
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let url = format!("{}{path}", self.admin_url);
        let bearer = format!("Bearer {ADMIN_TOKEN}");
        let mut headers = vec![("authorization", bearer.as_str())];
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.client.send(method, &url, &headers, body).await
    }

    /// Issues a vault key for 2026-08 with one usd cap; `more` overrides and adds fields.
    pub(crate) async fn issue(&self, expected_total: i64, more: Value) -> VaultKey {
        let expires_at = self.clock.now().unix_seconds() + 40 * 86_400;
        let mut wish = json!({
            "billing_period": "2026-08",
            "expected_total": expected_total,
            "currency": "usd",
            "headroom": "1.10",
            "expires_at": expires_at,
        });
        for (name, value) in more.as_object().cloned().unwrap_or_default() {
            if value.is_null() {
                wish.as_object_mut().unwrap().remove(&name);
            } else {
                wish[name] = value;
            }
        }
        let issued = self.admin(Method::POST, "/v1/vault_keys", Some(wish)).await;
        let issued = issued.expect(200).json();
        VaultKey {
            id: issued["id"].as_str().unwrap().to_owned(),
            secret: issued["secret"].as_str().unwrap().to_owned(),
        }
    }

    /// The key's cap in `currency`.
    pub(crate) async fn cap(&self, key: &VaultKey, currency: &str) -> Value {
        let path = format!("/v1/vault_keys/{}", key.id);
        let shown = self
            .admin(Method::GET, &path, None)
            .await
            .expect(200)
            .json();
        let caps = shown["caps"].as_array().unwrap();
        caps.iter()
            .find(|cap| cap["currency"] == currency)
            .cloned()
            .unwrap()
    }

    /// Reservations by `filter`, such as `state=held`, newest first, at most 100.
    pub(crate) async fn reservations(&self, filter: &str) -> Vec<Value> {
        let path = format!("/v1/reservations?{filter}&limit=100");
        let list = self
            .admin(Method::GET, &path, None)
            .await
            .expect(200)
            .json();
        list["data"].as_array().unwrap().clone()
    }

    /// How often `kind` was observed under `key`, over all its reservations.
    pub(crate) async fn flagged(&self, key: &VaultKey, kind: &str) -> i64 {
        let mut count = 0;
        let mut after = String::new();
        loop {
            let path = format!(
                "/v1/flags?vault_key={}&kind={kind}&limit=100{after}",
                key.id
            );
            let page = self.admin(Method::GET, &path, None).await;
            let page = page.expect(200).json();
            let flags = page["data"].as_array().unwrap();
            let counts = flags.iter().map(|flag| flag["count"].as_i64().unwrap());
            count += counts.sum::<i64>();
            let Some(last) = flags.last().filter(|_| page["has_more"] == true) else {
                return count;
            };
            after = format!("&starting_after={}", last["id"].as_str().unwrap());
        }
    }
}
