//! A request body that leaves only while its time is not over, and remembers whether it left.
//!
//! hyper asks for the body after the connection is open, immediately before it writes. So this is the
//! last moment to look at the clock, however long connecting took or the process was suspended; and a
//! request whose body was never asked for cannot have been executed by anyone.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use thiserror::Error;

use crate::clock::{BootMs, Clock};

/// The time to send was over before the first byte left.
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
    left: Arc<AtomicBool>,
}

impl Guard {
    pub(super) fn new(clock: Clock, send_by: BootMs) -> Self {
        Self {
            clock,
            send_by,
            left: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.clock.boot() >= self.send_by
    }

    /// False only while it is certain that no byte of the body left.
    pub(super) fn may_have_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
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
            guard.left.store(true, Ordering::Release);
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
        if let Some(guard) = &self.guard {
            if guard.is_over() {
                return Poll::Ready(Some(Err(TooLate(()))));
            }
            guard.left.store(true, Ordering::Release);
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
