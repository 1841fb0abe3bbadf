//! The configuration file of an arbiter, checked at the start: each mistake is refused in one line.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::core::{ArbiterRules, Seed};
use super::health::HealthRules;
use super::leadership::{NODES, check_node};
use super::plan::{Balance, Policy};
use crate::store::StoresConfig;
use seqsvr_core::routing::{Order, TableError};
use seqsvr_core::store::configuration::LEASE;
use seqsvr_core::store::{Layout, Moves, SetTerms};
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::security::{CallConfig, ListenConfig};

/// How long there is no sign of the acting arbiter until another takes over.
const TAKEOVER: Duration = Duration::from_secs(2);

/// The file of `seqsvr arbiter --config`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArbiterConfig {
    /// The name of the cluster, as its stores were initialised with.
    pub cluster: String,
    /// This arbiter's number, unique among those of the Set: 0 to 255. Lower ones take over first.
    pub(crate) number: u8,
    /// Where operators' calls arrive. Default 127.0.0.1 with a free port.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Where `GET /metrics` is answered, over plain HTTP. Default: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// The Set.
    pub set: SetConfig,
    /// The AllocSvrs of the first table; afterwards `seqsvr add` and `drain` change them.
    pub allocators: Vec<AllocatorConfig>,
    /// The stores of the Set.
    pub stores: StoresConfig,
    /// The policy that assigns sections to nodes. Default: spread.
    #[serde(default)]
    pub(crate) policy: PolicyConfig,
    /// When sections move for load.
    #[serde(default)]
    pub(crate) balance: BalanceConfig,
    /// How fast things are noticed.
    #[serde(default)]
    pub(crate) timing: TimingConfig,
    /// The certificate of this arbiter, and the tokens that calls must bring.
    #[serde(default)]
    pub security: ListenConfig,
    /// How many callers at a time.
    #[serde(default)]
    pub connections: ConnectionsConfig,
    /// How the AllocSvrs are called.
    #[serde(default)]
    pub call: CallConfig,
}

/// The section `[set]`: which uids, in which sections; as stored, once there is a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its number. Default 0.
    #[serde(default)]
    pub number: u32,
    /// Its first uid: a multiple of the section size. Default 0.
    #[serde(default)]
    pub first_uid: u32,
    /// Its last uid: one below a multiple of the section size, or 4294967295, which is the default.
    #[serde(default = "default_last_uid")]
    pub last_uid: u32,
    /// Uids in a section: 10,000 to 2^31, as the stores have it. Default 100,000 (S4).
    #[serde(default = "default_section_size")]
    pub(crate) section_size: u32,
    /// By how much ceilings are raised, as the stores have it. Default 10,000 (S3).
    #[serde(default = "default_step")]
    pub(crate) step: u32,
    /// The lease of a new Set, in milliseconds: 100 to 60,000. Default 2,000. Fixed from then on.
    #[serde(default = "default_lease")]
    pub(crate) lease_ms: u64,
}

/// One entry of `[[allocators]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocatorConfig {
    /// Its name: 1 to 64 of a-z, 0-9, `_`, `.`, `-`.
    pub(crate) name: String,
    /// Where callers and probes reach it: `http://host:port` or `https://host:port`.
    pub addr: String,
}

/// The policy that assigns sections to nodes; clients name it by the same words.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyConfig {
    /// Everyone is everyone's standby (S11).
    #[default]
    Spread,
    /// One serves, the next stands by (S10): the whole Set on one node, in the order of `allocators`.
    Standby,
    /// The same for each slice, in an order of its own by consistent hash.
    StandbyByHash,
}

/// The section `[balance]`, for `spread`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BalanceConfig {
    /// Seconds between two looks at the load: 5 and up, so that the rates of moved sections are known by the next; 0: no moves
    /// for load. Default 30.
    pub(crate) every_s: u64,
    /// Numbers a second below which a node is not busy. Default 10,000.
    pub(crate) least: u64,
}

/// The section `[timing]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TimingConfig {
    /// Milliseconds between two probes of a node: 10 to 60,000. Default 200.
    pub(crate) probe_every_ms: u64,
    /// Milliseconds that an answer to a probe may take. Default: as `probe_every_ms`.
    pub(crate) probe_patience_ms: Option<u64>,
    /// Probes missed in a row until a node is dead: 1 to 1,000. Default 3.
    pub(crate) dead_after: u32,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self { probe_every_ms: 200, probe_patience_ms: None, dead_after: HealthRules::default().dead_after }
    }
}

