//! Certificates and tokens for a cluster on the loopback, made anew for each test.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tidemark_trials::cluster::Certificates;

/// Writes them into `folder`.
pub(crate) fn issue(folder: &Path) -> Certificates {
    fs::create_dir_all(folder).unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let shown = shown.signed_by(&key, &authority).unwrap();
    Certificates {
        authority: write(folder, "authority.pem", &authority.pem()),
        certificate: write(folder, "certificate.pem", &shown.pem()),
        key: write(folder, "key.pem", &key.serialize_pem()),
        token: write(folder, "token", &token()),
        admin_token: write(folder, "admin-token", &token()),
    }
}

fn token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}
