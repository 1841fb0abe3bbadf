//! Nodes of one Set over stores in memory, by the clock of the tests' runtime: for the tests of the shell and of the
//! services.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::node::NodeRules;
use super::record::ServingRecord;
use super::set_server::SetServer;
use super::shell::{Settings, Shell};
use crate::store::Stores;
use seqsvr_core::clock::Moment;
use seqsvr_core::config::Options;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::{Epoch, SectionId, Uid};
use seqsvr_core::routing::{self, NodeState, Table};
use seqsvr_core::store::Memory;
use seqsvr_core::store::tables::RoutingTableStore;

/// How long a lease lasts here.
pub const LEASE: Duration = Duration::from_secs(2);
/// Uids in a section: ten of these make the Set.
pub const SIZE: u32 = 10_000;

/// One running node, for tests.
pub struct FixtureNode {
    /// Serves its Set.
    pub server: Arc<SetServer>,
    /// Tells it to leave.
    pub leave: CancellationToken,
    /// Ends with the node.
    pub task: JoinHandle<()>,
}

impl FixtureNode {
    /// The life `incarnation` of the node called `name`.
    pub fn start(store: &Arc<Memory>, record: ServingRecord, name: &str, incarnation: u64) -> Self {
        let options = Options { section_size: SIZE, step: 1_000, incarnation, ..Options::default() };
        let rules = rules(name, LEASE, &options);
        let settings = Settings { set: 0, rules, options, drain_wait: Duration::from_secs(5), clock };
        let stores = Stores {
            sections: Arc::clone(store) as _,
            tables: Arc::clone(store) as _,
            quorum: None,
            etcd: None,
        };
        let (shell, server) = Shell::new(settings, stores, record);
        let leave = CancellationToken::new();
        let task = tokio::spawn(shell.run(leave.clone()));
        Self { server, leave, task }
    }

    /// The first number that `uid` gets, however long that takes, and how long it took.
    pub async fn number(&self, uid: u32) -> (u64, Duration) {
        let began = Instant::now();
        loop {
            match self.server.wait(|view| view.take(Uid::new(uid), 1)).await {
                Ok(granted) => return (granted.last, began.elapsed()),
                Err(_) => sleep(Duration::from_millis(1)).await,
            }
        }
    }
}

/// The rules for the core of the node called `name`, in the life that `options` tells.
pub fn rules(name: &str, lease: Duration, options: &Options) -> NodeRules {
    NodeRules {
        name: name.to_owned(),
        incarnation: options.incarnation,
        lease,
        layout: options.layout(),
        flaws: Flaws::default(),
    }
}

/// Writes a table that gives each run of sections to (the name, the incarnation) under an epoch.
pub async fn give(
    store: &Memory,
    version: u64,
    given: &[(RangeInclusive<u32>, &str, u64, u64)],
) -> Arc<Table> {
    let names = ["a", "b"];
    let node = |name: &&str| routing::Node {
        name: (*name).to_owned(),
        addr: "http://127.0.0.1:1".to_owned(),
        state: NodeState::Active,
    };
    let assignment = |(sections, name, incarnation, epoch): &(RangeInclusive<u32>, &str, u64, u64)| {
        let node = names.iter().position(|one| one == name).expect("a or b") as u32;
        routing::Assignment {
            sections: SectionId::new(*sections.start())..=SectionId::new(*sections.end()),
            node,
            home: node,
            incarnation: *incarnation,
            epoch: Epoch { term: 1, version: *epoch },
        }
    };
    let table = Table {
        set: 0,
        version: Epoch { term: 1, version },
        section_size: SIZE,
        uids: 0..=10 * SIZE - 1,
        nodes: names.iter().map(node).collect(),
        assignments: given.iter().map(assignment).collect(),
    };
    let table = Arc::new(table);
    store.write(&table).await.expect("the term is not outranked");
    table
}

/// The clock of the runtime, which tests pause.
fn clock() -> Moment {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    let start = *START.get_or_init(std::time::Instant::now);
    // Not from 0: the paused clock of the test that came first may be ahead of this one's.
    let since = (Instant::now().into_std() + Duration::from_secs(1_000)).saturating_duration_since(start);
    Moment::from_nanos(u64::try_from(since.as_nanos()).expect("tests are short"))
}
