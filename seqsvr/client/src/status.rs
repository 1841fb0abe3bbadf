//! The state of a Set, for operators: which processes answer, which arbiter acts, how far each store is, which sections
//! nobody serves, and why.
//!
//! All processes are asked at the same time, with one deadline. A process that does not answer is reported as
//! unreachable. `judge` draws the conclusions without I/O.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::time::{Instant, timeout_at};

use super::error::CallError;
use super::set::SetClient;
use super::{Client, peer};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Node, NodeState, Table};
use seqsvr_rpc::v1::allocator_client::AllocatorClient;
use seqsvr_rpc::v1::monitor_client::MonitorClient;
use seqsvr_rpc::v1::sequence_client::SequenceClient;
use seqsvr_rpc::v1::{self, ProbeReply, ProbeRequest, StatusReply, StatusRequest};
use seqsvr_rpc::{store, text};

/// How long one process may take to answer; the whole takes at most twice that.
const ANSWER: Duration = Duration::from_secs(2);

/// How a Set is.
#[derive(Clone, Debug)]
pub struct SetStatus {
    /// Its number.
    pub set: u32,
    /// The newest table that anybody answered with.
    pub table: Option<Arc<Table>>,
    /// The configured arbiters.
    pub arbiters: Vec<ArbiterStatus>,
    /// The AllocSvrs of the table; without one, the configured ones.
    pub allocators: Vec<AllocatorStatus>,
    /// The stores, as the acting arbiter reaches them, or else another one.
    pub stores: Vec<v1::StoreHealth>,
    /// Which change of the stores is not complete, and what completes it; as that arbiter says.
    pub unfinished: Option<String>,
    /// The sections that nobody serves, in order.
    pub unserved: Vec<Unserved>,
}

/// One arbiter.
#[derive(Clone, Debug)]
pub struct ArbiterStatus {
    /// Its address.
    pub addr: String,
    /// Its answer, or why there is none.
    pub answer: Result<StatusReply, String>,
}

/// One AllocSvr.
#[derive(Clone, Debug)]
pub struct AllocatorStatus {
    /// Its name; empty while no table is known.
    pub name: String,
    /// Its address.
    pub addr: String,
    /// Whether it is given nothing until it is added again.
    pub drained: bool,
    /// How many sections the table gives to it.
    pub sections: u32,
    /// Its answer, or why there is none.
    pub answer: Result<ProbeReply, String>,
    /// The acting arbiter's opinion of it.
    pub trust: Option<v1::Trust>,
}

/// Sections that nobody serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The first and the last of them.
    pub sections: RangeInclusive<SectionId>,
    /// The node to which the table assigns them; empty: none.
    pub node: String,
    /// One line.
    pub why: String,
    /// For how long that has been so, where that is known.
    pub since: Option<Duration>,
}

impl AllocatorStatus {
    /// In a word or two: `serving`, `idle` (answers, and is given nothing), `drained`, `waiting` (does not serve all that it is given),
    /// `no lease`, `draining`, `restarted`, `unreachable`.
    pub fn state(&self) -> &'static str {
        match &self.answer {
            Err(_) if self.drained && self.sections == 0 => "drained, unreachable",
            Err(_) => "unreachable",
            Ok(_) if self.drained && self.sections == 0 => "drained",
            Ok(reply) if reply.lapsed => "no lease",
            Ok(reply) if reply.draining => "draining",
            Ok(_) if self.sections == 0 => "idle",
            Ok(reply) if reply.served + reply.unserved == 0 => "restarted",
            Ok(reply) if reply.unserved > 0 => "waiting",
            Ok(_) => "serving",
        }
    }
}

impl SetStatus {
    /// The arbiter that acts, and its term.
    pub fn acting(&self) -> Option<(&ArbiterStatus, u64)> {
        let acting = |one: &ArbiterStatus| one.answer.as_ref().map_or(0, |reply| reply.acting_term);
        let newest = self.arbiters.iter().max_by_key(|one| acting(one))?;
        (acting(newest) > 0).then(|| (newest, acting(newest)))
    }

