//! The client's configuration: a TOML file that names the Sets and where they are found. Checked as a whole when it is
//! read; each mistake is one line that says what to do.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use seqsvr_rpc::security::CallConfig;

/// How long one process may take for an answer, unless a test says otherwise.
pub const ANSWER: Duration = Duration::from_millis(500);

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
    /// How long a call tries before it gives a retryable error, in milliseconds: 1 to 3,600,000. It should outlast a takeover:
    /// detection and 1.1 times the lease. Default 5,000.
    #[serde(default = "call_ms")]
    pub call_ms: u64,
    /// How long one process may take for an answer before the question counts as lost.
    #[serde(skip, default = "answer")]
    pub answer: Duration,
    /// Uids in one call for many.
    #[serde(skip, default = "uids_per_call")]
    pub uids_per_call: usize,
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

fn call_ms() -> u64 {
    5_000
}

fn answer() -> Duration {
    ANSWER
}

fn uids_per_call() -> usize {
    4_096
}

fn last_uid() -> u32 {
    u32::MAX
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
    /// The time of a call is out of its range.
    #[error("call_ms = {0} is not between 1 and 3600000")]
    Call(u64),
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
        let (security, answer) = (CallConfig::default(), ANSWER);
        let (call_ms, uids_per_call) = (call_ms(), uids_per_call());
        Self { cluster: cluster(), cache_dir: None, security, sets, call_ms, answer, uids_per_call }
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
        match self.call_ms {
            1..=3_600_000 => Ok(()),
            other => Err(ClientConfigError::Call(other)),
        }
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
