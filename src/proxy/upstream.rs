//! The way to Stripe: one pooled client, the real key, and the proof of what was not sent.

#[cfg(test)]
pub(crate) mod carrier;
mod guarded;
mod way;

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;

use crate::clock::{BootMs, Clock};
use crate::domain::operation::MoneyOperation;
use crate::telemetry::metrics::{Metrics, Operation, UpstreamStatus};
use guarded::{Guard, GuardedBody};
use way::Way;

pub use way::WayError;

/// How long a read on behalf of the proxy itself may take.
const OWN_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// How to reach Stripe.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: Authority,
    /// Trust for `https`.
    pub tls: rustls::ClientConfig,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long one exchange may take, from the request to the end of its answer.
    pub timeout: Duration,
}

/// The real Stripe key, as the header that carries it.
pub struct RealKey(SecretString);

impl RealKey {
    /// Takes the key's text.
    pub fn new(text: SecretString) -> Self {
        Self(text)
    }

    /// `None` where the text cannot stand in a header; the settings refuse such a key.
    fn header(&self) -> Option<HeaderValue> {
        let text = format!("Bearer {}", self.0.expose_secret());
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl std::fmt::Debug for RealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RealKey(…)")
    }
}

/// Why there is no complete answer.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// No byte of the request's body left: Stripe cannot have executed it.
    #[error("nothing was sent")]
    NotSent(#[source] Option<WayError>),
    /// Sent, at least in part, and no complete answer came: the connection ended.
    #[error("no complete answer came")]
    NoAnswer(#[source] Option<WayError>),
    /// Sent, at least in part, and no complete answer came in time.
    #[error("no complete answer came in time")]
    TimedOut,
}

impl UpstreamError {
    fn status(&self) -> UpstreamStatus {
        match self {
            Self::NotSent(_) => UpstreamStatus::Unreachable,
            Self::NoAnswer(Some(error)) if error.is_connect() => UpstreamStatus::Unreachable,
            Self::NoAnswer(_) | Self::TimedOut => UpstreamStatus::None,
        }
    }
}

fn whole_status(answered: &Result<Answer, UpstreamError>) -> Result<StatusCode, &UpstreamError> {
    answered.as_ref().map(|answer| answer.status)
}

/// Whom the real key belongs to, as Stripe tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOwner {
    /// This account.
    Account(String),
    /// The key may not read its account.
    Hidden,
    /// Stripe does not accept the key (401).
    Nobody,
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// The answer as the wire's reader takes it.
    pub(super) fn wire(&self) -> crate::stripe::answer::Answer<'_> {
        let Self {
            status,
            headers,
            body,
        } = self;
        crate::stripe::answer::Answer {
            status: *status,
            headers,
            body,
        }
    }
}

/// One request that is sent at most once.
#[derive(Debug)]
pub(super) struct MoneySend {
    pub(super) operation: MoneyOperation,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Past this nothing may be sent.
    pub(super) send_by: BootMs,
    /// Past this its answer is not waited for.
    pub(super) answer_by: tokio::time::Instant,
}

/// The client and the real key.
#[derive(Debug)]
pub struct Upstream {
    way: Way,
    scheme: Scheme,
    authority: Authority,
    timeout: Duration,
    clock: Clock,
    key: RwLock<RealKey>,
    metrics: Arc<Metrics>,
}

