//! The configuration of a StoreSvr: one file, each key checked at the start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;
use thiserror::Error;

use super::directory;
use super::identity::Identity;
use seqsvr_core::store::Layout;
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::security::ListenConfig;

/// The configuration file of `seqsvr store`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// The cluster's name: `[a-z0-9_.-]{1,64}`. Callers that mean another are refused.
    pub cluster: String,
    /// The number of the Set (S6). Default 0.
    #[serde(default)]
    pub set: u32,
    /// The replica's name, unique within the Set: `[a-z0-9_.-]{1,64}`.
    pub name: String,
    /// Where to listen. Default 127.0.0.1, a free port. Other addresses need `[security]`.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Where the files are. One process at a time.
    pub directory: PathBuf,
    /// Adjacent uids that share a ceiling: 10,000 to 2^31, for the life of the Set. Default 100,000 (S4).
    #[serde(default = "default_section_size")]
    pub section_size: u32,
    /// By how much ceilings are raised: 2 to 2^32 - 1, for the life of the Set. Default 10,000 (S3).
    #[serde(default = "default_step")]
    pub step: u32,
    /// After how many bytes of changes a new file is begun, written ahead.
    #[serde(skip, default = "default_file_bytes")]
    pub file_bytes: usize,
    /// Where `GET /metrics` is answered, over plain HTTP and to anybody who reaches the address. Default: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// The certificate of this replica, and the token that calls must bring.
    #[serde(default)]
    pub security: ListenConfig,
    /// How many callers at a time.
    #[serde(default)]
    pub connections: ConnectionsConfig,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn default_section_size() -> u32 {
    100_000
}

fn default_step() -> u32 {
    10_000
}

fn default_file_bytes() -> usize {
    16 << 20
}

/// A mistake in the configuration: the key, and the values that would be right.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{key} = {value} is wrong: {right}")]
pub struct StoreConfigError {
    key: &'static str,
    value: String,
    right: &'static str,
}

impl StoreConfig {
    /// Whether everything is within its range.
    ///
    /// # Errors
    ///
    /// The first key that is not.
    pub fn check(&self) -> Result<(), StoreConfigError> {
        let wrong = |key, value: &dyn std::fmt::Display, right| {
            Err(StoreConfigError { key, value: value.to_string(), right })
        };
        for (key, name) in [("cluster", &self.cluster), ("name", &self.name)] {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
            if !(1..=64).contains(&name.len()) || !name.chars().all(fits) {
                return wrong(key, name, "write 1 to 64 of a-z, 0-9, _ . -");
            }
        }
        if !(10_000..=1 << 31).contains(&self.section_size) {
            return wrong("section_size", &self.section_size, "set 10000 to 2147483648");
        }
        if self.step < 2 {
            return wrong("step", &self.step, "set 2 or more");
        }
        Ok(())
    }

    /// Which replica it is.
    pub fn identity(&self) -> Identity {
        Identity { cluster: self.cluster.clone(), set: self.set, name: self.name.clone() }
    }

    /// The id of the replica in the directory, which may be in use; `None`: there is none.
    ///
    /// # Errors
    ///
    /// One line: its files cannot be read.
    pub fn stored_id(&self) -> Result<Option<u64>, String> {
        directory::stored_id(&self.directory).map_err(|error| error.to_string())
    }

    pub(super) fn layout(&self) -> Layout {
        Layout { section_size: self.section_size, step: self.step }
    }
}
