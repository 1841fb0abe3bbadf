//! Sections and routing tables in etcd: for those who run it already or outgrow a quorum of their own. Owns one connection to
//! each member. Every read is linearizable; every change is one transaction that names the revision of all that it was
//! decided by, so nothing is written over by who saw less.
//!
//! ```text
//!  PREFIX/layout     section size and step             PREFIX/term       the largest promised term
//!  PREFIX/hands      who owns which sections           PREFIX/acting     put anew while its arbiter acts
//!  PREFIX/c SECTION  the ceiling of a section          PREFIX/t/table    the table        ⎫ watched
//!                                                      PREFIX/t/released put by a release ⎭
//! ```

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use tonic::transport::Endpoint;

use super::StoreError;
use super::config::EtcdConfig;
use crate::rpc::security::{Call, CallConfig, SecurityError};

mod keys;
mod members;
mod sections;
mod tables;

use keys::Keys;
use members::Members;

/// A [`SectionStore`](super::SectionStore) and [`TableStore`](super::tables::TableStore) in an etcd cluster.
pub struct EtcdStore {
    members: Members,
    keys: Keys,
    /// What was last seen of the sections: saves a raise the question, and is checked by each transaction.
    seen: Mutex<sections::Seen>,
    heard: Mutex<tables::Heard>,
}

impl EtcdStore {
    /// Reads the certificates. Nothing is connected yet. `prefix` begins all keys, one for each Set; `patience` is how long one
    /// member may take before the next is asked.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] with what is wrong in the configuration.
    pub fn open(config: &EtcdConfig, prefix: &str, patience: Duration) -> Result<Self, StoreError> {
        let options = options(config)?.with_connect_timeout(patience).with_require_leader(true);
        let options = options.with_keep_alive(4 * patience, patience).with_keep_alive_while_idle(true);
        Ok(Self {
            members: Members::new(&config.endpoints, options, patience),
            keys: Keys::new(prefix),
            seen: Mutex::default(),
            heard: Mutex::default(),
        })
    }
}

/// Checks the members and reads the certificates.
pub(crate) fn options(config: &EtcdConfig) -> Result<ConnectOptions, StoreError> {
    if !(1..=15).contains(&config.endpoints.len()) {
        return Err(wrong("name 1 to 15 endpoints".to_owned()));
    }
    let authority = config.authority.clone();
    let call = Call::load(&CallConfig { authority, ..CallConfig::default() });
    let call = call.map_err(|error| wrong(error.to_string()))?;
    let tls = tls(config)?;
    for (index, endpoint) in config.endpoints.iter().enumerate() {
        // The same rule as for all calls: beyond loopback only with TLS.
        call.endpoint(endpoint).map_err(|error| wrong(error.to_string()))?;
        if tls.is_some() && endpoint.starts_with("http://") {
            return Err(wrong(format!(
                "{endpoint} is asked in plain text: write https://, or leave out authority"
            )));
        }
        if config.endpoints[..index].contains(endpoint) {
            return Err(wrong(format!("{endpoint} is listed twice")));
        }
    }
    let options = ConnectOptions::new();
    Ok(match tls {
        Some(tls) => options.with_tls(tls),
        None => options,
    })
}

fn tls(config: &EtcdConfig) -> Result<Option<TlsOptions>, StoreError> {
    let identity = match (&config.certificate, &config.key) {
        (Some(certificate), Some(key)) => Some(Identity::from_pem(read(certificate)?, read(key)?)),
        (None, None) => None,
        _ => return Err(wrong("set both certificate and key, or neither".to_owned())),
    };
    let Some(authority) = &config.authority else {
        return match identity {
            None => Ok(None),
            Some(_) => Err(wrong("a certificate is shown only with TLS: set authority".to_owned())),
        };
    };
    let tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(authority)?));
    let tls = match identity {
        Some(identity) => tls.identity(identity),
        None => tls,
    };
    // Else it would be found at the first question only.
    let usable = Endpoint::from_static("https://127.0.0.1").tls_config(tls.clone());
    usable.map_err(|error| wrong(SecurityError::Tls(error).to_string()))?;
    Ok(Some(tls))
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|why| wrong(format!("cannot read {}: {why}", path.display())))
}

fn wrong(what: String) -> StoreError {
    StoreError::Unavailable(format!("etcd: {what}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics half-way through a change of what is remembered.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
