//! An operator's command: read from a POST, carried out by the ledger, answered.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use serde::Serialize;
use serde_json::{Map, Value};

use super::auth::Actor;
use super::error::AdminError;
use super::{AdminState, json, param};
use crate::domain::digest::Digest16;
use crate::ledger::command::{Control, ControlDone, ControlKey, ControlRequest};

/// The largest command is a vault key with full metadata, some 30 KiB.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A command is a page of JSON; whoever takes longer to send it holds a connection for nothing.
const BODY_SECONDS_MAX: u64 = 10;

/// The same bound as Stripe's (contract §2).
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An operator's command as it arrived: its fields, and the key under which it may be repeated.
#[derive(Debug)]
pub(super) struct Command {
    /// The body's fields.
    pub(super) fields: Map<String, Value>,
    /// From the `Idempotency-Key` header.
    pub(super) idempotency: Option<ControlKey>,
}

impl<S: Send + Sync> FromRequest<S> for Command {
    type Rejection = AdminError;

    async fn from_request(request: Request, _: &S) -> Result<Self, AdminError> {
        let (parts, body) = request.into_parts();
        if parts.uri.query().is_some_and(|query| !query.is_empty()) {
            let name = param::echo(parts.uri.query().unwrap_or_default());
            let name = name.split(['=', '&']).next().unwrap_or_default();
            return Err(param::unknown(name, &[name], &[]).into());
        }
        let key = idempotency_key(&parts.headers)?;
        let body = read_body(&parts.headers, body).await?;
        let fields = json::parse_object(&body)?;
        let idempotency = key.map(|key| {
            // The map is sorted, so the same fields in another order are the same command.
            let canonical = Value::Object(fields.clone()).to_string();
            let named = [parts.method.as_str(), parts.uri.path(), key];
            ControlKey {
                digest: Digest16::of("admin-key/1", &named),
                fingerprint: Digest16::of("admin-body/1", &[&canonical]),
            }
        });
        Ok(Self {
            fields,
            idempotency,
        })
    }
}

/// The object a command worked on, as it stands now.
#[derive(Debug)]
pub(super) struct Answer<T> {
    /// The object.
    pub(super) object: T,
    /// The command was carried out before under the same key; nothing was done now.
    pub(super) replayed: bool,
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.object).into_response();
        let headers = response.headers_mut();
        // It may hold a secret.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.replayed {
            headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Carries out `control` for `actor`.
pub(super) async fn carry_out(
    state: &AdminState,
    actor: Actor,
    idempotency: Option<ControlKey>,
    control: Control,
) -> Result<ControlDone, AdminError> {
    let request = ControlRequest {
        control,
        actor: actor.0,
        idempotency,
    };
    let done = state.ledger.control(request).await?;
    done.map_err(AdminError::Control)
}

async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, AdminError> {
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let declared = declared
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0);
    let too_large = AdminError::BodyTooLarge {
        bytes_max: BODY_BYTES_MAX,
    };
    if declared > u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX) {
        return Err(too_large);
    }
    let read = to_bytes(body, BODY_BYTES_MAX);
    let incomplete = AdminError::BodyIncomplete {
        seconds_max: BODY_SECONDS_MAX,
    };
    let body = match tokio::time::timeout(Duration::from_secs(BODY_SECONDS_MAX), read).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) if is_length_limit(&error) => return Err(too_large),
        Ok(Err(_)) | Err(_) => return Err(incomplete),
    };
    if !body.is_empty() && !is_json(headers) {
        return Err(AdminError::UnsupportedMediaType);
    }
    Ok(body)
}

fn is_length_limit(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(<dyn std::error::Error>::is::<LengthLimitError>)
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let essence = value.to_str().unwrap_or_default().split(';').next();
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// At most one, 1 to 255 visible ASCII characters.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, AdminError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let key = value.to_str().ok().filter(|key| {
        let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
        (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len()) && visible
    });
    if let (Some(_), None) = (key, values.next()) {
        return Ok(key);
    }
    let message = format!(
        "send one Idempotency-Key of 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters"
    );
    Err(param::invalid("Idempotency-Key", message).into())
}