impl Upstream {
    /// A client for `settings` that presents `key`.
    pub fn new(
        settings: UpstreamSettings,
        clock: Clock,
        key: RealKey,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            way: Way::network(settings.tls, settings.connect_timeout),
            scheme: settings.scheme,
            authority: settings.authority,
            timeout: settings.timeout,
            clock,
            key: RwLock::new(key),
            metrics,
        }
    }

    pub(super) fn replace_key(&self, key: RealKey) {
        *self
            .key
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = key;
    }

    /// How long the answer to a request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a judged POST. The body leaves only if `send_by` is not over at that moment.
    pub(super) async fn send(&self, send: &MoneySend) -> Result<Answer, UpstreamError> {
        let guard = Guard::new(self.clock.clone(), send.send_by);
        if guard.is_over() {
            return Err(UpstreamError::NotSent(None));
        }
        let mut headers = send.headers.clone();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        headers.insert(CONTENT_LENGTH, HeaderValue::from(send.body.len()));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = GuardedBody::guarded(send.body.clone(), guard.clone());
        let request = self.request(Method::POST, &send.path, headers, body)?;
        let began = Instant::now();
        let exchange = tokio::time::timeout_at(send.answer_by, self.way.exchange(request));
        let answered = match exchange.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.is_connect() || (error.is_request() && guard.close()) => {
                Err(UpstreamError::NotSent(Some(error)))
            }
            Ok(Err(error)) => Err(UpstreamError::NoAnswer(Some(error))),
            Err(_elapsed) if guard.close() => Err(UpstreamError::NotSent(None)),
            Err(_elapsed) => Err(UpstreamError::TimedOut),
        };
        self.count(send.operation.into(), began, whole_status(&answered));
        answered
    }

    /// Reads an object on behalf of a request, whole.
    pub(super) async fn read_whole(
        &self,
        path_and_query: &str,
        headers: HeaderMap,
    ) -> Result<Answer, UpstreamError> {
        self.read_for(Operation::Read, path_and_query, headers)
            .await
    }

    /// Reads on spendcap's own behalf, whole.
    pub(super) async fn read_own(
        &self,
        path_and_query: &str,
        headers: HeaderMap,
    ) -> Result<Answer, UpstreamError> {
        self.read_for(Operation::Other, path_and_query, headers)
            .await
    }

    async fn read_for(
        &self,
        operation: Operation,
        path_and_query: &str,
        mut headers: HeaderMap,
    ) -> Result<Answer, UpstreamError> {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let request = self.request(Method::GET, path_and_query, headers, GuardedBody::empty())?;
        let limit = self.timeout.min(OWN_READ_TIMEOUT);
        let began = Instant::now();
        let read = match tokio::time::timeout(limit, self.way.exchange(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(UpstreamError::NoAnswer(Some(error))),
            Err(_elapsed) => Err(UpstreamError::NoAnswer(None)),
        };
        self.count(operation, began, whole_status(&read));
        read
    }

    /// Reads on behalf of the client; the body streams.
    pub(super) async fn read(
        &self,
        path_and_query: &str,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let request = self.request(Method::GET, path_and_query, headers, GuardedBody::empty())?;
        let began = Instant::now();
        let read = match tokio::time::timeout(self.timeout, self.way.begin(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(UpstreamError::NoAnswer(Some(error))),
            Err(_elapsed) => Err(UpstreamError::NoAnswer(None)),
        };
        let status = read.as_ref().map(Response::status);
        self.count(Operation::Read, began, status);
        read
    }

    fn count(
        &self,
        operation: Operation,
        began: Instant,
        status: Result<StatusCode, &UpstreamError>,
    ) {
        let status = status.map_or_else(UpstreamError::status, UpstreamStatus::from);
        self.metrics
            .upstream_answered(operation, status, began.elapsed());
    }

    /// True where Stripe answers a read with anything but a server error: even a refused one shows that
    /// requests are carried out.
    pub(super) async fn is_healthy(&self) -> bool {
        let answer = self.read_own("/v1/account", HeaderMap::new()).await;
        answer.is_ok_and(|answer| !answer.status.is_server_error())
    }

    /// Whose key the real key is; an error while Stripe does not tell.
    pub async fn key_owner(&self) -> Result<KeyOwner, UpstreamError> {
        let answer = self.read_own("/v1/account", HeaderMap::new()).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED => return Ok(KeyOwner::Nobody),
            StatusCode::TOO_MANY_REQUESTS => return Err(UpstreamError::NoAnswer(None)),
            status if status.is_client_error() => return Ok(KeyOwner::Hidden),
            _ => {}
        }
        let account: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
        let id = account
            .as_ref()
            .filter(|_| answer.status.is_success())
            .and_then(|account| account.get("id")?.as_str());
        let id = id.ok_or(UpstreamError::NoAnswer(None))?;
        Ok(KeyOwner::Account(id.to_owned()))
    }

    /// Whether the real key may read what is there; an error while Stripe does not tell.
    pub async fn may_read(&self, path_and_query: &str) -> Result<bool, UpstreamError> {
        let answer = self.read_whole(path_and_query, HeaderMap::new()).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(UpstreamError::NoAnswer(None)),
        }
    }

    fn request(
        &self,
        method: Method,
        path_and_query: &str,
        mut headers: HeaderMap,
        body: GuardedBody,
    ) -> Result<Request<GuardedBody>, UpstreamError> {
        // Neither can fail: paths are judged or our own, keys are checked when they are read.
        let not_sent = || UpstreamError::NotSent(None);
        let path = path_and_query
            .parse::<PathAndQuery>()
            .map_err(|_| not_sent())?;
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|_| not_sent())?;
        let key = self
            .key
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .header();
        headers.insert(AUTHORIZATION, key.ok_or_else(not_sent)?);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}
