//! A control plane on a port of its own, and a client for it.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use spendcap::admin::{self, AdminState, Gauges};
use spendcap::config::{Environment, Settings};
use spendcap::domain::digest::sha256_hex;
use spendcap::domain::time::UnixMs;
use spendcap::telemetry::metrics::Metrics;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ledger::place::{Opened, Place};
use crate::support::shown::Shown;

/// The token of `ops`, who may do everything.
pub(crate) const ADMIN: &str = "admin-token-of-ops-01";
/// The token of `eyes`, who may read.
pub(crate) const VIEWER: &str = "viewer-token-of-eyes-01";

pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) opened: Opened,
    pub(crate) address: SocketAddr,
    /// What Stripe shows of charges.
    pub(crate) stripe: Arc<Shown>,
    pub(crate) draining: CancellationToken,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body of a 200.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        self.json()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// `status code param`, to compare in tables.
    pub(crate) fn verdict(&self) -> String {
        let error = &self.json()["error"];
        let parts = ["code", "param"].map(|part| error[part].as_str().unwrap_or("-").to_owned());
        format!("{} {}", self.status.as_u16(), parts.join(" "))
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let place = Place::sqlite();
        let opened = place.open().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let settings = settings();
        let stripe = Arc::new(Shown::default());
        let state = AdminState {
            ledger: opened.ledger.clone(),
            clock: place.clock.clone(),
            stripe: Arc::clone(&stripe) as _,
            tokens: watch::channel(settings.secrets.admin_tokens).1,
            defaults: Arc::new(settings.config.defaults),
            metrics: Arc::new(Metrics::new().unwrap()),
            gauges: Gauges::default(),
            draining: draining.clone(),
        };
        let stopped = stop.clone().cancelled_owned();
        let served = tokio::spawn(admin::serve(listener, state, stopped));
        Self {
            place,
            opened,
            address,
            stripe,
            draining,
            stop,
            served,
        }
    }

    /// Ends the server and its ledger.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.served.await.unwrap();
        self.opened.close().await;
    }

    /// An hour ahead of the server's clock, in unix seconds.
    pub(crate) fn in_an_hour(&self) -> i64 {
        self.now().unix_seconds() + 3600
    }

    pub(crate) fn now(&self) -> UnixMs {
        self.place.clock.now()
    }

    /// What a vault key needs at least.
    pub(crate) fn least(&self) -> Value {
        json!({"billing_period": "2026-08", "expected_total": 4_950_000, "currency": "usd",
            "expires_at": self.in_an_hour()})
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[bearer(ADMIN)], Bytes::new())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [bearer(ADMIN), json_body()];
        self.send(Method::POST, path, &headers, body.to_string())
            .await
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "admin");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        drop(sender);
        // The server may have closed first, which is no news.
        let _closed = connection.await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }
}

/// `object` with fixed values for what differs from run to run, which must be there.
pub(crate) fn masked(object: &Value, fixed: &[(&str, Value)]) -> Value {
    let mut object = object.clone();
    for (name, value) in fixed {
        let field = object.get_mut(name).unwrap();
        assert!(!field.is_null(), "{name}");
        *field = value.clone();
    }
    object
}

pub(crate) fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

pub(crate) fn json_body() -> (&'static str, String) {
    ("content-type", "application/json".to_owned())
}

/// The settings' defaults and the two tokens, read as `serve` reads them.
fn settings() -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let (ops, eyes) = (sha256_hex(ADMIN), sha256_hex(VIEWER));
    std::fs::write(&file, format!("ops:admin:{ops}\neyes:viewer:{eyes}\n")).unwrap();
    let environment: Environment = [
        ("STRIPE_SECRET_KEY", "sk_test_real"),
        ("SPENDCAP_ADMIN_TOKENS_FILE", file.to_str().unwrap()),
    ]
    .into_iter()
    .collect();
    Settings::load(None, &environment).unwrap()
}