impl Default for BalanceConfig {
    fn default() -> Self {
        let Balance { every, least, .. } = Balance::default();
        Self { every_s: every.as_secs(), least }
    }
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

const fn default_last_uid() -> u32 {
    u32::MAX
}

const fn default_section_size() -> u32 {
    100_000
}

const fn default_step() -> u32 {
    10_000
}

const fn default_lease() -> u64 {
    LEASE.as_millis() as u64
}

/// A mistake in the file.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ArbiterConfigError {
    /// The uids of the Set do not fit its sections.
    #[error("[set]: {0}; choose borders of sections, or another section_size")]
    Set(#[from] TableError),
    /// An allocator's name or address cannot be used.
    #[error("[[allocators]]: {0}")]
    Allocator(String),
    /// A number is out of its range.
    #[error("{name} = {value} is not {range}")]
    Range {
        /// The key.
        name: &'static str,
        /// Its value in the file.
        value: u64,
        /// The values that it may have.
        range: &'static str,
    },
}

impl ArbiterConfig {
    /// The configuration of a file with only the keys that are required: the simulation runs on it.
    #[cfg(any(test, feature = "simulation"))]
    pub fn shipped() -> Self {
        let text = "cluster = \"c\"\nnumber = 0\n[set]\n[[allocators]]\nname = \"a\"\naddr = \"http://127.0.0.1:1\"\n\
                    [stores]\nreplicas = [\"http://127.0.0.1:2\"]\n";
        toml::from_str(text).expect("nothing else is needed")
    }

    /// The terms that a new Set begins with.
    ///
    /// # Errors
    ///
    /// A lease or a step out of range.
    pub fn terms(&self) -> Result<SetTerms, ArbiterConfigError> {
        let SetConfig { section_size, step, lease_ms, first_uid, last_uid, .. } = self.set;
        within("set.lease_ms", lease_ms, 100, 60_000, "between 100 and 60000")?;
        within("set.step", step.into(), 2, u64::MAX, "2 or more")?;
        let (lease, uids) = (Duration::from_millis(lease_ms), first_uid..=last_uid);
        Ok(SetTerms { lease, layout: Layout { section_size, step }, uids, moves: Moves::default() })
    }

    /// The rules of the core.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn rules(&self) -> Result<ArbiterRules, ArbiterConfigError> {
        let seed = self.seed()?;
        let timing = &self.timing;
        within("timing.probe_every_ms", timing.probe_every_ms, 10, 60_000, "between 10 and 60000")?;
        within("timing.probe_patience_ms", self.probe_patience_ms(), 10, 60_000, "between 10 and 60000")?;
        within("timing.dead_after", timing.dead_after.into(), 1, 1_000, "between 1 and 1000")?;
        Ok(ArbiterRules {
            number: self.number,
            takeover: TAKEOVER,
            retry: Duration::from_millis(100),
            probe_every: Duration::from_millis(timing.probe_every_ms),
            health: self.health(self.terms()?.lease),
            policy: self.policy()?,
            seed,
        })
    }

    fn policy(&self) -> Result<Policy, ArbiterConfigError> {
        let BalanceConfig { every_s, least } = self.balance;
        if every_s > 0 {
            within("balance.every_s", every_s, 5, 1_000_000, "0, or between 5 and 1000000")?;
        }
        Ok(match self.policy {
            PolicyConfig::Standby => Policy::Standby(Order::List),
            PolicyConfig::StandbyByHash => Policy::Standby(Order::Hash),
            PolicyConfig::Spread => {
                Policy::Spread(Balance { every: Duration::from_secs(every_s), least, ..Balance::default() })
            }
        })
    }

    /// A node that is back is trusted after others have taken over from it: no section goes home while its taker still waits, and
    /// must be waited for anew.
    fn health(&self, lease: Duration) -> HealthRules {
        let TimingConfig { probe_every_ms, dead_after, .. } = self.timing;
        let takeover = (lease.as_millis() as u64 * 11).div_ceil(10 * probe_every_ms) as u32;
        let (back_after, health) = (dead_after + takeover + 1, HealthRules::default());
        HealthRules { dead_after, back_after, back_most: health.back_most.max(back_after), ..health }
    }

