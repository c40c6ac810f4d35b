//! TLS on both sides: the listener's own certificate, and a Stripe behind a private CA.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use spendcap::app::App;
use spendcap::clock::Clock;
use spendcap::config::{Environment, Settings};
use spendcap::sandbox::{Sandbox, SandboxSettings};

use super::Scene;
use crate::support::http::Client as Plain;
use crate::support::operator::Operator;
use crate::support::world::{environment, try_charge};
use crate::support::{Charge, VaultKey};

const BODY: &str = "amount=100&currency=usd&customer=cus_1";

fn certificate() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A client that trusts this certificate alone and offers these protocols.
fn trusting(
    certified: &CertifiedKey<KeyPair>,
    http2: bool,
) -> Client<
    hyper_rustls::HttpsConnector<hyper_util::client::legacy::connect::HttpConnector>,
    Full<Bytes>,
> {
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only();
    let connector = if http2 {
        connector.enable_http2().build()
    } else {
        connector.enable_http1().build()
    };
    Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build(connector)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listener_speaks_tls_with_http1_and_http2() {
    let certified = certificate();
    let folder = tempfile::tempdir().unwrap();
    let cert_file = write(folder.path(), "cert.pem", &certified.cert.pem());
    let key_file = write(
        folder.path(),
        "key.pem",
        &certified.signing_key.serialize_pem(),
    );
    let scene = Scene::with(&[
        ("SPENDCAP_PROXY_TLS_CERT_FILE", &cert_file),
        ("SPENDCAP_PROXY_TLS_KEY_FILE", &key_file),
    ])
    .await;
    let url = format!("https://{}/v1/charges", scene.world.apps[0].proxy_addr());
    for (http2, version) in [(false, Version::HTTP_11), (true, Version::HTTP_2)] {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&url)
            .header("authorization", scene.bearer())
            .body(Full::new(Bytes::from(BODY)))
            .unwrap();
        let answer = trusting(&certified, http2).request(request).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"{"));
    }
    assert_eq!(scene.world.made().len(), 1);
    // Plain HTTP is no way in.
    let plain = url.replace("https://", "http://");
    let sent = Plain::new().try_send(Method::POST, &plain, &[], BODY).await;
    assert!(sent.is_err(), "{sent:?}");
}

/// A Stripe behind this certificate, and a proxy that trusts `ca_file` or the public roots.
struct Behind {
    sandbox: Sandbox,
    app: App,
    key: VaultKey,
    client: Plain,
    _folder: tempfile::TempDir,
}

impl Behind {
    async fn start(trusts_it: bool) -> Self {
        let certified = certificate();
        let chain = vec![certified.cert.der().clone()];
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
        let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key.unwrap())
            .unwrap();
        let sandbox = Sandbox::start(SandboxSettings {
            tls: Some(Arc::new(server)),
            ..SandboxSettings::default()
        });
        let sandbox = sandbox.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ca_file = write(folder.path(), "ca.pem", &certified.cert.pem());
        let ledger = format!("sqlite://{}/ledger.db", folder.path().display());
        let trust = [("SPENDCAP_UPSTREAM_CA_FILE", ca_file.as_str())];
        let settings = if trusts_it { &trust[..] } else { &[] };
        let environment: Environment = environment(&ledger, &sandbox.base_url(), settings)
            .into_iter()
            .collect();
        let settings = Settings::load(None, &environment).unwrap();
        let app = App::start(settings, Clock::system()).await.unwrap();
        let client = Plain::new();
        let operator = Operator {
            client: client.clone(),
            admin_url: format!("http://{}", app.admin_addr()),
            clock: Clock::system(),
        };
        let key = operator.issue(100_000, json!({})).await;
        Self {
            sandbox,
            app,
            key,
            client,
            _folder: folder,
        }
    }

    async fn charge(&self) -> crate::support::http::Reply {
        let url = format!("http://{}", self.app.proxy_addr());
        let charge = Charge::default();
        try_charge(&self.client, &url, &self.key.secret, charge)
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stripe_behind_a_private_ca_is_reached_where_the_settings_trust_it() {
    let behind = Behind::start(true).await;
    let made = behind.charge().await.expect(200);
    assert_eq!(made.json()["amount"], 9_900);
    assert_eq!(behind.sandbox.charges().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stripe_that_is_not_trusted_is_sent_nothing() {
    let behind = Behind::start(false).await;
    // It never told whose the real key is, so money waits before anything is reserved.
    let refused = behind.charge().await.expect(503);
    assert_eq!(refused.code(), "upstream_unhealthy");
    assert_eq!(refused.header("stripe-should-retry"), "true");
    assert_eq!(behind.sandbox.requests_total(), 0);
    let operator = Operator {
        client: behind.client.clone(),
        admin_url: format!("http://{}", behind.app.admin_addr()),
        clock: Clock::system(),
    };
    let cap = operator.cap(&behind.key, "usd").await;
    assert_eq!(cap["reserved"], 0);
}
