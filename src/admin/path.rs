//! Ids in the path.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::error::AdminError;
use super::param;
use crate::domain::id::{FlagId, ReservationId, VaultKeyId};

/// An id in the path; what is not one names nothing, so it is 404.
#[derive(Debug)]
pub(super) struct PathId<Id>(pub(super) Id);

/// What an id names, for the error that says there is none.
pub(super) trait Named: FromStr + Send {
    const WHAT: &'static str;
}

impl Named for VaultKeyId {
    const WHAT: &'static str = "vault key";
}

impl Named for ReservationId {
    const WHAT: &'static str = "reservation";
}

impl Named for FlagId {
    const WHAT: &'static str = "flag";
}

/// The name of a billing period in the path.
#[derive(Debug)]
pub(super) struct PathLabel(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathLabel {
    type Rejection = AdminError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, AdminError> {
        let label = text(parts, state).await;
        match param::check_label("period", &label) {
            Ok(()) => Ok(Self(label)),
            Err(_) => Err(missing("billing period", &label)),
        }
    }
}

impl<S: Send + Sync, Id: Named> FromRequestParts<S> for PathId<Id> {
    type Rejection = AdminError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, AdminError> {
        let text = text(parts, state).await;
        text.parse().map(Self).map_err(|_| missing(Id::WHAT, &text))
    }
}

/// The one part of the path that is not fixed; empty where it is not UTF-8.
async fn text<S: Send + Sync>(parts: &mut Parts, state: &S) -> String {
    let text = Path::<String>::from_request_parts(parts, state).await;
    text.map(|Path(text)| text).unwrap_or_default()
}

/// There is no `what` of that id.
pub(super) fn missing(what: &'static str, id: &str) -> AdminError {
    let id = param::echo(id);
    AdminError::NotFound { what, id }
}
