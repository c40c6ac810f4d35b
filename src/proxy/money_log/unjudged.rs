//! The line of a request that ends before it is judged: refused, or left by its client.

use std::sync::Arc;

use http::{Method, request};
use tokio::time::Instant;

use super::{MESSAGE, attempt_id, ms, request_id};
use crate::domain::vault_key::VaultKey;
use crate::proxy::respond::Answered;
use crate::stripe::catalog::{self, Classified};
use crate::telemetry::metrics::Decision;

/// What is known of a request that could move money; silent for one that reads. Customer and amount are
/// not among it: they are known once the body is judged.
pub(in crate::proxy) struct Unjudged {
    received: Instant,
    /// Nothing else is written for it yet.
    open: bool,
    reads: bool,
    /// `None` where the allow-list has none.
    operation: Option<&'static str>,
    attempt_id: Option<String>,
    /// `None` until the credential is known to be one.
    asker: Option<Arc<VaultKey>>,
}

impl Unjudged {
    /// The request's head was received now.
    pub(in crate::proxy) fn start(parts: &request::Parts) -> Self {
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let classified = catalog::classify(&parts.method, parts.uri.path(), None);
        let operation = match classified {
            Ok(Classified::Money(call)) => Some(call.operation().as_str()),
            _ => None,
        };
        Self {
            received: Instant::now(),
            open: !reads,
            reads,
            operation,
            attempt_id: attempt_id::of(&parts.headers).map(str::to_owned),
            asker: None,
        }
    }

    /// Its credential is this key's, which may be revoked or expired.
    pub(in crate::proxy) fn asked_by(&mut self, key: &Arc<VaultKey>) {
        self.asker = Some(Arc::clone(key));
    }

    /// From here on it has a line of its own. Returns when it was received.
    pub(in crate::proxy) fn judged(&mut self) -> Instant {
        self.open = false;
        self.received
    }

    /// It is refused. `answered` is what the client gets.
    pub(in crate::proxy) fn refused(mut self, answered: &Answered) {
        if !self.reads {
            self.write(answered.code, Some(answered));
        }
        self.open = false;
    }

    fn write(&self, code: Option<&str>, answered: Option<&Answered>) {
        let asker = self.asker.as_ref();
        tracing::info!(
            vault_key = asker.map(|key| key.id.as_str()),
            billing_period = asker.map(|key| key.billing_period.as_str()),
            operation = self.operation,
            attempt_id = self.attempt_id,
            decision = Decision::Refuse.as_str(),
            code,
            status = answered.map(|answered| answered.status.as_u16()),
            request_id = answered.and_then(|answered| request_id(&answered.headers)),
            total_ms = ms(self.received.elapsed()),
            "{MESSAGE}"
        );
    }
}

impl Drop for Unjudged {
    /// The server drops a request whose client is gone: nothing was asked of the ledger for it.
    fn drop(&mut self) {
        if self.open {
            self.write(Some("client_gone"), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::Request;
    use serde_json::{Value, json};

    use super::*;

    /// The lines that are written when the request is dropped.
    fn dropped(method: &str, path: &str) -> Vec<Value> {
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let writer = Lines(Arc::clone(&written));
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true);
        let subscriber = subscriber.with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let request = Request::builder().method(method).uri(path);
            let request = request.header("x-attempt-id", "first").body(()).unwrap();
            drop(Unjudged::start(&request.into_parts().0));
        });
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[derive(Clone)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_that_is_gone_before_it_is_judged_has_a_line_too() {
        for (method, path, operation) in [
            ("POST", "/v1/charges", json!("charges.create")),
            ("POST", "/v1/charges/ch_1/capture", json!("charges.capture")),
            ("POST", "/v1/refunds", Value::Null),
            ("DELETE", "/v1/charges", Value::Null),
        ] {
            let lines = dropped(method, path);
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert_eq!(lines[0]["operation"], operation, "{path}");
            assert_eq!(lines[0]["code"], "client_gone");
            assert_eq!(lines[0]["decision"], "refuse");
            assert_eq!(lines[0]["attempt_id"], "first");
        }
        assert!(dropped("GET", "/v1/charges").is_empty());
    }
}
