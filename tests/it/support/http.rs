//! A plain HTTP client, so that tests see every header and status.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// A pooled client; clones share the pool.
#[derive(Clone, Debug)]
pub(crate) struct Client(Pool<HttpConnector, Full<Bytes>>);

/// A complete answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    /// `error.code`, or the empty string.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// A header's text, or the empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Fails unless the status is `status`.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{} {:?}",
            self.text,
            self.headers
        );
        self
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        let mut builder = Pool::builder(TokioExecutor::new());
        // A test counts what it sends.
        builder.retry_canceled_requests(false);
        Self(builder.build_http())
    }

    /// Speaks HTTP/2 from the first byte, over one connection per address.
    pub(crate) fn http2() -> Self {
        let mut builder = Pool::builder(TokioExecutor::new());
        builder.retry_canceled_requests(false).http2_only(true);
        Self(builder.build_http())
    }

    /// One request; `Err` where no complete answer came.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Reply, String> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self
            .0
            .request(request)
            .await
            .map_err(|error| format!("{error:?}"))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| format!("{error:?}"))?;
        let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        Ok(Reply {
            status: parts.status,
            headers: parts.headers,
            text,
        })
    }

    /// One request that must be answered.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        self.try_send(method, url, headers, body).await.unwrap()
    }
}
