//! The server's certificate.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, ServerConfig};

use crate::error::ServerError;
use crate::secret_file;

/// The name of PostgreSQL's protocol inside TLS.
pub(crate) const ALPN: &[u8] = b"postgresql";

/// A certificate and its key.
#[derive(Clone)]
pub struct TlsIdentity {
    acceptor: TlsAcceptor,
    /// The file with the certificates.
    pem: Arc<[u8]>,
}

impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// Reads a chain of certificates and a private key, both in PEM.
    ///
    /// # Errors
    /// [`ServerError::Certificate`], and [`ServerError::Key`], also if others may read it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, ServerError> {
        let failed = |path: &Path, reason: String| ServerError::Certificate {
            path: path.to_owned(),
            reason,
        };
        let pem =
            std::fs::read(certificate).map_err(|error| failed(certificate, error.to_string()))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(failed(certificate, "there is no certificate in it".to_owned()));
        }
        let key_failed = |reason: String| ServerError::Key { path: key.to_owned(), reason };
        let secret = secret_file::read(key).map_err(key_failed)?;
        let secret = PrivateKeyDer::from_pem_slice(&secret)
            .map_err(|error| key_failed(error.to_string()))?;
        let provider = Arc::new(default_provider());
        // Here, so that the error is the key's.
        provider
            .key_provider
            .load_private_key(secret.clone_key())
            .map_err(|error| key_failed(error.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| match error {
                Error::InconsistentKeys(_) => {
                    let certificate = certificate.display();
                    key_failed(format!("it does not belong to the certificate {certificate}"))
                }
                error => failed(certificate, error.to_string()),
            })?;
        // Clients that begin with TLS, without asking first, must name the protocol.
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), pem: pem.into() })
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// The file with the certificates.
    pub(crate) fn pem(&self) -> &[u8] {
        &self.pem
    }
}
