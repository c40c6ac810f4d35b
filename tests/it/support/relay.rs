//! A TCP relay between spendcap and what it talks to, for what goes wrong on the way.

mod postgres;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use postgres::{Loss, Trap};

use crate::support::patience::until;

/// What happens to connections that come now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Pass,
    /// Reset at once.
    Cut,
    /// Accepted, and never a byte passes.
    Stall,
    /// Accepted, and a byte passes once they are let go.
    Hold,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    mode: Mode,
    target: SocketAddr,
    /// Raised by every change; connections of an earlier one are reset.
    change: u64,
}

/// A running relay. Dropped, it and its connections end.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    now: watch::Sender<Now>,
    trap: Arc<Trap>,
    accepting: JoinHandle<()>,
}

/// A port that is taken and on which nobody listens: connections are refused.
#[derive(Debug)]
pub(crate) struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub(crate) fn take() -> Self {
        Self::take_at((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
    }

    fn take_at(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Connections that were accepted here may still be about to end when it is taken again.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self(socket))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Begins to listen, and relays to `target`.
    pub(crate) fn open(self, target: SocketAddr) -> Relay {
        Relay::on(self.0.listen(128).unwrap(), target, false)
    }
}

impl Relay {
    /// Relays to `target` whatever passes.
    pub(crate) fn to(target: SocketAddr) -> Self {
        ClosedPort::take().open(target)
    }

    /// Relays to a PostgreSQL, and understands enough of what passes to lose a commit.
    pub(crate) fn to_postgres(target: SocketAddr) -> Self {
        Self::on(ClosedPort::take().0.listen(128).unwrap(), target, true)
    }

    fn on(listener: TcpListener, target: SocketAddr, postgres: bool) -> Self {
        let address = listener.local_addr().unwrap();
        let (now, seen) = watch::channel(Now {
            mode: Mode::Pass,
            target,
            change: 0,
        });
        let trap = Arc::new(Trap::default());
        let accepting = tokio::spawn(accept(listener, seen, postgres.then(|| Arc::clone(&trap))));
        Self {
            address,
            now,
            trap,
            accepting,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.address
    }

    /// What passes to PostgreSQL can be lost here.
    pub(crate) fn trap(&self) -> &Trap {
        &self.trap
    }

    /// Resets every connection and stops to listen; the port stays taken.
    pub(crate) async fn close(mut self) -> ClosedPort {
        self.cut();
        self.accepting.abort();
        let _aborted = (&mut self.accepting).await;
        // A process that is being started holds a copy of the listener until it runs its program.
        let take_again = async || ClosedPort::take_at(self.address).ok();
        until("the port is free again", take_again).await
    }

    /// Resets every connection, now and from now on.
    pub(crate) fn cut(&self) {
        self.change(|now| now.mode = Mode::Cut);
    }

    /// Resets every connection; new ones open and then nothing passes.
    pub(crate) fn stall(&self) {
        self.change(|now| now.mode = Mode::Stall);
    }

    /// Resets every connection; new ones open and wait until they are let go.
    pub(crate) fn hold(&self) {
        self.change(|now| now.mode = Mode::Hold);
    }

    /// What was held passes now, and whatever comes.
    pub(crate) fn let_go(&self) {
        self.now.send_modify(|now| now.mode = Mode::Pass);
    }

    /// Everything passes again.
    pub(crate) fn mend(&self) {
        self.change(|now| now.mode = Mode::Pass);
    }

    /// Another party from now on.
    pub(crate) fn retarget(&self, target: SocketAddr) {
        self.change(|now| now.target = target);
    }

    fn change(&self, edit: impl FnOnce(&mut Now)) {
        self.now.send_modify(|now| {
            edit(now);
            now.change += 1;
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, now: watch::Receiver<Now>, trap: Option<Arc<Trap>>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connection(client, now.clone(), trap.clone()));
    }
}

async fn connection(mut client: TcpStream, mut now: watch::Receiver<Now>, trap: Option<Arc<Trap>>) {
    let mut at = *now.borrow();
    if at.mode == Mode::Hold {
        let over = |now: &Now| now.change != at.change || now.mode == Mode::Pass;
        match now.wait_for(over).await.map(|now| *now) {
            Ok(now) if now.change == at.change => at = now,
            // Held when the relay broke, or ended.
            _ => return reset_at_end(&client),
        }
    }
    let ended = async move {
        // An error says that the relay is gone, which is an end as well.
        drop(now.wait_for(|now| now.change != at.change).await);
    };
    match at.mode {
        Mode::Cut | Mode::Hold => {}
        Mode::Stall => ended.await,
        Mode::Pass => {
            let Ok(mut server) = TcpStream::connect(at.target).await else {
                return reset_at_end(&client);
            };
            for party in [&client, &server] {
                party.set_nodelay(true).unwrap();
            }
            if let Some(trap) = trap {
                reset_at_end(&client);
                tokio::select! {
                    () = postgres::pass(client, server, &trap) => {}
                    () = ended => {}
                }
                return;
            }
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut server) => return,
                () = ended => {}
            }
        }
    }
    reset_at_end(&client);
}

/// With no linger the kernel sends RST when the socket is dropped.
fn reset_at_end(stream: &TcpStream) {
    stream.set_zero_linger().unwrap();
}
