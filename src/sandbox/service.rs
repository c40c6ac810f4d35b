//! One HTTP request: read, recorded, authenticated, run, answered — or broken on purpose.

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;

use super::api::{self, Answer, Call, Twist};
use super::control;
use super::credentials::Credentials;
use super::errors::ApiError;
use super::events::API_VERSION;
use super::faults::Outage;
use super::form;
use super::mischief::{self, Delivery};
use super::params::Params;
use super::reply::Reply;
use super::wire::{CutBody, ResponseBody, Wire};
use super::world::World;

/// Bodies are small; Stripe names no maximum (contract §5.4).
const BODY_BYTES_MAX: usize = 1 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const ORIGINAL_REQUEST: HeaderName = HeaderName::from_static("original-request");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const STRIPE_ACCOUNT: HeaderName = HeaderName::from_static("stripe-account");
const STRIPE_CONTEXT: HeaderName = HeaderName::from_static("stripe-context");
const STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");
const STRIPE_VERSION: HeaderName = HeaderName::from_static("stripe-version");

/// No answer: the connection ends.
#[derive(Debug, thiserror::Error)]
#[error("connection dropped without an answer")]
pub(crate) struct Dropped;

/// Serves one request.
pub(crate) async fn serve(
    world: Arc<World>,
    wire: Wire,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Dropped> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => Some(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => None,
        Err(_) => return Err(Dropped),
    };
    if head.uri.path().starts_with(control::PREFIX) {
        let reply = control::serve(&world, &head, &body.unwrap_or_default()).await;
        return Ok(respond(&head, "req_control", &reply.into()));
    }
    match world.faults.outage() {
        Outage::Off => {}
        Outage::Close => {
            wire.close();
            return Err(Dropped);
        }
        Outage::Status503 => {
            let reply = Reply::from(mischief::unavailable());
            return Ok(respond(&head, &world.ids.next("req_"), &reply.into()));
        }
    }
    world
        .recorder
        .seen(&head, body.as_deref().unwrap_or_default());
    let request_id = world.ids.next("req_");
    let delivery = match body.ok_or_else(ApiError::too_large).and_then(|body| {
        authenticate(&world, &head)?;
        read_call(&world, &head, &body, &request_id)
    }) {
        Ok(call) => run(&world, call).await,
        Err(error) => Delivery::Whole(Reply::from(error).into()),
    };
    deliver(&head, &request_id, wire, delivery)
}

/// The common path has no await: it is executed where the request was read. A fault may take long,
/// and goes on when the client has gone, as Stripe does.
async fn run(world: &Arc<World>, call: Call) -> Delivery {
    match world.faults.take(&call) {
        None => {
            let begun = api::begin(world, &call);
            Delivery::Whole(api::finish(world, &call, begun, Twist::None))
        }
        Some(kind) => mischief::run(world, call, kind).await,
    }
}

fn authenticate(world: &World, head: &Parts) -> Result<(), ApiError> {
    let credentials = Credentials::of(&head.headers);
    if world.admits(&credentials.key) {
        return Ok(());
    }
    world.recorder.wrong_key(head, &credentials);
    if credentials.key.is_empty() {
        return Err(ApiError::unauthorized(
            "You did not provide an API key. You need to provide your API key in the \
             Authorization header, using Bearer auth (e.g. 'Authorization: Bearer \
             YOUR_SECRET_KEY').",
        ));
    }
    Err(ApiError::unauthorized("Invalid API Key provided."))
}

fn read_call(world: &World, head: &Parts, body: &[u8], request_id: &str) -> Result<Call, ApiError> {
    let text = |name: &HeaderName| {
        let value = head.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let connected = text(&STRIPE_CONTEXT).or_else(|| text(&STRIPE_ACCOUNT));
    if let Some(id) = connected.as_deref().filter(|id| !id.starts_with("acct_")) {
        let message = format!("The provided key does not have access to account '{id}'.");
        return Err(ApiError::forbidden(message).code("account_invalid"));
    }
    let query = head.uri.query().unwrap_or_default();
    let body = if is_form(head) {
        std::str::from_utf8(body)
    } else {
        Ok("")
    };
    let body = body.map_err(|_| ApiError::invalid("Invalid request: the body is not UTF-8."))?;
    Ok(Call {
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        params: Params(form::merge(query, body)?),
        account: world.account(connected.as_deref()),
        idempotency_key: text(&IDEMPOTENCY_KEY),
        request_id: request_id.to_owned(),
    })
}

/// Rack reads a body as a form where its type says so or nothing says otherwise (contract §5.1).
fn is_form(head: &Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    head.method == Method::POST
        && kind.is_none_or(|kind| {
            kind.to_ascii_lowercase()
                .starts_with(b"application/x-www-form-urlencoded")
        })
}

fn deliver(
    head: &Parts,
    request_id: &str,
    wire: Wire,
    delivery: Delivery,
) -> Result<Response<ResponseBody>, Dropped> {
    match delivery {
        Delivery::Whole(answer) => Ok(respond(head, request_id, &answer)),
        Delivery::Cut(answer) => {
            let whole = respond(head, request_id, &answer);
            Ok(whole.map(|_| Either::Right(CutBody::new(&answer.reply.to_bytes(), wire))))
        }
        Delivery::Fin => {
            wire.close();
            Err(Dropped)
        }
        Delivery::Rst => {
            wire.reset();
            Err(Dropped)
        }
    }
}

fn respond(head: &Parts, request_id: &str, answer: &Answer) -> Response<ResponseBody> {
    let reply = &answer.reply;
    let bytes = reply.to_bytes();
    let length = bytes.len();
    let mut response = Response::new(Either::Left(Full::new(bytes)));
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let mut put = |name: HeaderName, value: Option<&str>| {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    };
    put(REQUEST_ID, Some(request_id));
    put(ORIGINAL_REQUEST, answer.original_request.as_deref());
    put(IDEMPOTENT_REPLAYED, answer.replayed.then_some("true"));
    put(
        STRIPE_SHOULD_RETRY,
        reply
            .should_retry
            .map(|retry| if retry { "true" } else { "false" }),
    );
    put(STRIPE_VERSION, Some(API_VERSION));
    for name in [IDEMPOTENCY_KEY, STRIPE_ACCOUNT, STRIPE_VERSION] {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    response
}
