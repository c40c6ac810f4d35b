//! A sandbox behind TLS. A connection to it can be held before anything is sent: its handshake waits.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use spendcap::sandbox::{Sandbox, SandboxSettings};
use tempfile::NamedTempFile;

/// A sandbox that speaks TLS, and the file with its certificate.
pub(crate) fn sandbox() -> (Sandbox, NamedTempFile) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let sandbox = Sandbox::start(SandboxSettings {
        tls: Some(Arc::new(server)),
        ..SandboxSettings::default()
    })
    .unwrap();
    let certificate = NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), made.cert.pem()).unwrap();
    (sandbox, certificate)
}
