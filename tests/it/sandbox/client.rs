//! A client without any cleverness: one connection per request, no retries.

use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use tokio::net::TcpStream;

/// An answer as it came over the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// `status` or `status code`, to compare in tables.
    pub(crate) fn verdict(&self) -> String {
        let status = self.status.as_u16();
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let error = &body["error"];
        match error["code"].as_str().or_else(|| error["type"].as_str()) {
            Some(code) => format!("{status} {code}"),
            None => status.to_string(),
        }
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }
}

/// A sandbox of one's own.
pub(crate) fn start() -> Sandbox {
    Sandbox::start(SandboxSettings::default()).unwrap()
}

/// A request to the sandbox; authorized unless it sets `authorization` itself.
pub(crate) struct Call {
    method: &'static str,
    path: String,
    body: String,
    headers: Vec<(&'static str, String)>,
}

pub(crate) fn get(path: &str) -> Call {
    Call {
        method: "GET",
        path: path.to_owned(),
        body: String::new(),
        headers: Vec::new(),
    }
}

pub(crate) fn post(path: &str, body: &str) -> Call {
    Call {
        method: "POST",
        body: body.to_owned(),
        ..get(path)
    }
}

pub(crate) fn delete(path: &str) -> Call {
    Call {
        method: "DELETE",
        ..get(path)
    }
}

/// A charge of 99 dollars.
pub(crate) fn charge(customer: &str) -> Call {
    post(
        "/v1/charges",
        &format!("amount=9900&currency=usd&customer={customer}"),
    )
}

impl Call {
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// Sends it and reads the whole answer.
    pub(crate) async fn send(self, sandbox: &Sandbox) -> Answer {
        self.try_send(sandbox).await.unwrap()
    }

    /// As [`Call::send`], where the connection may break.
    pub(crate) async fn try_send(self, sandbox: &Sandbox) -> anyhow::Result<Answer> {
        let socket = TcpStream::connect(sandbox.addr()).await?;
        let io = TokioIo::new(socket);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        let driver = tokio::spawn(connection);
        let request = self.request(&sandbox.base_url())?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        driver.abort();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    pub(crate) fn request(self, base: &str) -> anyhow::Result<Request<Full<Bytes>>> {
        let host = base.trim_start_matches("http://");
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header("host", host);
        let names: Vec<_> = self.headers.iter().map(|(name, _)| *name).collect();
        if !names.contains(&"authorization") {
            request = request.header("authorization", "Bearer sk_test_spendcap_sandbox");
        }
        if !names.contains(&"content-type") {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        Ok(request.body(Full::from(self.body))?)
    }
}
