//! What is refused before anything leaves: bad requests, and keys that are not let in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;

use super::super::{ADMIN_TOKEN, CARD_NUMBER, REAL_KEY};
use super::{FORM, Tour};
use crate::support::http::Client;
use crate::support::raw::RawClient;

impl Tour<'_> {
    /// Requests that are refused before anything leaves.
    pub(super) async fn refusals(&mut self, secret: &str) {
        let bearer = format!("Bearer {secret}");
        for (path, content_type, body) in [
            (
                "/v1/charges",
                "application/json",
                "{\"amount\":1}".to_owned(),
            ),
            (
                "/v1/charges",
                FORM,
                format!("amount={CARD_NUMBER}.5&currency=usd"),
            ),
            (
                "/v1/charges",
                FORM,
                format!("amount=1&amount=2&source[number]={CARD_NUMBER}"),
            ),
            (
                "/v1/charges",
                FORM,
                format!("amount=1&currency=usd&source[number]={CARD_NUMBER}&%zz"),
            ),
            (
                "/v1/charges",
                FORM,
                format!("amount=99999999&currency=usd&customer=c&source[number]={CARD_NUMBER}"),
            ),
            (
                "/v1/charges",
                FORM,
                format!("amount=1&currency=eur&card[number]={CARD_NUMBER}"),
            ),
            (
                "/v1/charges?expand[]=x",
                FORM,
                "amount=1&currency=usd".to_owned(),
            ),
            ("/v1/refunds", FORM, "charge=ch_1".to_owned()),
            ("/v1/charges/ch_none/capture", FORM, String::new()),
            ("/v1/charges", FORM, "x".repeat(2 << 20)),
        ] {
            let url = format!("http://{}{path}", self.daemon.proxy);
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", content_type),
            ];
            // One that is too large ends its connection, which may cut the answer off.
            let client = Client::new();
            let answer = client.try_send(Method::POST, &url, &headers, body).await;
            if let Ok(answer) = answer {
                assert!(answer.status.is_client_error(), "{}", answer.text);
                self.keep(&answer);
            }
        }
    }

    /// Every way to present a key, and keys that are not let in.
    pub(super) async fn credentials(&mut self, secret: &str) {
        let (but_its_end, end) = secret.split_at(secret.len() - 1);
        let mistyped = format!("{but_its_end}{}", if end == "x" { "y" } else { "x" });
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (authorization, status) in [
            (basic(&format!("{secret}:")), 200),
            (basic(&format!("{secret}:{secret}")), 401),
            (format!("Bearer {mistyped}"), 401),
            (format!("Bearer {REAL_KEY}"), 401),
            (format!("Token {secret}"), 401),
            (format!("Bearer {secret} {secret}"), 401),
            (format!("Bearer {ADMIN_TOKEN}"), 401),
        ] {
            let url = format!("http://{}/spendcap/v1/key", self.daemon.proxy);
            let headers = [("authorization", authorization.as_str())];
            let answer = self.client.send(Method::GET, &url, &headers, "").await;
            self.keep(&answer.expect(status));
        }
        for broken in [
            format!(
                "GET /v1/charges HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\nbad header\r\n\r\n"
            ),
            format!(
                "GET /v1/charges?key={secret} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            ),
            format!("GET /{secret} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
            format!("PRI * HTTP/2.0\r\n\r\n{secret}\r\n\r\n"),
        ] {
            let mut client = RawClient::connect(self.daemon.proxy).await;
            client.write(&broken).await;
            self.seen.answers.push(client.read_all().await);
        }
    }
}
