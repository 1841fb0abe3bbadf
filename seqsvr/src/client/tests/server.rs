//! Processes that answer as the table says, over one allocator that works, each on a port of its own; they can fall silent,
//! refuse, go back or die.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::{Stream, StreamExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::client::locked;
use crate::ids::{Epoch, SectionId, Uid};
use crate::routing::{Assignment, Node, NodeState, Table};
use crate::rpc::v1::sequence_server::{Sequence, SequenceServer};
use crate::rpc::v1::{self, stream_reply::Answer, stream_request::Call};
use crate::store::Memory;
use crate::{Embedded, Options, Sequencer as _};

/// Uids of a section.
pub(super) const SECTION: u32 = 10_000;

/// What the processes of one Set share.
pub(super) struct World {
    set: u32,
    numbers: Embedded,
    table: Mutex<Option<Table>>,
    /// Sections that their owner cannot serve.
    pub(super) waiting: Mutex<HashSet<SectionId>>,
    /// Taken off every number.
    pub(super) back: Mutex<u64>,
}

/// One process.
pub(super) struct Process {
    pub(super) name: &'static str,
    pub(super) addr: String,
    pub(super) silent: Arc<Mutex<bool>>,
    pub(super) questions: Arc<Mutex<usize>>,
    runtime: Option<Runtime>,
}

impl World {
    pub(super) async fn new(set: u32) -> Arc<Self> {
        let options = Options { section_size: SECTION, ..Options::default() };
        let numbers = Embedded::open(Arc::new(Memory::new()), options).await.expect("memory works");
        let (table, waiting, back) = Default::default();
        Arc::new(Self { set, numbers, table, waiting, back })
    }

    /// Gives each process the sections named.
    pub(super) fn assign(
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
            incarnation: 1,
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
        *locked(&self.table) = Some(table);
    }

    /// Starts a process.
    pub(super) async fn start(self: &Arc<Self>, name: &'static str) -> Process {
        // A runtime of its own takes its connections down with it.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let bound = runtime.spawn(TcpListener::bind("127.0.0.1:0"));
        let listener = bound.await.expect("no panic").expect("a free port");
        let addr = format!("http://{}", listener.local_addr().expect("bound"));
        let (silent, questions) = <(Arc<Mutex<bool>>, Arc<Mutex<usize>>)>::default();
        let service = Service {
            name,
            world: Arc::clone(self),
            silent: Arc::clone(&silent),
            questions: Arc::clone(&questions),
        };
        runtime.spawn(async move {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let serving = Server::builder().add_service(SequenceServer::new(service));
            serving.serve_with_incoming(incoming).await
        });
        Process { name, addr, silent, questions, runtime: Some(runtime) }
    }
}

impl Process {
    /// It is gone, and its connections with it.
    pub(super) fn die(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.die();
    }
}

#[derive(Clone)]
struct Service {
    name: &'static str,
    world: Arc<World>,
    silent: Arc<Mutex<bool>>,
    questions: Arc<Mutex<usize>>,
}

type Replies = Pin<Box<dyn Stream<Item = Result<v1::StreamReply, Status>> + Send>>;

/// Why nothing was handed out.
enum No {
    NotOwner,
    Waiting,
}

impl Service {
    fn may(&self, uids: &[u32]) -> Result<(), No> {
        let table = locked(&self.world.table);
        for &uid in uids {
            let owner = table.as_ref().and_then(|table| table.owner(table.section(Uid::new(uid))));
            let Some(owner) = owner else { return Err(No::NotOwner) };
            let mine = table.as_ref().and_then(|table| table.index(self.name));
            if Some(owner.node) != mine {
                return Err(No::NotOwner);
            }
            if locked(&self.world.waiting).contains(&SectionId::new(uid / SECTION)) {
                return Err(No::Waiting);
            }
        }
        Ok(())
    }

    fn table_for(&self, route: Option<v1::Route>) -> Option<v1::Table> {
        let route = route.expect("every request says what it goes by");
        assert_eq!(route.set, self.world.set);
        let known = Epoch { term: route.term, version: route.version };
        locked(&self.world.table).as_ref().filter(|table| table.version > known).map(v1::Table::from)
    }

    async fn next(&self, uid: u32, count: u32) -> (u64, u64) {
        let granted = self.world.numbers.next(Uid::new(uid), count).await.expect("memory works");
        let back = *locked(&self.world.back);
        (granted.first.saturating_sub(back), granted.last.saturating_sub(back))
    }

