//! Bodies: collected within a bound, or streamed through.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};

/// So much more of a body that is too large is read and thrown away: what a client still sends when its
/// connection closes costs it the answer. Ours are not so large that more is worth its time.
const REST_BYTES_MAX: usize = 4 << 20;

/// And for so long.
const REST_WAIT_MAX: Duration = Duration::from_secs(1);

/// The body of every answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A body of bytes, whoever sends it.
pub(crate) trait AnyBody:
    Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin
{
}

impl<B> AnyBody for B where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin
{
}

/// Why a body was not collected.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More bytes than the bound.
    #[error("the body is over the limit")]
    TooLarge,
    /// It ended before it was complete.
    #[error("the body was cut off")]
    CutOff,
}

/// A whole body in memory.
pub(super) fn whole(bytes: Bytes) -> AnswerBody {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A body that passes through without being kept.
pub(super) fn streamed(body: Incoming) -> AnswerBody {
    body.boxed_unsync()
}

/// Reads a body to its end, at most `bytes_max`.
pub(super) async fn collect<B>(body: B, bytes_max: usize) -> Result<Bytes, BodyError>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // A body that announces its length is not waited for.
    if announces_more(&body, bytes_max) {
        return Err(BodyError::TooLarge);
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Err(_) => Err(BodyError::CutOff),
    }
}

/// True where the body says itself that it is longer than `bytes_max`.
pub(super) fn announces_more(body: &impl Body, bytes_max: usize) -> bool {
    usize::try_from(body.size_hint().lower()).map_or(true, |bytes| bytes > bytes_max)
}

/// Reads a client's body, at most `bytes_max` and for at most `time_max`. Of one that is too large, a bounded
/// rest is read off, so that its client comes to see the answer.
pub(super) async fn receive(
    mut body: impl AnyBody,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Bytes, BodyError> {
    let received = tokio::time::timeout(time_max, collect(&mut body, bytes_max)).await;
    let received = received.unwrap_or(Err(BodyError::CutOff));
    if received == Err(BodyError::TooLarge) {
        // Whoever sends for longer is cut off.
        let _bounded = tokio::time::timeout(REST_WAIT_MAX, read_off(body)).await;
    }
    received
}

async fn read_off(mut body: impl AnyBody) {
    let mut left = REST_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(read) else {
            break;
        };
        left = rest;
    }
}
