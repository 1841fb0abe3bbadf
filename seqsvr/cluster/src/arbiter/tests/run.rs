//! The role itself: the shell over tables in memory, probing servers on the loopback, told what to do through its Admin
//! service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use super::super::admin::AdminService;
use super::super::core::{Arbiter, ArbiterRules, Seed};
use super::super::health::HealthRules;
use super::super::plan::{Balance, Policy};
use super::super::probe::Prober;
use super::super::run::{Handle, Shell};
use seqsvr_core::routing::Table;
use seqsvr_core::store::Memory;
use seqsvr_core::store::tables::{Revisions, RoutingTableStore};
use seqsvr_rpc::connections::{ConnectionLimiter, ConnectionsConfig};
use seqsvr_rpc::grpc_server::{GrpcServer, bind, serve_metrics};
use seqsvr_rpc::security::{Call, CallConfig, Listen, ListenConfig};
use seqsvr_rpc::v1::admin_client::AdminClient;
use seqsvr_rpc::v1::admin_server::AdminServer;
use seqsvr_rpc::v1::allocator_server::{Allocator, AllocatorServer};
use seqsvr_rpc::v1::{self, ChangeRequest, ProbeReply, ProbeRequest, change_reply, change_request};

const SIZE: u32 = 10_000;

/// Answers probes, as a process that serves would.
struct Answering {
    name: String,
    alive: Arc<AtomicBool>,
}

#[tonic::async_trait]
impl Allocator for Answering {
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeReply>, Status> {
        if !self.alive.load(Ordering::SeqCst) {
            return Err(Status::unavailable("it is dead"));
        }
        let node = self.name.clone();
        Ok(Response::new(ProbeReply { node, incarnation: 7, ..ProbeReply::default() }))
    }
}

struct Process {
    addr: SocketAddr,
    alive: Arc<AtomicBool>,
}

async fn process(name: &str) -> Process {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let alive = Arc::new(AtomicBool::new(true));
    let service = AllocatorServer::new(Answering { name: name.to_owned(), alive: Arc::clone(&alive) });
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let served = Server::builder().add_service(service).serve_with_incoming(incoming);
    tokio::spawn(async move { served.await.unwrap() });
    Process { addr, alive }
}

fn url(addr: SocketAddr) -> String {
    format!("http://{addr}")
}

fn rules(number: u8, nodes: &[&Process]) -> ArbiterRules {
    let nodes = nodes.iter().enumerate().map(|(index, one)| (format!("n{index}"), url(one.addr)));
    ArbiterRules {
        number,
        takeover: Duration::from_millis(400),
        retry: Duration::from_millis(10),
        probe_every: Duration::from_millis(20),
        health: HealthRules { back_after: 5, ..HealthRules::default() },
        policy: Policy::Spread(Balance::default()),
        seed: Seed { set: 1, uids: 0..=30 * SIZE - 1, section_size: SIZE, nodes: nodes.collect() },
    }
}

struct RunningArbiter {
    handle: Handle,
    admin: AdminClient<Channel>,
    _stop: DropGuard,
}

async fn arbiter(rules: ArbiterRules, tables: &Arc<Memory>) -> RunningArbiter {
    let call = Call::load(&CallConfig::default()).unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let guards = Listen::load(&ListenConfig::default(), listen, true).unwrap();
    let set = rules.seed.set;
    let prober = Prober::new(call.clone(), set, Duration::from_millis(500));
    let tables = Arc::clone(tables) as Arc<dyn RoutingTableStore>;
    let (shell, handle) = Shell::new(Arbiter::new(rules), tables, prober);
    let server = GrpcServer::open(listen, &guards, ConnectionsConfig::default()).await.unwrap();
    let endpoint = call.endpoint(&url(server.address().unwrap())).unwrap();
    let server = server.with(AdminServer::new(AdminService::new(handle.clone(), set, call)));
    let stop = CancellationToken::new();
    tokio::spawn(server.serve(stop.clone()));
    tokio::spawn(shell.run(stop.clone()));
    RunningArbiter { handle, admin: AdminClient::new(endpoint.connect_lazy()), _stop: stop.drop_guard() }
}

impl RunningArbiter {
    async fn change(&mut self, change: change_request::Change) -> change_reply::Outcome {
        let request = ChangeRequest { set: 1, force: false, change: Some(change) };
        self.admin.change(request).await.unwrap().into_inner().outcome.unwrap()
    }

    async fn acts(&self) {
        let mut view = self.handle.view();
        let acting = view.wait_for(|view| view.acting.is_some());
        timeout(Duration::from_secs(10), acting).await.expect("in time").unwrap();
    }
}

/// Waits for a table in which the nodes have these numbers of sections.
async fn sections(tables: &Memory, wanted: &[u32]) -> Arc<Table> {
    let seen = async {
        let mut revisions = Revisions::default();
        loop {
            let reading = tables.read(&revisions, Duration::from_secs(1)).await.unwrap();
            revisions = reading.revisions;
            let Some(table) = reading.table else { continue };
            let count = |name: String| -> u32 {
                table.of(&name).map(|one| one.sections.end().get() - one.sections.start().get() + 1).sum()
            };
            if (0..).zip(wanted).all(|(index, &wanted)| count(format!("n{index}")) == wanted) {
                return table;
            }
        }
    };
    timeout(Duration::from_secs(10), seen).await.expect("the table comes in time")
}

