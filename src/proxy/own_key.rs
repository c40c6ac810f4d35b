//! `GET /spendcap/v1/key`: what a billing service may know about its own vault key.

use http::StatusCode;
use http::header::HeaderMap;
use serde_json::json;

use super::Proxy;
use super::authenticate::Authenticated;
use super::respond::{self, Answered};

/// Where it is.
pub(super) const PATH: &str = "/spendcap/v1/key";

/// Caps, use and what remains, read now; where the ledger cannot be read, as last known.
pub(super) async fn show(proxy: &Proxy, authenticated: &Authenticated) -> Answered {
    let known = authenticated.key();
    let read = proxy
        .ledger
        .reads()
        .vault_key(&known.id)
        .await
        .ok()
        .flatten();
    let key = read.as_ref().unwrap_or(known);
    let caps: Vec<serde_json::Value> = key
        .caps
        .iter()
        .map(|cap| {
            json!({
                "currency": cap.currency.as_str(),
                "expected_total": cap.expected_total.get(),
                "max_amount": cap.max_amount.get(),
                "reserved": cap.reserved.get(),
                "settled": cap.settled.get(),
                "used": cap.used().get(),
                "remaining": cap.remaining().get(),
                "capped": cap.remaining().is_zero(),
            })
        })
        .collect();
    let object = json!({
        "id": key.id.as_str(),
        "object": "key",
        "billing_period": key.billing_period,
        "namespace": key.namespace,
        "status": key.status.as_str(),
        "expires_at": key.expires_at.unix_seconds(),
        "caps": caps,
    });
    respond::json(StatusCode::OK, HeaderMap::new(), object.to_string())
}
