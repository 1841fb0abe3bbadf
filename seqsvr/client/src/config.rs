//! The client's configuration: a TOML file that names the Sets and where they are found. Checked as a whole when it is
//! read; each mistake is one line that says what to do.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use seqsvr_rpc::security::CallConfig;

/// The facts that the client must know before it has a routing table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The cluster's name: `[a-z0-9_.-]{1,64}`. Tells the shared files of several clusters apart.
    #[serde(default = "cluster")]
    pub cluster: String,
    /// Directory through which all processes of this machine and user share routing tables, best one in memory such as
    /// `/dev/shm/seqsvr-USER`. Without it each process finds the owners by itself.
    #[serde(default)]
    pub cache_dir: Option<PathBuf>,
    /// TLS and tokens.
    #[serde(default)]
    pub security: CallConfig,
    /// The uid space, cut into Sets (S6); uids in none are refused.
    pub sets: Vec<SetConfig>,
    /// How much, and how long.
    #[serde(default)]
    pub limits: LimitsConfig,
}

/// One Set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its number, as the cluster knows it.
    #[serde(default)]
    pub number: u32,
    /// The first uid.
    #[serde(default)]
    pub first_uid: u32,
    /// The last uid.
    #[serde(default = "last_uid")]
    pub last_uid: u32,
    /// Where to ask first: some AllocSvrs, `http://host:port` or `https://host:port`. The others are in the routing table.
    pub allocators: Vec<String>,
    /// How the cluster is told to fail over.
    #[serde(default)]
    pub policy: Policy,
    /// Where the commands `drain`, `add` and `rebalance` find the arbiters.
    #[serde(default)]
    pub arbiters: Vec<String>,
}

/// The processes to ask while there is no table, or its owner does not answer. The same as the arbiters' policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Anybody: every process stands by for every other (S11).
    #[default]
    Spread,
    /// One after the other as `allocators` lists them: the first is the primary, the others stand by (S10).
    Standby,
    /// As `standby`, each slice of the Set in an order of its own, by consistent hash of its number and the addresses (S10's variant).
    StandbyByHash,
}

fn cluster() -> String {
    "seqsvr".to_owned()
}

fn last_uid() -> u32 {
    u32::MAX
}

/// Bounds of the client, each with its default.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// How long a call tries before it gives a retryable error. It should outlast a takeover: detection and 1.1 times the lease.
    pub call_ms: u64,
    /// How long one process may take for an answer before the question counts as lost.
    pub answer_ms: u64,
    /// How long a connection may take to be made.
    pub connect_ms: u64,
    /// The pause after a first failed attempt, doubled with each further one,
    pub pause_first_ms: u64,
    /// up to this one; longer where the server asks for it, up to `call_ms`. Of all calls for a section one asks again.
    pub pause_longest_ms: u64,
    /// Retries of a Set in a second, for all of its sections together.
    pub retries_per_second: u32,
    /// The pause before a lost connection is made again, doubled with each failure,
    pub reconnect_first_ms: u64,
    /// up to this one.
    pub reconnect_longest_ms: u64,
    /// Calls that wait or are under way to one process; more are turned away to try again.
    pub calls_per_node: usize,
    /// Calls for one number each that may share a frame.
    pub gather: usize,
    /// Uids in one call for many.
    pub uids_per_call: usize,
    /// Numbers in one call for a range.
    pub count_per_call: u32,
    /// Uids of each Set whose newest number is remembered, to notice a cluster that goes back: 16 bytes each.
    pub remembered_uids: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            call_ms: 5_000,
            answer_ms: 500,
            connect_ms: 500,
            pause_first_ms: 2,
            pause_longest_ms: 50,
            retries_per_second: 10_000,
            reconnect_first_ms: 20,
            reconnect_longest_ms: 1_000,
            calls_per_node: 65_536,
            gather: 256,
            uids_per_call: 4_096,
            count_per_call: 100_000,
            remembered_uids: 262_144,
        }
    }
}

/// The configuration cannot be used; the text says where and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClientConfigError {
    /// The file cannot be read.
    #[error("cannot read the client configuration {}: {why}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The file is not what it should be.
    #[error("{} line {line}: {why}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The problem there.
        why: String,
    },
    /// Certificates or tokens cannot be used.
    #[error("[security] {0}")]
    Security(String),
    /// The name of the cluster cannot be one.
    #[error("cluster = \"{0}\" is no name; use 1 to 64 of a-z, 0-9, `_`, `.` and `-`")]
    Cluster(String),
    /// The shared file cannot be used.
    #[error("{0}; or leave cache_dir out")]
    Cache(String),
    /// There are no Sets.
    #[error("no Set is configured; add a [[sets]] section with `allocators`")]
    NoSets,
    /// Two Sets share uids or a number.
    #[error("Sets {a} and {b} overlap: both {what}; give each its own")]
    Overlap {
        /// The number of the one.
        a: u32,
        /// The number of the other.
        b: u32,
        /// The number or uid that they share.
        what: String,
    },
    /// A value of a Set is wrong.
    #[error("Set {number}: {why}")]
    Set {
        /// Its number.
        number: u32,
        /// The problem, and how to correct it.
        why: String,
    },
    /// A limit is out of its range.
    #[error("[limits] {key}: is {value}; choose {least} to {most}")]
    Limit {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The smallest value allowed.
        least: u64,
        /// The largest value allowed.
        most: u64,
    },
}

impl ClientConfig {
    /// One Set of all uids, found at `allocators`.
    pub fn single_set(allocators: Vec<String>) -> Self {
        Self::of(vec![SetConfig {
            number: 0,
            first_uid: 0,
            last_uid: u32::MAX,
            allocators,
            policy: Policy::Spread,
            arbiters: Vec::new(),
        }])
    }

