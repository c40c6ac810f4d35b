//! From a request to an answer: the idempotency layer, then the endpoint.
//!
//! Two steps, so that a fault can hold a request between them: [`begin`] takes the idempotency key,
//! [`finish`] executes and stores. Neither awaits; a commit is never half done.

use std::sync::Arc;

use http::{Method, StatusCode};

use super::balance;
use super::books::Account;
use super::captures::{self, Capture, NewRefund};
use super::cards::Decline;
use super::charges::{self, NewCharge};
use super::customers::{self, NewCustomer};
use super::errors::ApiError;
use super::events::{self, Origin};
use super::idempotency::{Admission, Fingerprint, KeyInUse, KeyStore};
use super::params::Params;
use super::reply::Reply;
use super::world::World;

/// One authenticated request with its parameters read.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) params: Params,
    pub(crate) account: Arc<Account>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) request_id: String,
}

/// Where and when a command runs, and on whose behalf.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a World,
    pub(crate) account: &'a Account,
    /// Unix seconds.
    pub(crate) now: i64,
    /// None for what happens by itself.
    pub(crate) origin: Option<Origin>,
}

/// How a fault bends the execution itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twist {
    None,
    /// Execute, then store a 500 all the same.
    ExecuteThen500,
    /// Store a 500 and execute nothing.
    Only500,
    /// Decline whatever card it is.
    Decline(Decline),
}

/// A call past the idempotency layer.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Nothing to execute: replayed or refused.
    Answered(Answer),
    /// To be executed, holding its key if it has one.
    Running(Option<KeyInUse>),
}

/// A reply and what the idempotency layer says about it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    /// `Original-Request`, on requests with a key.
    pub(crate) original_request: Option<String>,
    pub(crate) replayed: bool,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            original_request: None,
            replayed: false,
        }
    }
}

impl Call {
    /// The path's parts; empty ones are skipped, as a lenient server does.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path
            .split('/')
            .filter(|part| !part.is_empty())
            .collect()
    }
}

/// Takes the idempotency key. Keys count on POST only (contract §2.1).
pub(crate) fn begin(world: &World, call: &Call) -> Begun {
    let key = call
        .idempotency_key
        .as_deref()
        .filter(|_| call.method == Method::POST);
    let Some(key) = key else {
        return Begun::Running(None);
    };
    let fingerprint = Fingerprint::of(&call.method, &call.path, &call.params.0);
    match KeyStore::admit(&call.account, key, fingerprint, world.clock.now().0) {
        Admission::Run(key) => Begun::Running(Some(key)),
        Admission::Refuse(error) => Begun::Answered(Reply::from(error).into()),
        Admission::Replay(stored) => Begun::Answered(Answer {
            reply: stored.reply,
            original_request: Some(stored.original_request),
            replayed: true,
        }),
    }
}

/// Executes the call and stores the answer under its key.
pub(crate) fn finish(world: &World, call: &Call, begun: Begun, twist: Twist) -> Answer {
    let key = match begun {
        Begun::Answered(answer) => return answer,
        Begun::Running(key) => key,
    };
    if call.method == Method::GET {
        return read(&scene(world, call), call)
            .unwrap_or_else(Reply::from)
            .into();
    }
    let command = match Command::read(call) {
        Ok(command) => command,
        // A validation failure binds no key; dropping the guard frees it.
        Err(error) => return Reply::from(error).into(),
    };
    let reply = command.execute(&scene(world, call), twist);
    let original_request = key.map(|key| {
        key.store(&reply, &call.request_id);
        call.request_id.clone()
    });
    Answer {
        reply,
        original_request,
        replayed: false,
    }
}

fn scene<'a>(world: &'a World, call: &'a Call) -> Scene<'a> {
    let origin = Origin {
        request_id: call.request_id.clone(),
        idempotency_key: call.idempotency_key.clone(),
    };
    let now = world.clock.now().unix_seconds();
    Scene {
        world,
        account: &call.account,
        now,
        origin: Some(origin),
    }
}

/// A POST whose parameters are well formed.
#[derive(Debug)]
enum Command {
    CreateCharge(NewCharge),
    Capture(Capture),
    Refund(NewRefund),
    CreateCustomer(NewCustomer),
}

impl Command {
    fn read(call: &Call) -> Result<Self, ApiError> {
        let params = &call.params;
        if call.method != Method::POST {
            return Err(ApiError::unknown_url(&call.method, &call.path));
        }
        match call.segments().as_slice() {
            ["v1", "charges"] => NewCharge::read(params).map(Self::CreateCharge),
            ["v1", "charges", id, "capture"] => Capture::read(id, params).map(Self::Capture),
            ["v1", "refunds"] => NewRefund::read(params).map(Self::Refund),
            ["v1", "customers"] => NewCustomer::read(params).map(Self::CreateCustomer),
            _ => Err(ApiError::unknown_url(&call.method, &call.path)),
        }
    }

    fn execute(self, scene: &Scene<'_>, twist: Twist) -> Reply {
        if twist == Twist::Only500 {
            return stored_500();
        }
        let decline = match twist {
            Twist::Decline(decline) => Some(decline),
            _ => None,
        };
        let result = match (self, decline) {
            (Self::CreateCharge(new), decline) => new.execute(scene, decline),
            (_, Some(decline)) => Err(ApiError::declined(decline, None)),
            (Self::Capture(capture), None) => capture.execute(scene),
            (Self::Refund(refund), None) => refund.execute(scene),
            (Self::CreateCustomer(new), None) => Ok(new.execute(scene)),
        };
        if twist == Twist::ExecuteThen500 {
            return stored_500();
        }
        result.unwrap_or_else(Reply::from)
    }
}

/// Stripe says not to retry most 500s (contract §2.5): they are stored.
fn stored_500() -> Reply {
    let message = "An unknown error occurred";
    ApiError::api(StatusCode::INTERNAL_SERVER_ERROR, message)
        .should_retry(false)
        .into()
}

fn read(scene: &Scene<'_>, call: &Call) -> Result<Reply, ApiError> {
    let params = &call.params;
    match call.segments().as_slice() {
        ["v1", "charges"] => charges::list(scene, params),
        ["v1", "charges", id] => charges::get(scene, id, params),
        ["v1", "customers"] => customers::list(scene, params),
        ["v1", "customers", id] => customers::get(scene, id),
        ["v1", "customers", id, "payment_methods"] => {
            customers::customer_payment_methods(scene, id, params)
        }
        ["v1", "payment_methods"] => customers::payment_methods(scene, params),
        ["v1", "payment_methods", id] => customers::payment_method(scene, id),
        ["v1", "events"] => events::list(scene, params),
        ["v1", "events", id] => events::get(scene, id),
        ["v1", "account"] => Ok(balance::account(scene)),
        ["v1", "balance"] => Ok(balance::balance(scene)),
        ["v1", "balance_transactions"] => balance::transactions(scene, params),
        ["v1", "balance_transactions", id] => balance::transaction(scene, id),
        _ => Err(ApiError::unknown_url(&call.method, &call.path)),
    }
}

/// Ends a pending charge of any account, by the control interface.
pub(crate) fn end_pending(world: &World, charge_id: &str, paid: bool) -> bool {
    let now = world.clock.now().unix_seconds();
    world.accounts().iter().any(|account| {
        captures::end_pending(
            &Scene {
                world,
                account,
                now,
                origin: None,
            },
            charge_id,
            paid,
        )
    })
}