    /// How many sections nobody serves. `None`: no table is known, so it may be all of them.
    pub fn unserved_sections(&self) -> Option<u64> {
        self.table.as_ref().map(|_| self.unserved.iter().map(|one| count(&one.sections)).sum())
    }
}

impl Client {
    /// How a Set is. It takes a few seconds at most, also when processes are silent.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a Set that is not configured.
    pub async fn status(&self, set: u32) -> Result<SetStatus, CallError> {
        let at = self.numbered(set)?;
        let end = || self.deadline().at.min(Instant::now() + ANSWER);
        let until = end();
        let arbiters = at.arbiters().iter().map(|addr| async move {
            let answer = asked(until, ask_arbiter(at, addr)).await;
            ArbiterStatus { addr: addr.clone(), answer }
        });
        let routes = at.seeds().iter().map(|addr| asked(until, ask_route(at, addr)));
        let (arbiters, routes) = join(join_all(arbiters), join_all(routes)).await;
        let answered = arbiters.iter().filter_map(|one| one.answer.as_ref().ok()?.table.clone());
        let answered = answered.filter_map(|table| Table::try_from(table).ok());
        let table = routes.into_iter().flatten().chain(answered).filter(|table| table.set == set);
        let table = table.max_by_key(|table| table.version).map(Arc::new);
        let allocators = self.probe_all(at, table.as_deref(), &arbiters, end()).await;
        let unserved = table.as_ref().map(|table| judge(table, &allocators)).unwrap_or_default();
        let mut status =
            SetStatus { set, table, arbiters, allocators, stores: Vec::new(), unfinished: None, unserved };
        let seen = status
            .acting()
            .map(|(one, _)| one)
            .or_else(|| status.arbiters.iter().find(|one| one.answer.is_ok()));
        let seen = seen.and_then(|one| one.answer.as_ref().ok().cloned()).unwrap_or_default();
        status.stores = seen.stores;
        status.unfinished = Some(seen.unfinished).filter(|line| !line.is_empty());
        Ok(status)
    }

    /// The AllocSvrs of `table`, each asked how it is.
    pub async fn allocators(&self, table: &Table) -> Result<Vec<AllocatorStatus>, CallError> {
        let at = self.numbered(table.set)?;
        Ok(self.probe_all(at, Some(table), &[], self.deadline().at.min(Instant::now() + ANSWER)).await)
    }

    async fn probe_all(
        &self,
        at: &SetClient,
        table: Option<&Table>,
        arbiters: &[ArbiterStatus],
        until: Instant,
    ) -> Vec<AllocatorStatus> {
        let acting = arbiters.iter().filter_map(|one| one.answer.as_ref().ok());
        let thought = acting.max_by_key(|reply| reply.acting_term).map_or(&[][..], |reply| &reply.nodes[..]);
        let unknown =
            |addr: &String| Node { name: String::new(), addr: addr.clone(), state: NodeState::Active };
        let nodes = match table {
            Some(table) => table.nodes.clone(),
            None => at.seeds().iter().map(unknown).collect(),
        };
        let probed = nodes.into_iter().map(|Node { name, addr, state }| async move {
            let answer = asked(until, probe(at, &addr)).await.and_then(|reply| {
                if name.is_empty() || reply.node == name {
                    return Ok(reply);
                }
                Err(format!("the process there is called {}", reply.node))
            });
            let runs = table.into_iter().flat_map(|table| table.of(&name));
            AllocatorStatus {
                drained: state == NodeState::Drained,
                sections: runs.map(|one| count(&one.sections) as u32).sum(),
                trust: thought.iter().find(|one| one.name == name).map(v1::NodeHealth::trust),
                name,
                addr,
                answer,
            }
        });
        join_all(probed).await
    }
}

