//! TLS for the HTTP listener: a certificate and its key, from PEM files.
//!
//! In: two paths. Out: what does the handshake of each connection. The files are read at the start, so a new
//! certificate needs a restart.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;

/// Does handshakes with this certificate and key.
///
/// # Errors
/// What is wrong with which file.
pub(super) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let wrong = |path: &Path, problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let chain =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| {
            wrong(certificate, &format!("{e}; name a PEM file with the certificate and those that signed it"))
        })?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"it holds no certificate; name a PEM file with one"));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| wrong(key, &format!("{e}; name a PEM file with the certificate's private key")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|e| wrong(certificate, &format!("{e}; check that {} is its key", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