    fn epoch(&self) -> Option<v1::Epoch> {
        locked(&self.world.table).as_ref().map(|table| table.version.into())
    }

    async fn answer(&self, request: v1::StreamRequest) -> v1::StreamReply {
        *locked(&self.questions) += 1;
        if *locked(&self.silent) {
            std::future::pending::<()>().await;
        }
        /// Each reply has these outcomes in an enum of its own.
        macro_rules! no {
            ($replies:ident, $no:expr) => {
                match $no {
                    No::NotOwner => v1::$replies::Outcome::NotOwner(v1::NotOwner {}),
                    No::Waiting => v1::$replies::Outcome::Unavailable(v1::Unavailable {
                        reason: "the section waits".to_owned(),
                        retry_after_ms: 1,
                    }),
                }
            };
        }
        let answer = match request.call.expect("a call") {
            Call::Next(ask) => {
                let outcome = match self.may(&[ask.uid]) {
                    Ok(()) => {
                        let (first, last) = self.next(ask.uid, ask.count).await;
                        v1::next_reply::Outcome::Granted(v1::Granted { first, last, epoch: self.epoch() })
                    }
                    Err(no) => no!(next_reply, no),
                };
                Answer::Next(v1::NextReply { outcome: Some(outcome), table: self.table_for(ask.route) })
            }
            Call::NextEach(ask) => {
                let outcome = match self.may(&ask.uids) {
                    Ok(()) => {
                        let mut numbers = Vec::new();
                        for &uid in &ask.uids {
                            numbers.push(self.next(uid, 1).await.0);
                        }
                        let run = v1::EpochRun { count: numbers.len() as u32, epoch: self.epoch() };
                        v1::next_each_reply::Outcome::Granted(v1::GrantedEach { numbers, epochs: vec![run] })
                    }
                    Err(no) => no!(next_each_reply, no),
                };
                Answer::NextEach(v1::NextEachReply {
                    outcome: Some(outcome),
                    table: self.table_for(ask.route),
                })
            }
            Call::Current(ask) => {
                let outcome = match self.may(&ask.uids) {
                    Ok(()) => {
                        let mut numbers = Vec::new();
                        for &uid in &ask.uids {
                            let bound =
                                self.world.numbers.current(Uid::new(uid)).await.expect("memory works");
                            numbers.push(bound.saturating_sub(*locked(&self.world.back)));
                        }
                        v1::current_reply::Outcome::UpperBounds(v1::UpperBounds { numbers })
                    }
                    Err(no) => no!(current_reply, no),
                };
                Answer::Current(v1::CurrentReply { outcome: Some(outcome), table: self.table_for(ask.route) })
            }
            Call::Advance(ask) => {
                let outcome = match self.may(&[ask.uid]) {
                    Ok(()) => {
                        let advanced = self.world.numbers.advance(Uid::new(ask.uid), ask.at_least).await;
                        advanced.expect("memory works");
                        v1::advance_reply::Outcome::Advanced(v1::Advanced {})
                    }
                    Err(no) => no!(advance_reply, no),
                };
                Answer::Advance(v1::AdvanceReply { outcome: Some(outcome), table: self.table_for(ask.route) })
            }
        };
        v1::StreamReply { id: request.id, answer: Some(answer) }
    }
}

#[tonic::async_trait]
impl Sequence for Service {
    type StreamStream = Replies;

    async fn stream(
        &self,
        requests: Request<Streaming<v1::StreamRequest>>,
    ) -> Result<Response<Replies>, Status> {
        let service = self.clone();
        let replies = requests.into_inner().then(move |request| {
            let service = service.clone();
            async move { Ok(service.answer(request?).await) }
        });
        Ok(Response::new(Box::pin(replies)))
    }

    async fn next(&self, _: Request<v1::NextRequest>) -> Result<Response<v1::NextReply>, Status> {
        unary()
    }

    async fn next_each(
        &self,
        _: Request<v1::NextEachRequest>,
    ) -> Result<Response<v1::NextEachReply>, Status> {
        unary()
    }

    async fn current(&self, _: Request<v1::CurrentRequest>) -> Result<Response<v1::CurrentReply>, Status> {
        unary()
    }

    async fn advance(&self, _: Request<v1::AdvanceRequest>) -> Result<Response<v1::AdvanceReply>, Status> {
        unary()
    }

    async fn route(&self, _: Request<v1::RouteRequest>) -> Result<Response<v1::Table>, Status> {
        unary()
    }
}

fn unary<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("the client streams"))
}
