//! The connection underneath HTTP: closing it, resetting it, cutting a body short.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// A whole body, or one that ends early.
pub(crate) type ResponseBody = Either<Full<Bytes>, CutBody>;

/// Ends the connection a request came in on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire {
    pub(crate) dropped: CancellationToken,
    reset: Arc<AtomicBool>,
}

impl Wire {
    /// Closes the connection: the peer reads an end of stream.
    pub(crate) fn close(&self) {
        self.dropped.cancel();
    }

    /// Resets the connection: the peer's read fails.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.dropped.cancel();
    }

    /// Wraps the socket so that a reset can reach it.
    pub(crate) fn around(&self, socket: TcpStream) -> Socket {
        Socket {
            socket,
            reset: Arc::clone(&self.reset),
        }
    }
}

/// The socket; resets instead of closing where its [`Wire`] was told to.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Acquire) {
            // With SO_LINGER 0 the kernel sends RST on close. Where it cannot be set, the peer
            // sees a close, which is a fault too.
            let _best_effort = self.socket.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

/// Half of a body under the whole one's `Content-Length`, then a closed connection.
#[derive(Debug)]
pub(crate) struct CutBody {
    half: Option<Bytes>,
    announced: u64,
    wire: Wire,
    flushed: bool,
}

impl CutBody {
    pub(crate) fn new(whole: &Bytes, wire: Wire) -> Self {
        let half = whole.slice(..whole.len() / 2);
        let announced = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        Self {
            half: Some(half),
            announced,
            wire,
            flushed: false,
        }
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(half) = self.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        // Pending once: the server flushes what it has whenever a body is not ready.
        if !self.flushed {
            self.flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.wire.close();
        Poll::Ready(Some(Err(io::Error::other("body cut short by a fault"))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}