fn drain(node: &str) -> change_request::Change {
    change_request::Change::Drain(node.to_owned())
}

#[tokio::test]
async fn the_role_spreads_notices_a_death_and_carries_out_what_operators_ask() {
    let (zero, one, two) = (process("n0").await, process("n1").await, process("n2").await);
    let tables = Arc::new(Memory::default());
    let mut acting = arbiter(rules(0, &[&zero, &one, &two]), &tables).await;
    sections(&tables, &[10, 10, 10]).await;

    let drained = acting.change(drain("n2")).await;
    let table = sections(&tables, &[15, 15, 0]).await;
    assert_eq!(drained, change_reply::Outcome::Done(v1::Table::from(&*table)));
    let node = v1::Node { name: "n2".to_owned(), addr: url(two.addr), ..v1::Node::default() };
    acting.change(change_request::Change::Add(node)).await;
    sections(&tables, &[10, 10, 10]).await;

    one.alive.store(false, Ordering::SeqCst);
    sections(&tables, &[15, 0, 15]).await;
}

#[tokio::test]
async fn an_answer_under_another_name_is_none() {
    let (zero, other) = (process("n0").await, process("n9").await);
    let tables = Arc::new(Memory::default());
    let _acting = arbiter(rules(0, &[&zero, &other]), &tables).await;
    sections(&tables, &[30, 0]).await;
}

#[tokio::test]
async fn a_standby_says_who_acts_and_takes_over_when_it_is_gone() {
    let zero = process("n0").await;
    let tables = Arc::new(Memory::default());
    let first = arbiter(rules(0, &[&zero]), &tables).await;
    first.acts().await;
    let table = sections(&tables, &[30]).await;
    let mut second = arbiter(rules(1, &[&zero]), &tables).await;
    let answered = timeout(Duration::from_secs(10), async {
        loop {
            match second.change(change_request::Change::Rebalance(v1::Rebalance {})).await {
                change_reply::Outcome::NotActing(v1::NotActing { term: 0 }) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    });
    let who = v1::NotActing { term: table.version.term };
    assert_eq!(answered.await.expect("in time"), change_reply::Outcome::NotActing(who));
    drop(first);
    second.acts().await;
    let done = second.change(change_request::Change::Rebalance(v1::Rebalance {})).await;
    assert!(matches!(done, change_reply::Outcome::Done(_)));
}

#[tokio::test]
async fn wrong_changes_are_refused_over_the_wire() {
    let zero = process("n0").await;
    let tables = Arc::new(Memory::default());
    let mut acting = arbiter(rules(0, &[&zero]), &tables).await;
    sections(&tables, &[30]).await;
    let far =
        v1::Node { name: "n1".to_owned(), addr: "http://192.0.2.1:1".to_owned(), ..v1::Node::default() };
    let at = |addr: String| v1::Node { name: "n1".to_owned(), addr, ..v1::Node::default() };
    let (gone, misnamed) = (at("http://127.0.0.1:1".to_owned()), at(url(zero.addr)));
    let wrong = [
        (drain("n7"), "there is no node n7"),
        (drain("n0"), "no other node is live"),
        (change_request::Change::Add(far), "not a loopback address"),
        (change_request::Change::Add(gone.clone()), "n1 does not answer at http://127.0.0.1:1 ("),
        (change_request::Change::Add(misnamed), "is called n0, not n1; correct one of them"),
        (change_request::Change::Remove("n0".to_owned()), "n0 still serves 30 sections"),
    ];
    for (change, reported) in wrong {
        let outcome = acting.change(change).await;
        assert!(
            matches!(&outcome, change_reply::Outcome::Refused(line) if line.contains(reported)),
            "{outcome:?}"
        );
    }
    let forced = ChangeRequest { set: 1, force: true, change: Some(change_request::Change::Add(gone)) };
    let outcome = acting.admin.change(forced).await.unwrap().into_inner().outcome;
    assert!(matches!(outcome, Some(change_reply::Outcome::Done(_))), "{outcome:?}");
    let other = ChangeRequest { set: 2, force: false, change: Some(drain("n0")) };
    let outcome = acting.admin.change(other).await.unwrap().into_inner().outcome;
    assert_eq!(outcome, Some(change_reply::Outcome::Refused("this arbiter is of Set 1, not 2".to_owned())));
}

#[tokio::test]
async fn the_page_with_metrics_tells_who_has_what() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let zero = process("n0").await;
    let tables = Arc::new(Memory::default());
    let acting = arbiter(rules(0, &[&zero]), &tables).await;
    let mut view = acting.handle.view();
    let page = |text: &str| text.contains("seqsvr_arbiter_sections{node=\"n0\"} 30");
    let shown = view.wait_for(|view| page(&view.render(&[])));
    timeout(Duration::from_secs(10), shown).await.expect("in time").unwrap();

    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let mut caller = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let stop = CancellationToken::new();
    let view = acting.handle.view();
    let served = tokio::spawn(serve_metrics(
        listener,
        ConnectionLimiter::new(ConnectionsConfig::default()),
        move || view.borrow().render(&[]),
        stop.clone(),
    ));
    caller.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    caller.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && page(&text), "{text}");
    for line in [
        "seqsvr_arbiter_acting 1",
        "seqsvr_arbiter_term 256",
        "seqsvr_arbiter_nodes_live 1",
        "seqsvr_arbiter_sections_unserved 0",
        "seqsvr_connections 0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    stop.cancel();
    served.await.unwrap().unwrap();
}
