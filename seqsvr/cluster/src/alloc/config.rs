//! The configuration file of an AllocSvr, checked at the start: each mistake is refused in one line.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::node::NodeRules;
use super::shell::Settings;
use crate::store::StoresConfig;
use seqsvr_core::clock;
use seqsvr_core::config::Options;
use seqsvr_core::error::OpenAllocatorError;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::configuration::LEASE;
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::security::{CallConfig, ListenConfig};

/// How long, at a stop, the arbiter has to move the sections elsewhere.
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// The file of `seqsvr alloc --config`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocConfig {
    /// The name of the cluster, as its stores were initialised with.
    pub cluster: String,
    /// The name of this node, as the arbiters know it: 1 to 64 of `a-z 0-9 _ . -`.
    pub(crate) name: String,
    /// Where calls arrive. Default 127.0.0.1 with a free port.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Where `GET /metrics` is answered, over plain HTTP. Default: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// A directory of its own on a local disk: holds the lock, and the records of the served sections.
    pub directory: PathBuf,
    /// The Sets that this process has a part in: 1 to 64.
    pub sets: Vec<SetConfig>,
    /// The certificate of this process, and the token that calls must bring.
    #[serde(default)]
    pub security: ListenConfig,
    /// How many callers at a time.
    #[serde(default)]
    pub connections: ConnectionsConfig,
    /// Where clients of Redis are served. Default: nowhere.
    pub resp: Option<RespConfig>,
}

/// The section `[resp]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RespConfig {
    /// Where clients of the Redis protocol connect.
    pub listen: SocketAddr,
    /// How the AllocSvrs are called that serve the sections which this one does not.
    #[serde(default)]
    pub call: CallConfig,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// One `[[sets]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its number. Default 0.
    #[serde(default)]
    pub number: u32,
    /// Adjacent uids that share one ceiling; as stored. Default 100,000.
    #[serde(default = "default_section_size")]
    pub(crate) section_size: u32,
    /// By how much a ceiling is raised at a time; as stored. Default 10,000.
    #[serde(default = "default_step")]
    pub(crate) step: u32,
    /// Its stores.
    pub stores: StoresConfig,
}

fn default_section_size() -> u32 {
    Options::default().section_size
}

fn default_step() -> u32 {
    Options::default().step
}

/// A mistake in the file.
#[derive(Debug, Error)]
pub enum AllocConfigError {
    /// The name of the node.
    #[error("name = {0:?}: use 1 to 64 of a-z, 0-9, _ . and -")]
    Name(String),
    /// No Set, too many, or one twice.
    #[error("[[sets]]: list 1 to 64 Sets, each with a number of its own")]
    Sets,
    /// An option of the allocator.
    #[error("[[sets]] {set}: {problem}")]
    Option {
        /// The number of the Set.
        set: u32,
        /// The mistake.
        problem: OpenAllocatorError,
    },
}

impl AllocConfig {
    /// The configuration of a file with only the keys that are required: the simulation runs on it.
    #[cfg(any(test, feature = "simulation"))]
    pub fn shipped() -> Self {
        let text = "cluster = \"c\"\nname = \"a1\"\ndirectory = \"d\"\n[[sets]]\n\
                    [sets.stores]\nreplicas = [\"http://127.0.0.1:1\"]\n";
        toml::from_str(text).expect("nothing else is needed")
    }

    /// The settings of each Set, in the life `incarnation` of this node.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn settings(&self, incarnation: u64) -> Result<Vec<Settings>, AllocConfigError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
        if !(1..=64).contains(&self.name.len()) || !self.name.chars().all(fits) {
            return Err(AllocConfigError::Name(self.name.clone()));
        }
        let numbers: BTreeSet<u32> = self.sets.iter().map(|set| set.number).collect();
        if !(1..=64).contains(&self.sets.len()) || numbers.len() != self.sets.len() {
            return Err(AllocConfigError::Sets);
        }
        self.sets.iter().map(|set| self.of_set(set, incarnation)).collect()
    }

    fn of_set(&self, config: &SetConfig, incarnation: u64) -> Result<Settings, AllocConfigError> {
        let set = config.number;
        let options = Options {
            section_size: config.section_size,
            step: config.step,
            incarnation,
            ..Options::default()
        };
        options.check().map_err(|problem| AllocConfigError::Option { set, problem })?;
        let rules = NodeRules {
            name: self.name.clone(),
            incarnation,
            lease: LEASE,
            layout: options.layout(),
            flaws: Flaws::default(),
        };
        Ok(Settings { set, rules, options, drain_wait: DRAIN_WAIT, clock: clock::now })
    }

    /// The name of this node, as the arbiters know it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> AllocConfig {
        let text = format!(
            "cluster = \"c\"\nname = \"a1\"\ndirectory = \"d\"\n[[sets]]\n{more}\n\
             [sets.stores]\nreplicas = [\"http://127.0.0.1:1\"]\n"
        );
        toml::from_str(&text).expect("it can be read")
    }

    fn refusal(more: &str) -> String {
        config(more).settings(7).err().expect("it is refused").to_string()
    }

    #[test]
    fn the_least_that_must_be_configured_is_enough() {
        assert_eq!(config("").settings(7).unwrap().len(), 1);
    }

    #[test]
    fn each_mistake_is_refused_in_one_line() {
        assert!(refusal("step = 1").contains("step"));
        assert!(refusal("section_size = 5").contains("section_size"));
        let mut twice = config("");
        twice.sets.push(twice.sets[0].clone());
        assert!(matches!(twice.settings(7), Err(AllocConfigError::Sets)));
        let named = AllocConfig { name: "A 1".to_owned(), ..config("") };
        assert!(matches!(named.settings(7), Err(AllocConfigError::Name(_))));
    }
}
