//! The PEM files: the listener's certificate and key, and the certificates to trust.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use thiserror::Error;

use super::sections::TlsFiles;

/// A PEM file cannot be used.
#[derive(Debug, Error)]
pub enum TlsFileError {
    /// It holds no certificate, or cannot be read.
    #[error("{} holds no PEM certificate that can be read", .0.display())]
    Certificates(PathBuf),
    /// It holds no private key, or cannot be read.
    #[error("{} holds no PEM private key that can be read", .0.display())]
    Key(PathBuf),
    /// The key is another one than the certificate's.
    #[error("{} is not the key of the certificate in {}", key.display(), cert.display())]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

/// Reads the listener's certificate chain and key, and checks that they belong together.
pub fn read_server_identity(files: &TlsFiles) -> Result<CertifiedKey, TlsFileError> {
    let chain = read_certificates(&files.cert_file)?;
    let key = PrivateKeyDer::from_pem_file(&files.key_file)
        .map_err(|_| TlsFileError::Key(files.key_file.clone()))?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|_| {
        TlsFileError::Mismatch {
            cert: files.cert_file.clone(),
            key: files.key_file.clone(),
        }
    })
}

/// Reads the certificates of `upstream.ca_file`, to be trusted in place of the public ones.
pub fn read_roots(file: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        roots
            .add(certificate)
            .map_err(|_| TlsFileError::Certificates(file.to_owned()))?;
    }
    Ok(roots)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let unreadable = || TlsFileError::Certificates(file.to_owned());
    let certificates = CertificateDer::pem_file_iter(file).map_err(|_| unreadable())?;
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .map_err(|_| unreadable())?;
    if certificates.is_empty() {
        return Err(unreadable());
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertifiedKey as Issued, generate_simple_self_signed};

    use super::*;

    #[test]
    fn a_certificate_needs_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let issue = || generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let Issued { cert, signing_key } = issue();
        let cert_file = write("crt", &cert.pem());
        let key_file = write("key", &signing_key.serialize_pem());
        let other_key = write("other", &issue().signing_key.serialize_pem());
        let identity = |cert_file: &PathBuf, key_file: &PathBuf| {
            let (cert_file, key_file) = (cert_file.clone(), key_file.clone());
            read_server_identity(&TlsFiles {
                cert_file,
                key_file,
            })
        };

        assert_eq!(identity(&cert_file, &key_file).unwrap().cert.len(), 1);
        let mismatch = identity(&cert_file, &other_key);
        assert!(matches!(mismatch, Err(TlsFileError::Mismatch { .. })));
        let no_key = identity(&cert_file, &cert_file);
        assert!(matches!(no_key, Err(TlsFileError::Key(file)) if file == cert_file));
        let no_certificate = identity(&key_file, &key_file);
        assert!(matches!(no_certificate, Err(TlsFileError::Certificates(_))));
        assert_eq!(read_roots(&cert_file).unwrap().len(), 1);
        assert!(matches!(
            read_roots(&key_file),
            Err(TlsFileError::Certificates(_))
        ));
    }
}
