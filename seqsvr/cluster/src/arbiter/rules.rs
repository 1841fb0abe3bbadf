//! The rules that an arbiter is configured with: its timing, its policy, and the shape of the Set. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::health::HealthRules;
use super::plan::Policy;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::{Node, NodeState, Table};

/// The rules of an arbiter.
#[derive(Clone, Debug)]
pub struct ArbiterRules {
    /// Its number, unique among the arbiters of the Set.
    pub number: u8,
    /// The acting arbiter is given up after this long without a sign of it; an eighth more for each number.
    pub takeover: Duration,
    /// The pause before a table whose fate is unknown is written again.
    pub retry: Duration,
    /// The pause between two probes of a node.
    pub probe_every: Duration,
    /// When nodes are dead and when back.
    pub health: HealthRules,
    /// The policy that assigns sections to nodes.
    pub policy: Policy,
    /// The contents of the first table.
    pub seed: Seed,
}

/// The shape of the Set, and the nodes of its first table; later ones are added by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seed {
    /// The number of the Set.
    pub set: u32,
    /// The uids of the Set.
    pub uids: RangeInclusive<u32>,
    /// Uids in a section.
    pub section_size: u32,
    /// Name and address of each.
    pub nodes: Vec<(String, String)>,
}

impl Seed {
    /// A table that knows the nodes and assigns nothing.
    pub(super) fn blank(&self) -> Table {
        let node = |(name, addr): &(String, String)| Node {
            name: name.clone(),
            addr: addr.clone(),
            state: NodeState::Active,
        };
        Table {
            set: self.set,
            version: Epoch::default(),
            section_size: self.section_size,
            uids: self.uids.clone(),
            nodes: self.nodes.iter().map(node).collect(),
            assignments: Vec::new(),
        }
    }

    /// The differences between this and a stored table of a Set that has these uids, in one line.
    pub(super) fn misfit(&self, table: &Table, uids: &RangeInclusive<u32>) -> Option<String> {
        let same = table.set == self.set && *uids == self.uids && table.section_size == self.section_size;
        (!same).then(|| {
            format!(
                "the stores hold Set {} with uids {} to {} in sections of {}, but this arbiter is configured for \
                 Set {} with uids {} to {} in sections of {}; correct number, first_uid, last_uid and section_size in [set]",
                table.set,
                uids.start(),
                uids.end(),
                table.section_size,
                self.set,
                self.uids.start(),
                self.uids.end(),
                self.section_size,
            )
        })
    }
}
