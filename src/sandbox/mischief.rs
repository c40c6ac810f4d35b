//! What a fault does to a request.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::api::{self, Answer, Call, Twist};
use super::cards;
use super::errors::ApiError;
use super::faults::{FaultKind, Moment};
use super::reply::Reply;
use super::world::World;

/// How an answer reaches the client, if it does.
#[derive(Debug)]
pub(crate) enum Delivery {
    Whole(Answer),
    /// Half of the body, then the end.
    Cut(Answer),
    /// Nothing; the connection is closed.
    Fin,
    /// Nothing; the connection is reset.
    Rst,
}

/// Runs a call under a fault. What was begun goes on when the client has gone, except for a hang,
/// which ends with its connection.
pub(crate) async fn run(world: &Arc<World>, call: Call, kind: FaultKind) -> Delivery {
    if let FaultKind::Hang { at } = kind {
        hang(world, &call, at).await;
        return Delivery::Fin;
    }
    let world = Arc::clone(world);
    let task = tokio::spawn(async move { bend(&world, &call, kind).await });
    // A task that panicked answers nothing.
    task.await.unwrap_or(Delivery::Fin)
}

/// 503, as a load balancer says it.
pub(crate) fn unavailable() -> ApiError {
    let message = "Stripe is temporarily unavailable. Please try again.";
    ApiError::api(StatusCode::SERVICE_UNAVAILABLE, message)
}

async fn bend(world: &World, call: &Call, kind: FaultKind) -> Delivery {
    match kind {
        FaultKind::Status503 => refuse(unavailable()),
        FaultKind::RateLimit429 => refuse(ApiError::rate_limited()),
        FaultKind::Conflict409 => {
            let key = call.idempotency_key.as_deref().unwrap_or_default();
            refuse(ApiError::idempotency_in_use(key))
        }
        FaultKind::Forbidden403 => refuse(ApiError::forbidden(
            "The provided key does not have the required permissions for this endpoint.",
        )),
        FaultKind::Html502 => Delivery::Whole(Reply::html(StatusCode::BAD_GATEWAY).into()),
        FaultKind::ResetBeforeCommit => Delivery::Rst,
        FaultKind::CommitThenFin | FaultKind::Hang { .. } => {
            commit(world, call, Twist::None);
            Delivery::Fin
        }
        FaultKind::CommitThenRst => {
            commit(world, call, Twist::None);
            Delivery::Rst
        }
        FaultKind::CommitThen503 => {
            commit(world, call, Twist::None);
            refuse(unavailable())
        }
        FaultKind::NonJson200 => {
            commit(world, call, Twist::None);
            Delivery::Whole(Reply::html(StatusCode::OK).into())
        }
        FaultKind::TruncateBody => Delivery::Cut(commit(world, call, Twist::None)),
        FaultKind::CommitThen500 => Delivery::Whole(commit(world, call, Twist::ExecuteThen500)),
        FaultKind::Error500 => Delivery::Whole(commit(world, call, Twist::Only500)),
        FaultKind::Decline => {
            Delivery::Whole(commit(world, call, Twist::Decline(cards::GENERIC_DECLINE)))
        }
        FaultKind::Slow { ms, at } => {
            let wait = tokio::time::sleep(Duration::from_millis(ms));
            Delivery::Whole(around(world, call, at, wait).await)
        }
        FaultKind::Gate { at } => Delivery::Whole(around(world, call, at, world.gate.hold()).await),
    }
}

/// Executes the call with a wait before or after the commit.
async fn around(world: &World, call: &Call, at: Moment, wait: impl Future<Output = ()>) -> Answer {
    match at {
        Moment::BeforeCommit => {
            let begun = api::begin(world, call);
            wait.await;
            api::finish(world, call, begun, Twist::None)
        }
        Moment::AfterCommit => {
            let answer = commit(world, call, Twist::None);
            wait.await;
            answer
        }
    }
}

/// Holds the key (before) or the answer (after) until the gate is released or the client goes.
async fn hang(world: &World, call: &Call, at: Moment) {
    let _key_in_use = match at {
        Moment::BeforeCommit => Some(api::begin(world, call)),
        Moment::AfterCommit => {
            commit(world, call, Twist::None);
            None
        }
    };
    world.gate.hold().await;
}

fn commit(world: &World, call: &Call, twist: Twist) -> Answer {
    api::finish(world, call, api::begin(world, call), twist)
}

fn refuse(error: ApiError) -> Delivery {
    Delivery::Whole(Reply::from(error).into())
}
