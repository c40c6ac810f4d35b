//! Which headers cross the proxy, in either direction.

use http::header::{self, HeaderMap, HeaderName};

/// Hop-by-hop (RFC 9110 §7.6.1) and its older kin; never passed on, in either direction.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The client's, replaced or not needed upstream. The key that is sent to Stripe, the account's
/// credentials and the body's own headers are set by the sender.
const REQUEST_ONLY: [&str; 15] = [
    "accept-encoding",
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "idempotency-key",
    // A part of an answer proves nothing.
    "if-range",
    "range",
    "via",
    "x-real-ip",
];

/// Of Stripe's connection, not of ours; the length is written anew.
const RESPONSE_ONLY: [&str; 2] = ["alt-svc", "content-length"];

/// The client's headers as they go to Stripe. Not among them: `Authorization`, `Idempotency-Key`,
/// `Content-Type`, `Host`, `Accept-Encoding`, which the sender sets.
#[must_use]
pub fn to_upstream(client: &HeaderMap) -> HeaderMap {
    let named = named_in_connection(client);
    keep(client, |name| {
        let text = name.as_str();
        let ours = text.starts_with("spendcap-");
        let proxies = text.starts_with("proxy-") || text.starts_with("x-forwarded-");
        let conditional = text.starts_with("if-");
        // Rack reads `_` as `-`: such a name could pass for one that was judged.
        let blurred = text.contains('_');
        let dropped = ours || proxies || conditional || blurred;
        !dropped && !REQUEST_ONLY.contains(&text) && !named.contains(name)
    })
}

/// Stripe's headers as they go back to the client.
#[must_use]
pub fn to_client(upstream: &HeaderMap) -> HeaderMap {
    let named = named_in_connection(upstream);
    keep(upstream, |name| {
        let text = name.as_str();
        // Only this proxy says what its ledger holds.
        let ours = text.starts_with("spendcap-");
        !ours && !RESPONSE_ONLY.contains(&text) && !named.contains(name)
    })
}

fn keep(headers: &HeaderMap, crosses: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, _)| !HOP_BY_HOP.contains(&name.as_str()) && crosses(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Names that `Connection` declares hop-by-hop.
pub(super) fn named_in_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect()
}
