//! TLS towards both sides: what the listener presents, what Stripe must present.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use secrecy::SecretString;
use tokio_rustls::TlsAcceptor;

use crate::clock::Clock;
use crate::config::{StripeKey, TlsFiles, UpstreamConfig, read_roots, read_server_identity};
use crate::proxy::{RealKey, Upstream, UpstreamSettings};
use crate::telemetry::metrics::Metrics;

/// The listener's TLS: the certificate of the settings, HTTP/2 and HTTP/1.1.
pub(super) fn acceptor(files: &TlsFiles) -> anyhow::Result<TlsAcceptor> {
    let identity = read_server_identity(files)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS has no protocol version")?
        .with_no_client_auth();
    let mut config =
        builder.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(identity)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The client for Stripe: public roots, or those of `upstream.ca_file` in their place.
pub(super) fn upstream(
    config: &UpstreamConfig,
    clock: Clock,
    key: &StripeKey,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<Upstream> {
    let roots = match &config.ca_file {
        Some(file) => read_roots(file)?,
        None => RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        },
    };
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS has no protocol version")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let settings = UpstreamSettings {
        scheme: config.base_url.scheme().clone(),
        authority: config.base_url.authority().clone(),
        tls,
        connect_timeout: config.connect_timeout,
        timeout: config.timeout,
    };
    Ok(Upstream::new(
        settings,
        clock,
        real_key(key),
        Arc::clone(metrics),
    ))
}

pub(super) fn real_key(key: &StripeKey) -> RealKey {
    RealKey::new(SecretString::from(key.expose()))
}
