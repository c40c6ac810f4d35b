//! The way a request takes: one pooled client over the network.

use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;

use super::Answer;
#[cfg(test)]
use super::carrier::{self, Carrier};
use super::guarded::GuardedBody;
use crate::proxy::body;

/// Largest answer that is kept in memory: a charge with everything expanded is some 20 kB.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A pooled connection that Stripe closes while a request is on its way would leave the outcome
/// unknown, so idle ones are dropped well before a server does it.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why an exchange did not come to its end.
#[derive(Debug, Error)]
pub enum WayError {
    /// No connection could be opened.
    #[error("no connection")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It ended before the answer began.
    #[error("the request failed")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It ended before the answer was complete.
    #[error("the answer was cut off")]
    Answer,
}

impl WayError {
    /// True where no connection could be opened.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Connect(_))
    }

    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

impl From<hyper_util::client::legacy::Error> for WayError {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        if error.is_connect() {
            Self::Connect(error.into())
        } else {
            Self::Request(error.into())
        }
    }
}

/// How requests leave.
#[cfg_attr(
    test,
    expect(
        clippy::large_enum_variant,
        reason = "the small one is for tests alone"
    )
)]
#[derive(Debug)]
pub(super) enum Way {
    /// Over the network.
    Network(Client<HttpsConnector<HttpConnector>, GuardedBody>),
    /// Through a simulated one.
    #[cfg(test)]
    Carried(std::sync::Arc<dyn Carrier>),
}

impl Way {
    pub(super) fn network(tls: rustls::ClientConfig, connect_timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            // On by default: it would send a POST again on its own judgement.
            .retry_canceled_requests(false)
            .set_host(true)
            .build(connector);
        Self::Network(client)
    }

    /// Sends a request; the answer's body is yet to come.
    pub(super) async fn begin(
        &self,
        request: Request<GuardedBody>,
    ) -> Result<Response<Incoming>, WayError> {
        match self {
            Self::Network(client) => Ok(client.request(request).await?),
            #[cfg(test)]
            Self::Carried(_) => Err(WayError::Answer),
        }
    }

    /// Sends a request and takes the whole answer.
    pub(super) async fn exchange(&self, request: Request<GuardedBody>) -> Result<Answer, WayError> {
        #[cfg(test)]
        if let Self::Carried(carrier) = self {
            return carrier::exchange(&**carrier, request).await;
        }
        let response = self.begin(request).await?;
        let (parts, incoming) = response.into_parts();
        let body = body::collect(incoming, ANSWER_BYTES_MAX).await;
        let body = body.map_err(|_| WayError::Answer)?;
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }
}
