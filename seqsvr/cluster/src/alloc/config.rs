//! The configuration file of an AllocSvr, checked at the start: each mistake is refused in one line.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::node::NodeRules;
use super::shell::Settings;
use crate::alloc::sequence::SequenceLimits;
use crate::store::StoresConfig;
use seqsvr_core::clock;
use seqsvr_core::config::Options;
use seqsvr_core::error::OpenAllocatorError;
use seqsvr_core::flaws::Flaws;
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::security::ListenConfig;

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
    /// How much callers may ask for.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// The certificate of this process, and the token that calls must bring.
    #[serde(default)]
    pub security: ListenConfig,
    /// How many callers at a time.
    #[serde(default)]
    pub connections: ConnectionsConfig,
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
    /// The largest number ever handed out. Default 2^63 - 1.
    #[serde(default = "default_limit")]
    pub(crate) limit: u64,
    /// How long a read of the table lets this process serve, in milliseconds: 100 to 60,000. Default: as stored. A value that is not
    /// the stored one is refused at the start.
    pub(crate) lease_ms: Option<u64>,
    /// How long a read waits for news, in milliseconds: at most half the lease. Default a quarter of it. (StoreSvrs are asked
    /// again after twice the `patience_ms`, if that is shorter.)
    pub(crate) poll_ms: Option<u64>,
    /// How long a request waits for a ceiling to be raised, in milliseconds. Default 2,000.
    #[serde(default = "default_raise_wait")]
    pub(crate) raise_wait_ms: u64,
    /// How long, at a stop, the arbiter has to move the sections elsewhere, in milliseconds. Default 2,000.
    #[serde(default = "default_drain_wait")]
    pub(crate) drain_wait_ms: u64,
    /// Its stores.
    pub stores: StoresConfig,
}

impl SetConfig {
    /// The lease that waits and polls go by until the stored one is known.
    pub fn lease_ms(&self) -> u64 {
        self.lease_ms.unwrap_or(2_000)
    }
}

fn default_section_size() -> u32 {
    Options::default().section_size
}

fn default_step() -> u32 {
    Options::default().step
}

fn default_limit() -> u64 {
    Options::default().limit
}

fn default_raise_wait() -> u64 {
    2_000
}

fn default_drain_wait() -> u64 {
    2_000
}

/// The section `[limits]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Numbers in one call of one uid. Default 100,000.
    pub(crate) count: u32,
    /// Uids in one call: 1 and up. Default 10,000.
    pub(crate) uids: usize,
    /// Requests of one stream that wait for a raise; more are told to come back. Default 4,096.
    pub(crate) waiting: usize,
    /// Streams at a time. Default 10,000.
    pub(crate) streams: usize,
    /// The largest request, in bytes. Default 1 MiB.
    pub message_bytes: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { count: 100_000, uids: 10_000, waiting: 4_096, streams: 10_000, message_bytes: 1 << 20 }
    }
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
    /// The lease is out of range.
    #[error("[[sets]] {set}: lease_ms = {lease_ms} is not within 100 and 60000")]
    Lease {
        /// The number of the Set.
        set: u32,
        /// As configured, in milliseconds.
        lease_ms: u64,
    },
    /// The lease would end before the table was read again.
    #[error(
        "[[sets]] {set}: the lease of {lease_ms} ms is shorter than two polls of {poll_ms} ms; \
         set poll_ms to 1 to {}", lease_ms / 2
    )]
    Poll {
        /// The number of the Set.
        set: u32,
        /// As configured, in milliseconds.
        lease_ms: u64,
        /// As configured, in milliseconds.
        poll_ms: u64,
    },
    /// An option of the allocator.
    #[error("[[sets]] {set}: {problem}")]
    Option {
        /// The number of the Set.
        set: u32,
        /// The mistake.
        problem: OpenAllocatorError,
    },
    /// A limit is 0.
    #[error("[limits]: {0} = 0 would refuse every call; set 1 or more")]
    Limit(&'static str),
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
        let (set, lease_ms) = (config.number, config.lease_ms());
        if !(100..=60_000).contains(&lease_ms) {
            return Err(AllocConfigError::Lease { set, lease_ms });
        }
        let poll_ms = config.poll_ms.unwrap_or(lease_ms / 4);
        if poll_ms == 0 || lease_ms < 2 * poll_ms {
            return Err(AllocConfigError::Poll { set, lease_ms, poll_ms });
        }
        let lease = Duration::from_millis(lease_ms);
        let options = Options {
            section_size: config.section_size,
            step: config.step,
            limit: config.limit,
            max_count: self.limits.count,
            raise_wait: Duration::from_millis(config.raise_wait_ms),
            store_timeout: lease,
            incarnation,
            ..Options::default()
        };
        options.check().map_err(|problem| AllocConfigError::Option { set, problem })?;
        let rules = NodeRules {
            name: self.name.clone(),
            incarnation,
            lease,
            poll: Duration::from_millis(poll_ms),
            retry: lease / 40,
            layout: options.layout(),
            flaws: Flaws::default(),
        };
        let drain_wait = Duration::from_millis(config.drain_wait_ms);
        let lease = config.lease_ms.map(Duration::from_millis);
        Ok(Settings { set, rules, lease, options, drain_wait, clock: clock::now })
    }

    /// The name of this node, as the arbiters know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much callers may ask for.
    ///
    /// # Errors
    ///
    /// A limit of 0.
    pub fn limits(&self) -> Result<SequenceLimits, AllocConfigError> {
        let LimitsConfig { uids, waiting, streams, .. } = self.limits;
        for (name, value) in [("uids", uids), ("waiting", waiting), ("streams", streams)] {
            if value == 0 {
                return Err(AllocConfigError::Limit(name));
            }
        }
        Ok(SequenceLimits { uids, waiting, streams })
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
        let settings = config("").settings(7).unwrap();
        assert_eq!((settings.len(), settings[0].rules.poll), (1, Duration::from_millis(500)));
    }

    #[test]
    fn each_mistake_is_refused_in_one_line() {
        assert!(refusal("poll_ms = 1001").contains("shorter than two polls of 1001 ms"));
        assert!(refusal("lease_ms = 99").contains("not within 100 and 60000"));
        assert!(refusal("step = 1").contains("step"));
        assert!(refusal("section_size = 5").contains("section_size"));
        let mut twice = config("");
        twice.sets.push(twice.sets[0].clone());
        assert!(matches!(twice.settings(7), Err(AllocConfigError::Sets)));
        let named = AllocConfig { name: "A 1".to_owned(), ..config("") };
        assert!(matches!(named.settings(7), Err(AllocConfigError::Name(_))));
        let mut none = config("");
        none.limits.uids = 0;
        assert!(none.limits().unwrap_err().to_string().contains("uids = 0"));
    }
}
