//! The seam through which the parts beside the data plane read from Stripe: an object by its id, a page
//! of the event feed. Whoever implements it brings the client and the real key; nothing here writes.

use std::fmt::Debug;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use thiserror::Error;

use super::answer::{ChargeFacts, charge_facts, is_id};
use super::event::{EventPage, EventQuery, event_page};

/// A read that is under way.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<ReadAnswer, NoReadAnswer>> + Send + 'a>>;

/// Reads from Stripe with the real key.
pub trait StripeRead: Debug + Send + Sync {
    /// `GET path_and_query` on `account`; empty for the platform's own.
    fn read<'a>(&'a self, path_and_query: &'a str, account: &'a str) -> Reading<'a>;
}

/// A complete answer to a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadAnswer {
    /// Its status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
}

/// No complete answer came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoReadAnswer;

/// Why an object or a page of the feed is not known. It proves nothing about money.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ReadError {
    /// 404: not there, or not in this account.
    #[error("Stripe knows no such object in this account")]
    Missing,
    /// 401 or 403: the real key may not read this.
    #[error("the real key may not read this")]
    Forbidden,
    /// 429, 5xx or no answer: later perhaps.
    #[error("Stripe did not answer; try again later")]
    Busy,
    /// An answer that says nothing.
    #[error("Stripe's answer cannot be read")]
    Unreadable,
}

/// Reads a charge.
///
/// # Errors
/// Where Stripe does not show it.
pub async fn charge(
    stripe: &dyn StripeRead,
    account: &str,
    id: &str,
) -> Result<ChargeFacts, ReadError> {
    if !is_id(id) {
        return Err(ReadError::Missing);
    }
    let body = body(stripe, &format!("/v1/charges/{id}"), account).await?;
    let facts = charge_facts(&body).map_err(|_| ReadError::Unreadable)?;
    if facts.id == id {
        Ok(facts)
    } else {
        Err(ReadError::Unreadable)
    }
}

/// Reads one page of the event feed.
///
/// # Errors
/// Where Stripe does not show it.
pub async fn events(
    stripe: &dyn StripeRead,
    account: &str,
    query: &EventQuery<'_>,
) -> Result<EventPage, ReadError> {
    let body = body(stripe, &query.path(), account).await?;
    event_page(&body).map_err(|_| ReadError::Unreadable)
}

async fn body(stripe: &dyn StripeRead, path: &str, account: &str) -> Result<Bytes, ReadError> {
    let answer = stripe.read(path, account).await;
    let answer = answer.map_err(|NoReadAnswer| ReadError::Busy)?;
    match answer.status {
        status if status.is_success() => Ok(answer.body),
        StatusCode::NOT_FOUND => Err(ReadError::Missing),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ReadError::Forbidden),
        StatusCode::TOO_MANY_REQUESTS => Err(ReadError::Busy),
        status if status.is_server_error() => Err(ReadError::Busy),
        _ => Err(ReadError::Unreadable),
    }
}
