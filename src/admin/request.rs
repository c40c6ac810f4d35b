//! Each request's id, and its line in the log.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

use super::auth::Actor;
use super::param;

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Gives every answer a `Request-Id`, and logs what was asked, by whom, and what came of it. Bodies
/// and headers are never logged: they carry secrets.
pub(super) async fn identify(request: Request, next: Next) -> Response {
    let id = format!("req_{}", Uuid::new_v4().simple());
    let (method, path) = (request.method().clone(), param::echo(request.uri().path()));
    let mut response = next.run(request).await;
    let actor = response
        .extensions()
        .get::<Actor>()
        .map(|actor| actor.0.clone());
    let status = response.status().as_u16();
    if method.is_safe() {
        tracing::debug!(request_id = id, actor, status, "Admin {method} {path}");
    } else {
        tracing::info!(request_id = id, actor, status, "Admin {method} {path}");
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
