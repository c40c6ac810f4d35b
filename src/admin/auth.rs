//! Who asks: `Authorization: Bearer` and one of the admin tokens.

use std::fmt;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::AdminState;
use super::error::AdminError;
use crate::config::{AdminRole, AdminTokens};

/// The name of the token that asks: the audit log's `actor`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Actor(pub(super) String);

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = AdminError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AdminError> {
        // Absent only where a route stands outside of `require_token`: fail closed.
        let actor = parts.extensions.get::<Self>().cloned();
        actor.ok_or(AdminError::TokenInvalid)
    }
}

/// Lets a request through with its [`Actor`], or answers 401 or 403. A viewer may only read.
pub(super) async fn require_token(
    State(state): State<AdminState>,
    mut request: Request,
    next: Next,
) -> Response {
    let identified = identify(&state.tokens.borrow(), request.headers());
    let Some((actor, role)) = identified else {
        return AdminError::TokenInvalid.into_response();
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if role != AdminRole::Admin && !reads {
        return AdminError::RoleInsufficient.into_response();
    }
    request.extensions_mut().insert(actor.clone());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(actor);
    response
}

/// Compares with every token, so that the time says nothing about which one matched, or how nearly.
fn identify(tokens: &AdminTokens, headers: &HeaderMap) -> Option<(Actor, AdminRole)> {
    let presented = Sha256::digest(bearer(headers)?.as_bytes());
    let (mut found, mut number) = (0_u64, 0_u64);
    for token in tokens.iter() {
        number += 1;
        let same: Choice = token.sha256.ct_eq(presented.as_slice());
        found = u64::conditional_select(&found, &number, same);
    }
    let index = usize::try_from(found.checked_sub(1)?).ok()?;
    let token = tokens.iter().nth(index)?;
    Some((Actor(token.name.clone()), token.role))
}

/// The one bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