/// The sections of `table` that nobody serves, by the answers of its AllocSvrs.
fn judge(table: &Table, allocators: &[AllocatorStatus]) -> Vec<Unserved> {
    let mut unserved: Vec<Unserved> = Vec::new();
    let mut next = u64::from(table.sections().start().get());
    let nobody = |from: u64, to: u64| {
        let sections = SectionId::new(from as u32)..=SectionId::new(to as u32);
        let why = "they are assigned to no AllocSvr: none was live".to_owned();
        (from <= to).then(|| Unserved { sections, node: String::new(), why, since: None })
    };
    for one in &table.assignments {
        let first = u64::from(one.sections.start().get());
        unserved.extend(first.checked_sub(1).and_then(|before| nobody(next, before)));
        next = u64::from(one.sections.end().get()) + 1;
        let node = &allocators[one.node as usize];
        let all = |why: String| {
            vec![Unserved { sections: one.sections.clone(), node: node.name.clone(), why, since: None }]
        };
        unserved.extend(match &node.answer {
            Err(why) => all(format!("{} does not answer ({why})", node.name)),
            Ok(reply) if reply.lapsed => {
                all(format!("{} has no lease: the stores do not answer it", node.name))
            }
            Ok(reply) if reply.incarnation != one.incarnation => {
                all(format!("{} was restarted; the arbiter has not assigned them to it again yet", node.name))
            }
            Ok(reply) if reply.version.map(Epoch::from).unwrap_or_default() < one.epoch => {
                all(format!("{} has not read the routing table that assigns them to it", node.name))
            }
            Ok(reply) => reply.waiting.iter().filter_map(|run| within(node, run, &one.sections)).collect(),
        });
    }
    unserved.extend(nobody(next, table.sections().end().get().into()));
    unserved
}

/// The part of what `node` does not serve that lies in `sections`.
fn within(
    node: &AllocatorStatus,
    waiting: &v1::UnservedSections,
    sections: &RangeInclusive<SectionId>,
) -> Option<Unserved> {
    let run = store::range(waiting.sections?).ok()?;
    let part = *run.start().max(sections.start())..=*run.end().min(sections.end());
    let since = Some(Duration::from_millis(waiting.given_ms_ago.into()));
    let name = node.name.clone();
    (!part.is_empty()).then(|| Unserved { sections: part, node: name, why: waiting.why.clone(), since })
}

async fn ask_arbiter(at: &SetClient, addr: &str) -> Result<StatusReply, String> {
    let channel = at.call().endpoint(addr).map_err(|error| text(&error))?;
    let channel = channel.connect().await.map_err(|error| text(&error))?;
    let monitor = MonitorClient::with_interceptor(channel, at.call().pass());
    let mut monitor = monitor.max_decoding_message_size(LARGEST);
    let asked = monitor.status(StatusRequest { set: at.number() }).await;
    asked.map(tonic::Response::into_inner).map_err(|status| peer::unanswered(addr, &status))
}

async fn ask_route(at: &SetClient, addr: &str) -> Result<Table, String> {
    let channel = at.call().endpoint(addr).map_err(|error| text(&error))?;
    let channel = channel.connect().await.map_err(|error| text(&error))?;
    let sequence = SequenceClient::with_interceptor(channel, at.call().pass());
    let mut sequence = sequence.max_decoding_message_size(LARGEST);
    let table = sequence.route(v1::RouteRequest { set: at.number() }).await;
    let table = table.map_err(|status| peer::unanswered(addr, &status))?;
    Table::try_from(table.into_inner()).map_err(|error| error.to_string())
}

async fn probe(at: &SetClient, addr: &str) -> Result<ProbeReply, String> {
    let channel = at.call().endpoint(addr).map_err(|error| text(&error))?;
    let channel = channel.connect().await.map_err(|error| text(&error))?;
    let mut allocator = AllocatorClient::with_interceptor(channel, at.call().pass());
    let asked = allocator.probe(ProbeRequest { set: at.number(), detail: true }).await;
    asked.map(tonic::Response::into_inner).map_err(|status| peer::unanswered(addr, &status))
}

