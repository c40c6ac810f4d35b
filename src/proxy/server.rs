//! The listener: HTTP/1.1 and HTTP/2, plain or TLS, and how it drains.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::Proxy;

/// A client has this long to finish its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client has this long to send its request's headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// After a failed accept (no file descriptors left, say), how long until the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// When to stop, and how long the rest may take.
#[derive(Clone, Debug)]
pub struct Drain {
    /// Cancelled when no new connection is to be accepted.
    pub stop: CancellationToken,
    /// How long requests under way may take after that.
    pub patience: Duration,
}

/// Serves until `drain.stop`, then finishes what is under way.
pub async fn serve(
    proxy: Arc<Proxy>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    drain: Drain,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection =
                    connection(Arc::clone(&proxy), stream, tls.clone(), graceful.watcher());
                tokio::spawn(connection);
            }
            Err(error) => {
                tracing::warn!(error = %error, "A connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(drain.patience, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("Some clients did not take their answers in time");
    }
    proxy.finish().await;
}

async fn connection(
    proxy: Arc<Proxy>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Small answers must not wait for more to send with them.
    let _best_effort = stream.set_nodelay(true);
    let served = match tls {
        None => http(proxy, TokioIo::new(stream), watcher).await,
        Some(acceptor) => {
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => http(proxy, TokioIo::new(stream), watcher).await,
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = %error, "A connection ended early");
    }
}

async fn http<I>(
    proxy: Arc<Proxy>,
    io: I,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.handle(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new());
    let connection = builder.serve_connection(io, service).into_owned();
    watcher.watch(connection).await
}
