//! Enough of PostgreSQL's protocol to lose one commit, or its answer, on purpose.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::patience::within;

/// What is lost of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// It never arrives; the connection is reset.
    Request,
    /// It is carried out; the connection is reset before the answer.
    Answer,
    /// It is carried out and nothing comes back, on a connection that stays open.
    Silence,
    /// The connection is reset, and the commit arrives later: see [`Trap::deliver`].
    Late,
    /// It never arrives, on connections that stay open: the transaction goes on until the server ends it.
    Stuck,
}

/// Set for the next commit of a transaction that ran a certain statement.
#[derive(Debug, Default)]
pub(crate) struct Trap {
    set: Mutex<Option<(&'static str, Loss)>>,
    sprung: Notify,
    deliver: Notify,
}

impl Trap {
    /// The next commit after a statement that contains `after`.
    pub(crate) fn set(&self, after: &'static str, loss: Loss) {
        *self.set.lock().unwrap() = Some((after, loss));
    }

    /// Waits until a commit was lost; where it is carried out, until it was.
    pub(crate) async fn sprung(&self) {
        within("a commit to lose", self.sprung.notified()).await;
    }

    /// Lets a late commit arrive.
    pub(crate) fn deliver(&self) {
        self.deliver.notify_one();
    }

    fn wants(&self, sql: &str) -> bool {
        let set = self.set.lock().unwrap();
        set.is_some_and(|(after, _)| sql.contains(after))
    }

    /// No commit has been lost yet.
    pub(crate) fn is_set(&self) -> bool {
        self.set.lock().unwrap().is_some()
    }

    fn spring(&self) -> Option<Loss> {
        let (_, loss) = self.set.lock().unwrap().take()?;
        Some(loss)
    }
}

/// Passes one connection until it ends or its commit is lost.
pub(super) async fn pass(mut client: TcpStream, mut server: TcpStream, trap: &Trap) {
    let ended = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let requests = requests(&mut from_client, &mut to_server, trap);
        tokio::select! {
            ended = requests => ended,
            _ = tokio::io::copy(&mut from_server, &mut to_client) => return,
        }
    };
    // An error is the end of either party.
    let Ok((loss, commit)) = ended else { return };
    if matches!(loss, Loss::Answer | Loss::Silence) {
        carry_out(&mut server, &commit).await;
    }
    trap.sprung.notify_one();
    match loss {
        Loss::Request | Loss::Answer => {}
        // Until the client has had enough.
        Loss::Silence => drop(client.read_u8().await),
        Loss::Stuck => drop(server.read_u8().await),
        Loss::Late => {
            drop(client);
            trap.deliver.notified().await;
            carry_out(&mut server, &commit).await;
        }
    }
}

/// Passes what the client says; returns the commit that is to be lost, with everything up to its Sync.
async fn requests(
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
    trap: &Trap,
) -> io::Result<(Loss, Vec<u8>)> {
    // The first message has no type.
    let startup = message(client, None).await?;
    server.write_all(&startup).await?;
    let mut statements = HashMap::new();
    let mut wanted = false;
    loop {
        let kind = client.read_u8().await?;
        let mut frame = message(client, Some(kind)).await?;
        if kind == b'P' {
            let (name, rest) = text(&frame[5..]);
            let (sql, _) = text(rest);
            statements.insert(name, sql);
        } else if kind == b'B' {
            let (_portal, rest) = text(&frame[5..]);
            let (name, _) = text(rest);
            let sql = statements.get(&name).map_or("", String::as_str);
            wanted |= trap.wants(sql);
            if wanted && sql.ends_with("COMMIT") {
                wanted = false;
                if let Some(loss) = trap.spring() {
                    let mut kind = kind;
                    while kind != b'S' {
                        kind = client.read_u8().await?;
                        frame.extend(message(client, Some(kind)).await?);
                    }
                    return Ok((loss, frame));
                }
            }
        }
        server.write_all(&frame).await?;
    }
}

/// One message after its type: its length, which counts itself, and the rest.
async fn message(from: &mut (impl AsyncRead + Unpin), kind: Option<u8>) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let mut message: Vec<u8> = kind.into_iter().chain(length.to_be_bytes()).collect();
    let begun = message.len();
    let rest = usize::try_from(length).unwrap() - 4;
    message.resize(begun + rest, 0);
    from.read_exact(&mut message[begun..]).await?;
    Ok(message)
}

/// The text up to the next zero, and what follows.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap();
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    (text, &bytes[end + 1..])
}

/// Sends the commit and waits until the server has answered it.
async fn carry_out(server: &mut TcpStream, commit: &[u8]) {
    // Where the server is gone already, the commit is lost, which is what the test sees.
    if server.write_all(commit).await.is_ok() {
        drop(server.read_u8().await);
    }
}
