//! The control plane's listener: bounded connections, each of which must ask in time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::{AdminState, router};

/// Operators and some probes; more wait to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// Until a connection has sent the head of its next request; then it is closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A request's head: a token, a path and a query.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How long requests under way may take once the listener stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// Out of file descriptors, most likely: accepting again at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the control plane until `shutdown` completes and the requests under way are answered, which
/// may take 5 seconds more.
pub async fn serve(listener: TcpListener, state: AdminState, shutdown: impl Future<Output = ()>) {
    let service = TowerToHyperService::new(router(state));
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (graceful, mut tasks) = (GracefulShutdown::new(), JoinSet::new());
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, permit) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "An admin connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(FINISH_TIMEOUT, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("Admin requests did not end in time");
    }
    // What is left would keep the ledger open.
    tasks.shutdown().await;
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // `None` is a closed semaphore, and this one is never closed.
    let permit = Arc::clone(connections).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "An admin connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
