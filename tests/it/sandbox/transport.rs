//! Under the API: HTTP/2, TLS, many connections, the end of the server.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use spendcap::sandbox::{Fault, FaultKind, Sandbox, SandboxSettings};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::{charge, get, start};

#[tokio::test]
async fn http2_is_spoken_by_prior_knowledge() {
    let sandbox = start();
    let (mut sender, driver) = http2(&sandbox).await;
    let request = |customer: &str| {
        let call = charge(customer).request(&sandbox.base_url()).unwrap();
        let (mut head, body) = call.into_parts();
        head.uri = format!("{}/v1/charges", sandbox.base_url())
            .parse()
            .unwrap();
        http::Request::from_parts(head, body)
    };
    let (one, two) = tokio::join!(
        sender.clone().send_request(request("cus_1")),
        sender.clone().send_request(request("cus_2")),
    );
    assert_eq!(one.unwrap().status(), 200);
    assert_eq!(two.unwrap().status(), 200);
    sandbox.add_fault(Fault::new(FaultKind::CommitThenFin).once());
    assert!(sender.send_request(request("cus_3")).await.is_err());
    assert_eq!(sandbox.charges().len(), 3);
    assert_eq!(sandbox.requests()[0].version, "HTTP/2.0");
    driver.abort();
}

#[tokio::test]
async fn tls_is_served_where_it_is_configured() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = vec![made.cert.der().clone()];
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.clone(), key)
        .unwrap();
    let settings = SandboxSettings {
        tls: Some(Arc::new(server)),
        ..SandboxSettings::default()
    };
    let sandbox = Sandbox::start(settings).unwrap();
    assert!(sandbox.base_url().starts_with("https://"));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(sandbox.addr()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(client))
        .connect(name, socket)
        .await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream.unwrap()))
            .await
            .unwrap();
    let driver = tokio::spawn(connection);
    let request = get("/v1/account").request("localhost").unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"{"));
    driver.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_in_a_race_makes_one_charge() {
    let sandbox = Arc::new(start());
    let mut tasks = JoinSet::new();
    for n in 0..100 {
        let sandbox = Arc::clone(&sandbox);
        let key = format!("k{}", n % 10);
        tasks.spawn(async move { charge("cus_1").key(&key).send(&sandbox).await.status });
    }
    let answers = tasks.join_all().await;
    assert!(
        answers
            .iter()
            .all(|status| [200, 409].contains(&status.as_u16())),
        "{answers:?}"
    );
    assert_eq!(sandbox.charges().len(), 10);
}

#[tokio::test]
async fn a_shutdown_ends_hung_requests_and_frees_the_port() {
    let sandbox = start();
    let address = sandbox.addr();
    sandbox.add_fault(Fault::new(FaultKind::Hang {
        at: spendcap::sandbox::Moment::AfterCommit,
    }));
    let request = charge("cus_1").request(&sandbox.base_url()).unwrap();
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    let hung = tokio::spawn(sender.send_request(request));
    sandbox.wait_until_held(1).await;
    sandbox.shutdown().await;
    assert!(hung.await.unwrap().is_err());
    assert!(TcpStream::connect(address).await.is_err());
    driver.abort();
    let settings = SandboxSettings {
        listen: address,
        ..SandboxSettings::default()
    };
    let next = Sandbox::start(settings).unwrap();
    assert_eq!(next.addr(), address);
}

#[tokio::test]
async fn a_dropped_sandbox_stops() {
    let sandbox = start();
    let address = sandbox.addr();
    let mut socket = TcpStream::connect(address).await.unwrap();
    drop(sandbox);
    let mut nothing = Vec::new();
    // The connection ends, by close or by reset.
    let read = tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut nothing).await;
    assert_eq!(read.unwrap_or_default(), 0);
}

type Http2Sender =
    hyper::client::conn::http2::SendRequest<http_body_util::Full<hyper::body::Bytes>>;

async fn http2(sandbox: &Sandbox) -> (Http2Sender, tokio::task::JoinHandle<()>) {
    let socket = TcpStream::connect(sandbox.addr()).await.unwrap();
    let io = TokioIo::new(socket);
    let executor = TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io)
        .await
        .unwrap();
    let driver = tokio::spawn(async move {
        // The fault under test ends it with an error.
        let _ended = connection.await;
    });
    (sender, driver)
}
