//! The network between a ledger and its PostgreSQL, which a test can break where it hurts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the wire does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Fault {
    /// Carries everything.
    None,
    /// Takes no connection.
    Down,
    /// Breaks once, before the next commit reaches the server.
    LoseCommit,
    /// Breaks once, after the next commit was made and before anybody learns of it.
    LoseConfirmation,
}

/// A PostgreSQL server at an address of its own, with a fault between.
pub(crate) struct Wire {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    fault: AtomicU8,
    broken: AtomicU32,
    /// Its changes end every connection.
    cut: watch::Sender<()>,
}

impl Wire {
    /// Between whoever connects and `server`, such as `127.0.0.1:5432`.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            fault: AtomicU8::new(Fault::None as u8),
            broken: AtomicU32::new(0),
            cut: watch::channel(()).0,
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !accepting.is(Fault::Down) {
                    tokio::spawn(carry(client, Arc::clone(&accepting)));
                }
            }
        });
        Self { port, shared }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.shared.fault.store(fault as u8, Ordering::SeqCst);
    }

    /// Ends every connection.
    pub(crate) fn cut(&self) {
        self.shared.cut.send_replace(());
    }

    /// How often a fault that strikes once has struck.
    pub(crate) fn broken(&self) -> u32 {
        self.shared.broken.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn is(&self, fault: Fault) -> bool {
        self.fault.load(Ordering::SeqCst) == fault as u8
    }

    /// True for the one that makes it strike.
    fn strikes(&self, fault: Fault) -> bool {
        let (armed, none) = (fault as u8, Fault::None as u8);
        let order = Ordering::SeqCst;
        let strikes = self
            .fault
            .compare_exchange(armed, none, order, order)
            .is_ok();
        if strikes {
            self.broken.fetch_add(1, order);
        }
        strikes
    }
}

/// Carries until one side ends or the wire is cut; then both sides see the end.
async fn carry(client: TcpStream, shared: Arc<Shared>) {
    let mut cut = shared.cut.subscribe();
    let Ok(server) = TcpStream::connect(&shared.server).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    // The first commit on a connection comes with its text; the server's confirmation is its tag.
    let up = pump(
        &mut from_client,
        &mut to_server,
        b"commit */ COMMIT",
        || shared.strikes(Fault::LoseCommit),
    );
    let down = pump(&mut from_server, &mut to_client, b"COMMIT\0", || {
        shared.strikes(Fault::LoseConfirmation)
    });
    tokio::select! {
        () = up => {}
        () = down => {}
        _ = cut.changed() => {}
    }
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    telling: &[u8],
    strikes: impl Fn() -> bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..count];
        let tells = bytes.windows(telling.len()).any(|window| window == telling);
        if (tells && strikes()) || to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
