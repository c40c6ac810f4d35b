//! Bodies: collected within a bound, or streamed through.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};

/// The body of every answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, hyper::Error>;

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
pub(super) async fn collect(body: Incoming, bytes_max: usize) -> Result<Bytes, BodyError> {
    // A body that announces its length is not waited for.
    if usize::try_from(body.size_hint().lower()).map_or(true, |bytes| bytes > bytes_max) {
        return Err(BodyError::TooLarge);
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Err(_) => Err(BodyError::CutOff),
    }
}
