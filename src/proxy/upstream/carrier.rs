//! A network that a simulation has in its hands: it asks for the body as hyper does, and decides what
//! becomes of the request and of its answer.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use secrecy::SecretString;

use super::guarded::GuardedBody;
use super::way::{Way, WayError};
use super::{Answer, RealKey, Upstream};
use crate::clock::Clock;
use crate::telemetry::metrics::Metrics;

/// A request's body, not asked for yet. An error says that it may not leave any more.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// What becomes of a request.
pub(crate) type Carried<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, Lost>> + Send + 'a>>;

/// Why no answer came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    /// No connection could be opened.
    NoConnection,
    /// The connection ended before the answer began.
    Gone,
    /// It ended in the middle of the answer.
    CutOff,
}

/// Carries requests to a simulated Stripe.
pub(crate) trait Carrier: Debug + Send + Sync {
    fn carry(&self, request: Request<Body>) -> Carried<'_>;
}

pub(super) async fn exchange(
    carrier: &dyn Carrier,
    request: Request<GuardedBody>,
) -> Result<Answer, WayError> {
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    match carrier.carry(request).await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            Ok(Answer {
                status: parts.status,
                headers: parts.headers,
                body,
            })
        }
        Err(Lost::NoConnection) => Err(WayError::Connect("refused".into())),
        Err(Lost::Gone) => Err(WayError::Request("reset".into())),
        Err(Lost::CutOff) => Err(WayError::Answer),
    }
}

impl Upstream {
    /// A client whose requests `carrier` takes; an exchange may take `timeout`.
    pub(crate) fn carried_by(
        carrier: Arc<dyn Carrier>,
        timeout: Duration,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            way: Way::Carried(carrier),
            scheme: Scheme::HTTPS,
            authority: Authority::from_static("api.stripe.com"),
            timeout,
            clock,
            key: RwLock::new(RealKey::new(SecretString::from("sk_test_simulated"))),
            metrics,
        }
    }
}
