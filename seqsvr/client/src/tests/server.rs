//! AllocSvrs as they are, each on a runtime and a port of its own, over stores in memory: they can die, fall silent,
//! and come back over other stores.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::locked;
use seqsvr_cluster::alloc::fixture::rules;
use seqsvr_cluster::alloc::record::DataDir;
use seqsvr_cluster::alloc::sequence::{SequenceLimits, SequenceService};
use seqsvr_cluster::alloc::set_server::SetServer;
use seqsvr_cluster::alloc::shell::{Settings, Shell};
use seqsvr_cluster::store::Stores;
use seqsvr_core::Options;
use seqsvr_core::clock;
use seqsvr_core::ids::{Epoch, SectionId, Uid};
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};
use seqsvr_core::store::tables::RoutingTableStore as _;
use seqsvr_core::store::{Ceiling, Claimed, Layout, Memory, Owner, RaiseError, SectionStore, StoreError};
use seqsvr_rpc::connections::ConnectionsConfig;
use seqsvr_rpc::grpc_server::GrpcServer;
use seqsvr_rpc::security::{Listen, ListenConfig};
use seqsvr_rpc::v1::sequence_server::SequenceServer;

/// Uids of a section.
pub(super) const SECTION: u32 = 10_000;
/// How long a lease lasts: a takeover from a dead process takes a little longer.
const LEASE: Duration = Duration::from_millis(600);
/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The state that the processes of one Set share.
pub(super) struct SetWorld {
    set: u32,
    store: Arc<Gate>,
    lives: AtomicU64,
}

/// A store in memory that does not raise some sections: their owner cannot serve them.
#[derive(Default)]
struct Gate {
    behind: Arc<Memory>,
    shut: Mutex<HashSet<SectionId>>,
}

/// One process.
pub(super) struct Process {
    name: &'static str,
    incarnation: u64,
    pub(super) addr: String,
    set: Arc<SetServer>,
    runtime: Option<Runtime>,
    /// While this is there and somebody waits for it, the only thread of the runtime does nothing else.
    silence: Option<mpsc::Sender<()>>,
    _folder: TempDir,
}

impl SetWorld {
    pub(super) fn new(set: u32) -> Self {
        Self { set, store: Arc::default(), lives: AtomicU64::new(1) }
    }

    /// From now on no ceiling of `section` is raised.
    pub(super) fn shut(&self, section: u32) {
        locked(&self.store.shut).insert(SectionId::new(section));
    }

    /// All ceilings are raised again.
    pub(super) fn open(&self) {
        locked(&self.store.shut).clear();
    }

    /// Gives each process the sections named.
    pub(super) async fn assign(
        &self,
        version: u64,
        uids: RangeInclusive<u32>,
        processes: &[&Process],
        sections: &[(RangeInclusive<u32>, u32)],
    ) {
        let node = |process: &&Process| Node {
            name: process.name.to_owned(),
            addr: process.addr.clone(),
            state: NodeState::Active,
        };
        let epoch = Epoch { term: 1, version };
        let assignment = |(sections, node): &(RangeInclusive<u32>, u32)| Assignment {
            sections: SectionId::new(*sections.start())..=SectionId::new(*sections.end()),
            node: *node,
            home: *node,
            incarnation: processes[*node as usize].incarnation,
            epoch,
        };
        let table = Table {
            set: self.set,
            version: epoch,
            section_size: SECTION,
            uids,
            nodes: processes.iter().map(node).collect(),
            assignments: sections.iter().map(assignment).collect(),
        };
        table.check().expect("a good table");
        self.store.behind.write(&Arc::new(table)).await.expect("a newer table");
    }

