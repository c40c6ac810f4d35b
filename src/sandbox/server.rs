//! The listener and its connections.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::service;
use super::wire::Wire;
use super::world::World;

/// Three replicas may open 1,500 connections at once.
const BACKLOG: u32 = 4_096;
/// How long to wait when the process is out of sockets.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Stops the server, gently or at once, and knows when it has stopped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    pub(crate) gently: CancellationToken,
    pub(crate) now: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Binds the listener; the port may be 0.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until told to stop.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    world: Arc<World>,
    stop: Stop,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.gently.cancelled() => return,
            () = stop.now.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _peer)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        // Without it small answers wait for the peer's acknowledgement; only speed would suffer.
        let _best_effort = socket.set_nodelay(true);
        let (world, tls, connection_stop) = (Arc::clone(&world), tls.clone(), stop.clone());
        stop.tasks.spawn(async move {
            let wire = Wire::default();
            let socket = wire.around(socket);
            match tls {
                None => converse(socket, wire, world, connection_stop).await,
                Some(tls) => tokio::select! {
                    () = connection_stop.now.cancelled() => {}
                    // A failed handshake is the client's to report.
                    shaken = tls.accept(socket) => if let Ok(stream) = shaken {
                        converse(stream, wire, world, connection_stop.clone()).await;
                    },
                },
            }
        });
    }
}

/// Serves one connection: HTTP/1.1, or HTTP/2 by prior knowledge or ALPN.
async fn converse<S>(stream: S, wire: Wire, world: Arc<World>, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let dropped = wire.dropped.clone();
    let service =
        service_fn(move |request| service::serve(Arc::clone(&world), wire.clone(), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stopping = false;
    loop {
        tokio::select! {
            // What went wrong on a connection is for the client to notice.
            _ended = connection.as_mut() => return,
            () = dropped.cancelled() => return,
            () = stop.now.cancelled() => return,
            () = stop.gently.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
