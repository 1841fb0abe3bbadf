//! The certificates that the system trusts; `SSL_CERT_FILE` names others.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// TLS to servers whose certificates the system trusts.
///
/// # Errors
/// When it trusts none.
pub(crate) fn trusting_the_system() -> io::Result<Arc<ClientConfig>> {
    /// The files are read once.
    static KNOWN: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(Arc::clone(known));
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(io::Error::other(format!(
            "this system trusts no certificate{why}; install ca-certificates, or name a file in SSL_CERT_FILE"
        )));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    Ok(Arc::clone(KNOWN.get_or_init(|| config)))
}