    /// Starts a process.
    pub(super) async fn start(&self, name: &'static str) -> Process {
        self.start_at(name, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    async fn start_at(&self, name: &'static str, addr: SocketAddr) -> Process {
        let incarnation = self.lives.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().expect("there is room");
        let (shell, set) = self.shell(name, incarnation, &folder);
        // A runtime of its own takes its connections down with it.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let (stop, limits) =
            (CancellationToken::new(), SequenceLimits { uids: 10_000, waiting: 100, streams: 10 });
        let service = SequenceService::new(vec![Arc::clone(&set)], limits, stop.clone());
        let bound = runtime.spawn(async move {
            let listen = Listen::load(&ListenConfig::default(), addr, false).expect("loopback needs nothing");
            loop {
                // One that was there before may not be gone quite.
                if let Ok(server) = GrpcServer::open(addr, &listen, ConnectionsConfig::default()).await {
                    return server.with(SequenceServer::new(service));
                }
                tokio::task::yield_now().await;
            }
        });
        let server = timeout(PATIENCE, bound).await.expect("in time").expect("no panic");
        let addr = format!("http://{}", server.address().expect("bound"));
        runtime.spawn(server.serve(stop));
        runtime.spawn(shell.run(CancellationToken::new()));
        Process { name, incarnation, addr, set, runtime: Some(runtime), silence: None, _folder: folder }
    }

    fn shell(&self, name: &str, incarnation: u64, folder: &TempDir) -> (Shell, Arc<SetServer>) {
        let options = Options {
            section_size: SECTION,
            raise_wait: Duration::from_millis(20),
            retry_longest: Duration::from_millis(10),
            incarnation,
            ..Options::default()
        };
        let rules = rules(name, LEASE, &options);
        let settings =
            Settings { set: self.set, rules, options, drain_wait: Duration::ZERO, clock: clock::now };
        let record = DataDir::open(folder.path()).expect("nobody else has it").record(self.set);
        let tables = Arc::clone(&self.store.behind) as _;
        Shell::new(
            settings,
            Stores { sections: Arc::clone(&self.store) as _, tables, quorum: None, etcd: None },
            record,
        )
    }
}

impl Process {
    /// It is gone, and its connections with it.
    pub(super) fn die(&mut self) {
        self.silence = None;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// It dies, and comes back at the same address over the stores of `world`.
    pub(super) async fn move_to(&mut self, world: &SetWorld) {
        self.die();
        let addr = self.addr.trim_start_matches("http://").parse().expect("an address");
        *self = world.start_at(self.name, addr).await;
    }

    /// From now on it does nothing, and its connections stay.
    pub(super) async fn fall_silent(&mut self) {
        let (silence, end) = mpsc::channel();
        self.silence = Some(silence);
        let (begun, silent) = tokio::sync::oneshot::channel();
        let runtime = self.runtime.as_ref().expect("it lives");
        runtime.spawn(async move {
            let _ = begun.send(());
            // Until the sender is dropped.
            let _ = end.recv();
        });
        silent.await.expect("it runs");
    }

    /// Waits until it serves `uid`.
    pub(super) async fn until_it_serves(&self, uid: u32) {
        let serves = async {
            while self.set.view().group(Uid::new(uid)).is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, serves).await.expect("in time");
    }

    /// How many numbers it has handed out.
    pub(super) fn handed_out(&self) -> u64 {
        self.set.metrics().allocated
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.die();
    }
}

#[async_trait]
impl SectionStore for Gate {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        self.behind.newest_epoch().await
    }

    async fn claim(
        &self,
        sections: &[RangeInclusive<SectionId>],
        owner: Owner,
        layout: Layout,
    ) -> Result<Claimed, StoreError> {
        self.behind.claim(sections, owner, layout).await
    }

    async fn release(&self, sections: &[RangeInclusive<SectionId>], owner: Owner) -> Result<(), StoreError> {
        self.behind.release(sections, owner).await
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut answers = Vec::with_capacity(raises.len());
        for raise in raises {
            let shut = locked(&self.shut).contains(&raise.section);
            answers.extend(match shut {
                true => vec![Err(RaiseError::Unavailable("shut".to_owned()))],
                false => self.behind.raise(owner, &[*raise]).await,
            });
        }
        answers
    }
}