    /// How long an answer to a probe may take.
    pub fn probe_patience(&self) -> Duration {
        Duration::from_millis(self.probe_patience_ms())
    }

    fn probe_patience_ms(&self) -> u64 {
        self.timing.probe_patience_ms.unwrap_or(self.timing.probe_every_ms)
    }

    fn seed(&self) -> Result<Seed, ArbiterConfigError> {
        let set = &self.set;
        within("set.section_size", set.section_size.into(), 10_000, 1 << 31, "between 10000 and 2^31")?;
        let nodes = self.allocators.len() as u64;
        within("the number of [[allocators]]", nodes, 1, NODES as u64, "between 1 and 1024")?;
        let mut addrs = BTreeSet::new();
        let mut names = BTreeSet::new();
        for one in &self.allocators {
            check_node(&one.name, &one.addr).map_err(ArbiterConfigError::Allocator)?;
            if !names.insert(&one.name) || !addrs.insert(&one.addr) {
                let line = format!("{} at {} shares its name or address with another", one.name, one.addr);
                return Err(ArbiterConfigError::Allocator(line));
            }
        }
        let seed = Seed {
            set: set.number,
            uids: set.first_uid..=set.last_uid,
            section_size: set.section_size,
            nodes: self.allocators.iter().map(|one| (one.name.clone(), one.addr.clone())).collect(),
        };
        seed.blank().check()?;
        Ok(seed)
    }
}

fn within(
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
    range: &'static str,
) -> Result<(), ArbiterConfigError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ArbiterConfigError::Range { name, value, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
        cluster = "test"
        number = 1
        set = {}
        stores = { replicas = ["http://127.0.0.1:1"] }
        [[allocators]]
        name = "alloc-0"
        addr = "http://127.0.0.1:2"
        [[allocators]]
        name = "alloc-1"
        addr = "http://127.0.0.1:3"
    "#;

    fn read(text: &str) -> Result<ArbiterRules, String> {
        let config: ArbiterConfig = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        config.rules().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let rules = read(SOUND).unwrap();
        assert_eq!(rules.health, HealthRules::default());
        assert_eq!(rules.policy, Policy::Spread(Balance::default()));
        let slow = read(&SOUND.replacen("set = {}", "set = { lease_ms = 10000 }", 1)).unwrap();
        assert_eq!(slow.health.back_after, 59, "11.8 s: longer than 0.6 s + 1.1 x 10 s");
        assert_eq!(rules.seed.uids, 0..=u32::MAX);
    }

    #[test]
    fn a_standby_set_names_its_order() {
        let rules = read(&SOUND.replacen("set = {}", "set = {}\npolicy = \"standby-by-hash\"", 1)).unwrap();
        assert_eq!(rules.policy, Policy::Standby(Order::Hash));
    }

    #[test]
    fn each_mistake_is_refused_in_one_line() {
        let mistakes = [
            ("set = {}", "set = { first_uid = 5 }", "do not lie on borders of sections of 100000"),
            ("set = {}", "set = { last_uid = 100000 }", "do not lie on borders"),
            ("set = {}", "set = { section_size = 9999 }", "set.section_size = 9999 is not between"),
            ("set = {}", "set = { sections = 3 }", "unknown field"),
            ("alloc-1", "alloc-0", "shares its name or address"),
            ("127.0.0.1:3", "127.0.0.1:2", "shares its name or address"),
            ("http://127.0.0.1:3", "127.0.0.1:3", "is not http://HOST:PORT"),
            ("alloc-1", "Alloc 1", "is not 1 to 64 of a-z"),
            ("set = {}", "set = {}\nbalance = { every_s = 1 }", "balance.every_s = 1 is not 0, or between 5"),
            ("set = {}", "set = {}\ntiming = { dead_after = 0 }", "timing.dead_after = 0 is not between"),
            ("set = {}", "set = {}\npolicy = \"other\"", "unknown variant"),
            ("number = 1", "number = 256", "invalid value"),
        ];
        for (good, bad, reported) in mistakes {
            let line = read(&SOUND.replacen(good, bad, 1)).unwrap_err();
            assert!(line.contains(reported) && !line.contains('\n'), "{bad}: {line}");
        }
    }

    #[test]
    fn the_first_table_is_blank() {
        let table = read(SOUND).unwrap().seed.blank();
        assert_eq!((table.nodes.len(), table.assignments), (2, Vec::new()));
    }
}
