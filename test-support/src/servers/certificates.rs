//! Certificates for servers on the loopback and for their callers, made anew by whoever needs some.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// PEM files.
pub struct Certificates {
    /// The certificate of the authority that signed.
    pub authority: PathBuf,
    /// Of 127.0.0.1, for a server and for a caller.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

/// Writes those of a new authority into `folder`.
pub fn issue(folder: &Path) -> Certificates {
    let key = || KeyPair::generate().expect("a key");
    let named = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        CertificateParams::new(names).expect("sound names")
    };
    let mut authority = named(&[]);
    // OpenSSL takes a certificate that names itself as its issuer for signed by itself.
    authority.distinguished_name.push(DnType::CommonName, "authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key()).expect("a certificate");
    let own = key();
    let certificate = named(&["127.0.0.1"]).signed_by(&own, &authority).expect("a certificate");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).expect("the folder can be written");
        path
    };
    Certificates {
        authority: write("authority.pem", authority.pem()),
        certificate: write("certificate.pem", certificate.pem()),
        key: write("key.pem", own.serialize_pem()),
    }
}