    /// These Sets, and defaults.
    pub fn of(sets: Vec<SetConfig>) -> Self {
        let (limits, security) = (LimitsConfig::default(), CallConfig::default());
        Self { cluster: cluster(), cache_dir: None, security, sets, limits }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn read(path: &Path) -> Result<Self, ClientConfigError> {
        let why =
            |error: std::io::Error| ClientConfigError::File { path: path.to_owned(), why: error.to_string() };
        let text = std::fs::read_to_string(path).map_err(why)?;
        let config: Self = toml::from_str(&text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..before].iter().filter(|&&byte| byte == b'\n').count() + 1;
            let why = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
            ClientConfigError::Syntax { path: path.to_owned(), line, why }
        })?;
        config.check()?;
        Ok(config)
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ClientConfigError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
        if !(1..=64).contains(&self.cluster.len()) || !self.cluster.chars().all(fits) {
            return Err(ClientConfigError::Cluster(self.cluster.clone()));
        }
        if self.sets.is_empty() {
            return Err(ClientConfigError::NoSets);
        }
        for (index, set) in self.sets.iter().enumerate() {
            set.check()?;
            for other in &self.sets[..index] {
                let overlap = |what| Err(ClientConfigError::Overlap { a: other.number, b: set.number, what });
                if other.number == set.number {
                    return overlap(format!("have the number {}", set.number));
                }
                let first = set.first_uid.max(other.first_uid);
                if first <= set.last_uid.min(other.last_uid) {
                    return overlap(format!("hold uid {first}"));
                }
            }
        }
        self.limits.check()
    }
}

impl SetConfig {
    /// Its uids.
    pub fn uids(&self) -> RangeInclusive<u32> {
        self.first_uid..=self.last_uid
    }

    fn check(&self) -> Result<(), ClientConfigError> {
        let wrong = |why: String| Err(ClientConfigError::Set { number: self.number, why });
        if self.first_uid > self.last_uid {
            return wrong(format!("first_uid {} is larger than last_uid {}", self.first_uid, self.last_uid));
        }
        if self.allocators.is_empty() {
            return wrong(
                "allocators is empty; name at least one, for example \"http://127.0.0.1:7101\"".to_owned(),
            );
        }
        for addr in self.allocators.iter().chain(&self.arbiters) {
            let rest = addr.strip_prefix("http://").or_else(|| addr.strip_prefix("https://"));
            if rest.is_none_or(|rest| {
                !rest.contains(':') || tonic::transport::Endpoint::from_shared(addr.clone()).is_err()
            }) {
                return wrong(format!("`{addr}` is no address; write http://HOST:PORT or https://HOST:PORT"));
            }
        }
        Ok(())
    }
}

impl LimitsConfig {
    fn check(&self) -> Result<(), ClientConfigError> {
        let hour = 3_600_000;
        let calls = [
            ("call_ms", self.call_ms, 1, hour),
            ("answer_ms", self.answer_ms, 4, hour),
            ("connect_ms", self.connect_ms, 1, hour),
            ("pause_longest_ms", self.pause_longest_ms, 1, hour),
            ("pause_first_ms", self.pause_first_ms, 1, self.pause_longest_ms),
            ("retries_per_second", u64::from(self.retries_per_second), 1, 1_000_000),
            ("reconnect_longest_ms", self.reconnect_longest_ms, 1, hour),
            ("reconnect_first_ms", self.reconnect_first_ms, 1, self.reconnect_longest_ms),
            ("calls_per_node", self.calls_per_node as u64, 1, 1 << 24),
            ("gather", self.gather as u64, 1, 4_096),
            ("uids_per_call", self.uids_per_call as u64, 1, 65_536),
            ("count_per_call", u64::from(self.count_per_call), 1, u64::from(u32::MAX)),
            ("remembered_uids", self.remembered_uids as u64, 1, 1 << 30),
        ];
        for (key, value, least, most) in calls {
            if !(least..=most).contains(&value) {
                return Err(ClientConfigError::Limit { key, value, least, most });
            }
        }
        Ok(())
    }

    pub(super) fn limits(&self) -> ClientLimits {
        let ms = Duration::from_millis;
        ClientLimits {
            call: ms(self.call_ms),
            answer: ms(self.answer_ms),
            connect: ms(self.connect_ms),
            pause_first: ms(self.pause_first_ms),
            pause_longest: ms(self.pause_longest_ms),
            retries_per_second: self.retries_per_second,
            reconnect_first: ms(self.reconnect_first_ms),
            reconnect_longest: ms(self.reconnect_longest_ms),
            calls_per_node: self.calls_per_node,
            gather: self.gather,
            uids_per_call: self.uids_per_call,
            count_per_call: self.count_per_call,
            remembered_uids: self.remembered_uids,
        }
    }
}

/// [`LimitsConfig`], checked, in the types that the client works with.
#[derive(Clone, Debug)]
pub(crate) struct ClientLimits {
    pub(super) call: Duration,
    pub(super) answer: Duration,
    pub(super) connect: Duration,
    pub(super) pause_first: Duration,
    pub(super) pause_longest: Duration,
    pub(super) retries_per_second: u32,
    pub(super) reconnect_first: Duration,
    pub(super) reconnect_longest: Duration,
    pub(super) calls_per_node: usize,
    pub(super) gather: usize,
    pub(super) uids_per_call: usize,
    pub(super) count_per_call: u32,
    pub(super) remembered_uids: usize,
}