/// The largest answer: the table of a Set in which every section is an assignment of its own.
const LARGEST: usize = 64 << 20;

async fn asked<T>(until: Instant, ask: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout_at(until, ask).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

fn count(sections: &RangeInclusive<SectionId>) -> u64 {
    u64::from(sections.end().get() - sections.start().get()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_core::routing::Assignment;

    const EPOCH: Epoch = Epoch { term: 1, version: 4 };

    fn runs(first: u32, last: u32) -> RangeInclusive<SectionId> {
        SectionId::new(first)..=SectionId::new(last)
    }

    fn table() -> Table {
        let node = |name: &str| Node { name: name.to_owned(), addr: String::new(), state: NodeState::Active };
        let one = |first, last, node| Assignment {
            sections: runs(first, last),
            node,
            home: node,
            incarnation: 7,
            epoch: EPOCH,
        };
        let table = Table {
            set: 0,
            version: EPOCH,
            section_size: 10_000,
            uids: 0..=999_999,
            nodes: vec![node("a"), node("b")],
            assignments: vec![one(0, 39, 0), one(50, 89, 1)],
        };
        table.check().expect("a good table");
        table
    }

    fn answering(name: &str, reply: ProbeReply) -> AllocatorStatus {
        let answer = Ok(ProbeReply { incarnation: 7, version: Some(EPOCH.into()), served: 40, ..reply });
        AllocatorStatus {
            name: name.to_owned(),
            addr: String::new(),
            drained: false,
            sections: 40,
            answer,
            trust: None,
        }
    }

    fn reported(b: AllocatorStatus) -> Vec<(u32, u32, String)> {
        let unserved = judge(&table(), &[answering("a", ProbeReply::default()), b]);
        let reported = |one: Unserved| (one.sections.start().get(), one.sections.end().get(), one.why);
        unserved.into_iter().map(reported).collect()
    }

    #[test]
    fn sections_of_nobody_are_unserved() {
        let nobody = "they are assigned to no AllocSvr: none was live".to_owned();
        assert_eq!(
            reported(answering("b", ProbeReply::default())),
            [(40, 49, nobody.clone()), (90, 99, nobody)]
        );
    }

    #[test]
    fn each_reason_of_an_owner_is_reported() {
        let killed =
            AllocatorStatus { answer: Err("refused".to_owned()), ..answering("b", ProbeReply::default()) };
        assert_eq!(killed.state(), "unreachable");
        let lapsed = answering("b", ProbeReply { lapsed: true, ..ProbeReply::default() });
        assert_eq!(lapsed.state(), "no lease");
        let mut restarted = answering("b", ProbeReply::default());
        restarted.answer = restarted.answer.map(|reply| ProbeReply { incarnation: 8, served: 0, ..reply });
        assert_eq!(restarted.state(), "restarted");
        let mut old = answering("b", ProbeReply::default());
        old.answer = old.answer.map(|reply| ProbeReply { version: None, ..reply });
        for (b, why) in [
            (killed, "b does not answer (refused)"),
            (lapsed, "b has no lease: the stores do not answer it"),
            (restarted, "b was restarted; the arbiter has not assigned them to it again yet"),
            (old, "b has not read the routing table that assigns them to it"),
        ] {
            assert_eq!(reported(b)[1], (50, 89, why.to_owned()));
        }
    }

    #[test]
    fn what_waits_is_reported_section_by_section() {
        let run = |first, last| v1::UnservedSections {
            sections: Some(v1::SectionRange { first, last }),
            given_ms_ago: 300,
            why: "the claim is in progress".to_owned(),
        };
        let reply =
            ProbeReply { unserved: 15, waiting: vec![run(45, 52), run(60, 65)], ..ProbeReply::default() };
        let waiting = answering("b", reply);
        assert_eq!(waiting.state(), "waiting");
        let why = "the claim is in progress".to_owned();
        assert_eq!(reported(waiting)[1..3], [(50, 52, why.clone()), (60, 65, why)]);
    }
}
