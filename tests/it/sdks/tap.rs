//! A relay between a client and spendcap that counts the requests that pass.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Ends every request line of HTTP/1.1. A form's body cannot hold it: its spaces are written otherwise.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";

/// A running relay. Dropped, it takes no more connections.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) address: SocketAddr,
    requests: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Tap {
    pub(super) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, target, Arc::clone(&counted)));
            }
        });
        Self {
            address,
            requests,
            accepting,
        }
    }

    /// How many requests have begun to pass.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connection(client: TcpStream, target: SocketAddr, requests: Arc<AtomicUsize>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    for party in [&client, &server] {
        party.set_nodelay(true).unwrap();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut seen = Vec::new();
    let there = pass(from_client, to_server, |chunk| {
        seen.extend_from_slice(chunk);
        let found = seen.windows(LINE_END.len()).filter(|at| *at == LINE_END);
        requests.fetch_add(found.count(), Ordering::SeqCst);
        // What may be the beginning of the next one.
        seen.drain(..seen.len().saturating_sub(LINE_END.len() - 1));
    });
    let back = pass(from_server, to_client, |_| {});
    tokio::join!(there, back);
}

/// One direction, until its end or until one side is gone.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut see: impl FnMut(&[u8])) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        see(&chunk[..length]);
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
    // The other side may be gone already.
    let _shut = to.shutdown().await;
}
