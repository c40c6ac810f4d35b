//! A relay between a client and spendcap that counts the requests that pass, and can lose an answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Ends every request line of HTTP/1.1. A form's body cannot hold it: its spaces are written otherwise.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";

/// A running relay. Dropped, it takes no more connections.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: AtomicUsize,
    lose_answer: AtomicBool,
}

impl Tap {
    pub(super) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, target, Arc::clone(&shared)));
            }
        });
        Self {
            address,
            seen,
            accepting,
        }
    }

    /// How many requests have begun to pass.
    pub(super) fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    /// The connection on which the next answer comes is closed before a byte of it has passed.
    pub(super) fn lose_answer(&self) {
        self.seen.lose_answer.store(true, Ordering::SeqCst);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connection(client: TcpStream, target: SocketAddr, seen: Arc<Seen>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    for party in [&client, &server] {
        party.set_nodelay(true).unwrap();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut tail = Vec::new();
    let there = pass(from_client, to_server, |chunk| {
        tail.extend_from_slice(chunk);
        let found = tail.windows(LINE_END.len()).filter(|at| *at == LINE_END);
        seen.requests.fetch_add(found.count(), Ordering::SeqCst);
        // What may be the beginning of the next one.
        tail.drain(..tail.len().saturating_sub(LINE_END.len() - 1));
        true
    });
    let lost = Notify::new();
    let back = pass(from_server, to_client, |_| {
        let passes = !seen.lose_answer.swap(false, Ordering::SeqCst);
        if !passes {
            lost.notify_one();
        }
        passes
    });
    // With both halves of both connections, they are closed.
    tokio::select! {
        _ended = async { tokio::join!(there, back) } => {}
        () = lost.notified() => {}
    }
}

/// One direction, until its end, until one side is gone or until `see` will not have a chunk passed on.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut see: impl FnMut(&[u8]) -> bool) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let chunk = &chunk[..length];
        if !see(chunk) || to.write_all(chunk).await.is_err() {
            return;
        }
    }
    // The other side may be gone already.
    let _shut = to.shutdown().await;
}
