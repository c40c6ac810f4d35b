//! A client that decides itself when it writes, reads and hangs up.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::operator::VaultKey;
use super::world::Charge;

/// Longest an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
#[derive(Debug)]
pub(crate) struct RawClient(TcpStream);

impl RawClient {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Self(TcpStream::connect(to).await.unwrap())
    }

    /// Connects and sends a whole charge.
    pub(crate) async fn charge(to: SocketAddr, key: &VaultKey, charge: &Charge<'_>) -> Self {
        let mut client = Self::connect(to).await;
        client.write(&charge_text(key, charge)).await;
        client
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Says that nothing more will be written.
    pub(crate) async fn finish(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    /// Reads up to and including `end`; everything where the connection ends before that.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let read = async {
            let mut seen = Vec::new();
            while !seen.ends_with(end.as_bytes()) {
                match self.0.read_u8().await {
                    Ok(byte) => seen.push(byte),
                    Err(_ended) => break,
                }
            }
            String::from_utf8(seen).unwrap()
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap()
    }

    /// Reads until the other side closes.
    pub(crate) async fn read_all(&mut self) -> String {
        let mut seen = Vec::new();
        let read = self.0.read_to_end(&mut seen);
        // A reset after the answer ends it too.
        let _ended = tokio::time::timeout(PATIENCE, read).await.unwrap();
        String::from_utf8(seen).unwrap()
    }

    /// Ends the connection by RST.
    pub(crate) fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }
}

/// Sends one whole request, which must ask for `Connection: close`, and returns the answer's status and
/// text.
pub(crate) async fn exchange(to: SocketAddr, request: &str) -> (u16, String) {
    let mut client = RawClient::connect(to).await;
    client.write(request).await;
    let answer = client.read_all().await;
    (status(&answer), answer)
}

/// The status in an answer's first line; 0 without an answer.
pub(crate) fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1);
    status.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The request's bytes.
pub(crate) fn charge_text(key: &VaultKey, charge: &Charge<'_>) -> String {
    let body = format!(
        "amount={}&currency={}&customer={}{}",
        charge.amount, charge.currency, charge.customer, charge.more
    );
    let idempotency_key = charge
        .idempotency_key
        .map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
    format!(
        "POST /v1/charges HTTP/1.1\r\nhost: spendcap\r\nauthorization: Bearer {}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\
         {idempotency_key}\r\n{body}",
        key.secret,
        body.len()
    )
}
