//! Which etcd cluster, and how to reach it: checked once, before anything is connected.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::error::EtcdError;
use seqsvr_rpc::security::{Call, CallConfig, SecurityError};

/// How long a connection may be silent before it is tried. etcd refuses callers that try more often than every 5 s.
const KEEP_ALIVE: Duration = Duration::from_secs(6);

/// The section `[stores.etcd]`, and `etcd` in `[issuer.machine]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdConfig {
    /// The members: `http://host:port` or `https://host:port`, 1 to 15.
    pub endpoints: Vec<String>,
    /// PEM file: the authority that signed the members' certificates. Needed for `https`, which is needed off loopback.
    pub authority: Option<PathBuf>,
    /// PEM file: the certificate chain to show.
    pub certificate: Option<PathBuf>,
    /// PEM file: its private key.
    pub key: Option<PathBuf>,
}

impl EtcdConfig {
    /// The way to each member, with its address. `patience` is how long connecting may take.
    pub(super) fn endpoints(&self, patience: Duration) -> Result<Vec<(String, Endpoint)>, EtcdError> {
        if !(1..=15).contains(&self.endpoints.len()) {
            return Err(wrong("name 1 to 15 endpoints"));
        }
        let authority = self.authority.clone();
        let call = Call::load(&CallConfig { authority, ..CallConfig::default() });
        let call = call.map_err(|error| wrong(&error.to_string()))?;
        let tls = self.tls()?;
        let mut endpoints = Vec::with_capacity(self.endpoints.len());
        for (index, address) in self.endpoints.iter().enumerate() {
            // The same rule as for all calls: beyond loopback only with TLS.
            let mut endpoint = call.endpoint(address).map_err(|error| wrong(&error.to_string()))?;
            if let Some(tls) = &tls {
                if address.starts_with("http://") {
                    return Err(wrong(&format!(
                        "{address} is asked in plain text: write https://, or leave out authority"
                    )));
                }
                // Else it would be found at the first question only.
                let usable = endpoint.tls_config(tls.clone());
                endpoint = usable.map_err(|error| wrong(&SecurityError::Tls(error).to_string()))?;
            }
            if self.endpoints[..index].contains(address) {
                return Err(wrong(&format!("{address} is listed twice")));
            }
            let endpoint = endpoint.connect_timeout(patience).http2_keep_alive_interval(KEEP_ALIVE);
            endpoints.push((address.clone(), endpoint.keep_alive_timeout(patience)));
        }
        Ok(endpoints)
    }

    fn tls(&self) -> Result<Option<ClientTlsConfig>, EtcdError> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(Identity::from_pem(read(certificate)?, read(key)?)),
            (None, None) => None,
            _ => return Err(wrong("set both certificate and key, or neither")),
        };
        let Some(authority) = &self.authority else {
            return match identity {
                None => Ok(None),
                Some(_) => Err(wrong("a certificate is shown only with TLS: set authority")),
            };
        };
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(authority)?));
        Ok(Some(match identity {
            Some(identity) => tls.identity(identity),
            None => tls,
        }))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EtcdError> {
    fs::read(path).map_err(|why| wrong(&format!("cannot read {}: {why}", path.display())))
}

fn wrong(what: &str) -> EtcdError {
    EtcdError(format!("etcd: {what}"))
}
