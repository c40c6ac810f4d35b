//! A request body that leaves only while its time is not over, and remembers whether it left.
//!
//! hyper asks for the body after the connection is open, immediately before it writes. So this is the
//! last moment to look at the clock, however long connecting took or the process was suspended; and a
//! request whose body was never asked for cannot have been executed by anyone.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;

use crate::clock::{BootMs, Clock};
#[cfg(test)]
use crate::domain::mistake::{Mistake, is_planted};

/// Nothing left yet.
const WAITING: u8 = 0;
/// The body was asked for: it may have left.
const LEFT: u8 = 1;
/// Given up before anything left: nothing will.
const CLOSED: u8 = 2;

/// The time to send was over, or the send was given up, before the first byte left.
#[derive(Debug, Error)]
#[error("the time to send was over")]
pub(super) struct TooLate(());

impl From<Infallible> for TooLate {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Watches one send.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    clock: Clock,
    send_by: BootMs,
    state: Arc<AtomicU8>,
}

impl Guard {
    pub(super) fn new(clock: Clock, send_by: BootMs) -> Self {
        Self {
            clock,
            send_by,
            state: Arc::new(AtomicU8::new(WAITING)),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        #[cfg(test)]
        if is_planted(Mistake::ForwardWithoutCheckingForwardBy) {
            return false;
        }
        self.clock.boot() >= self.send_by
    }

    /// Gives the send up. True where no byte of the body left, and from now on none will: a connection
    /// that asks for it at this very moment is refused.
    pub(super) fn close(&self) -> bool {
        self.become_from_waiting(CLOSED)
    }

    fn leave(&self) -> bool {
        self.become_from_waiting(LEFT)
    }

    fn become_from_waiting(&self, state: u8) -> bool {
        let changed =
            self.state
                .compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok() || changed == Err(state)
    }
}

/// A body in one piece.
#[derive(Debug)]
pub(super) struct GuardedBody {
    bytes: Option<Bytes>,
    guard: Option<Guard>,
}

impl GuardedBody {
    /// An empty body is never asked for, so it counts as having left with the headers.
    pub(super) fn guarded(bytes: Bytes, guard: Guard) -> Self {
        if bytes.is_empty() {
            guard.leave();
        }
        Self {
            bytes: Some(bytes).filter(|bytes| !bytes.is_empty()),
            guard: Some(guard),
        }
    }

    /// The body of a read.
    pub(super) fn empty() -> Self {
        Self {
            bytes: None,
            guard: None,
        }
    }
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = TooLate;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooLate>>> {
        let Some(bytes) = self.bytes.take() else {
            return Poll::Ready(None);
        };
        if let Some(guard) = &self.guard
            && (guard.is_over() || !guard.leave())
        {
            return Poll::Ready(Some(Err(TooLate(()))));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;

    fn guard() -> Guard {
        let clock = Clock::system();
        let send_by = clock.boot().after(Duration::from_secs(30));
        Guard::new(clock, send_by)
    }

    #[tokio::test]
    async fn a_send_that_was_given_up_never_leaves() {
        let guard = guard();
        let body = GuardedBody::guarded(Bytes::from_static(b"amount=1"), guard.clone());
        assert!(guard.close());
        assert!(body.collect().await.is_err());
        assert!(guard.close(), "still nothing left");
    }

    #[tokio::test]
    async fn a_body_that_was_asked_for_may_have_left() {
        let guard = guard();
        let body = GuardedBody::guarded(Bytes::from_static(b"amount=1"), guard.clone());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "amount=1");
        assert!(!guard.close());
        let empty = self::guard();
        let _leaves_with_its_headers = GuardedBody::guarded(Bytes::new(), empty.clone());
        assert!(!empty.close());
    }

    #[tokio::test]
    async fn past_its_time_it_stays() {
        let guard = guard();
        let body = GuardedBody::guarded(Bytes::from_static(b"amount=1"), guard.clone());
        guard.clock.advance(Duration::from_secs(31));
        assert!(body.collect().await.is_err());
        assert!(guard.close());
    }
}
