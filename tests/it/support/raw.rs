//! A client that decides itself when it writes, reads and hangs up.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::operator::VaultKey;
use super::world::Charge;

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
