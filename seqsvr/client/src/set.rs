//! The calls of one Set: picks the process to ask from the routing table, asks, and asks again elsewhere or later until
//! the caller's deadline (S9, S12). For a section in trouble one call asks again on behalf of all (`retry`). Owns the
//! connections of the Set; nothing here is shared with other Sets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::config::{Policy, SetConfig};
use super::error::{AttemptError, CallError, EachError};
use super::locked;
use super::metrics::{Counters, add};
use super::outbox::{Answered, CallRequest};
use super::peer::{Health, Peer, Surroundings};
use super::retry::{Budget, Gate, RetryPace, Trouble};
use super::route_cache::RouteCache;
use super::seen::SeenNumbers;
use super::split;
use crate::cache::Cache;
use seqsvr_core::ids::{Granted, SectionId, Uid};
use seqsvr_core::routing::{Order, Table};
use seqsvr_rpc::security::Call;

/// Uids whose newest number is remembered, to notice a cluster that goes back: 16 bytes each.
const REMEMBERED_UIDS: usize = 262_144;

/// Retries in a second, for all sections together.
const RETRIES_PER_SECOND: u32 = 10_000;

/// When a call ends, and how long it will have been.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) patience: Duration,
}

pub(super) struct SetClient {
    around: Surroundings,
    seeds: Vec<String>,
    arbiters: Vec<String>,
    policy: Policy,
    view: RwLock<Arc<SetView>>,
    /// The connections, by address.
    peers: Mutex<BTreeMap<String, Arc<Peer>>>,
    trouble: Trouble,
    budget: Mutex<Budget>,
    /// Where the next random pick starts.
    turn: AtomicUsize,
}

/// A table with the connections to its processes.
struct SetView {
    changes: u64,
    table: Option<Arc<Table>>,
    /// By the table's index of nodes; without a table, the configured ones.
    peers: Vec<Arc<Peer>>,
}

impl SetClient {
    pub(super) fn new(
        config: &SetConfig,
        cache: Option<Cache>,
        answer: Duration,
        counters: &Arc<Counters>,
        call: &Arc<Call>,
    ) -> Self {
        let routes = Arc::new(RouteCache::new(config.number, config.uids(), Arc::clone(counters), cache));
        let seen = Arc::new(Mutex::new(SeenNumbers::new(REMEMBERED_UIDS)));
        let around =
            Surroundings { routes, seen, counters: Arc::clone(counters), answer, call: Arc::clone(call) };
        let view = SetView { changes: u64::MAX, table: None, peers: Vec::new() };
        Self {
            around,
            seeds: config.allocators.clone(),
            arbiters: config.arbiters.clone(),
            policy: config.policy,
            view: RwLock::new(Arc::new(view)),
            peers: Mutex::default(),
            trouble: Trouble::default(),
            budget: Mutex::new(Budget::new(RETRIES_PER_SECOND)),
            turn: AtomicUsize::new(rand::random_range(0..1 << 16)),
        }
    }

    /// Its number.
    pub(super) fn number(&self) -> u32 {
        self.around.routes.set()
    }

    /// The AllocSvrs that the configuration names.
    pub(super) fn seeds(&self) -> &[String] {
        &self.seeds
    }

    /// The arbiters that the configuration names.
    pub(super) fn arbiters(&self) -> &[String] {
        &self.arbiters
    }

    /// How to call.
    pub(super) fn call(&self) -> &Call {
        &self.around.call
    }

    /// The newest table.
    pub(super) fn table(&self) -> Option<Arc<Table>> {
        self.around.routes.table().1
    }

    /// Takes `count` numbers for `uid`.
    pub(super) async fn next(&self, uid: u32, count: u32, deadline: Deadline) -> Result<Granted, CallError> {
        granted(self.insist(uid, CallRequest::Next { uid, count }, deadline).await?)
    }

    /// Makes everything handed out for `uid` from now on larger than `at_least`.
    pub(super) async fn advance(&self, uid: u32, at_least: u64, deadline: Deadline) -> Result<(), CallError> {
        self.insist(uid, CallRequest::Advance { uid, at_least }, deadline).await.map(drop)
    }

    /// Asks for one number or bound for each uid, which `make` turns into a question: one frame to each process at first.
    pub(super) async fn many(
        &self,
        uids: Vec<u32>,
        make: fn(Arc<[u32]>) -> CallRequest,
        deadline: Deadline,
    ) -> Result<Vec<u64>, EachError> {
        let view = self.view();
        let first = view.owner_index(uids[0]);
        if !self.trouble.any() && uids.iter().all(|&uid| view.owner_index(uid) == first) {
            return self.part(uids, make, deadline).await;
        }
        let key = |uid| {
            let place = self.place(uid);
            (view.owner_index(uid), self.trouble.gate(place).is_some().then_some(place))
        };
        split::ask(&uids, split::by(&uids, key), |_, part| self.part(part, make, deadline)).await
    }

    /// Asks one process at first; then for each section by itself, so that one that is not served holds up no other; and for each
    /// uid by itself where the line of one has ended.
    async fn part(
        &self,
        uids: Vec<u32>,
        make: fn(Arc<[u32]>) -> CallRequest,
        deadline: Deadline,
    ) -> Result<Vec<u64>, EachError> {
        let uids: Arc<[u32]> = uids.into();
        if self.trouble.gate(self.place(uids[0])).is_none() {
            let peer = self.pick(uids[0], 0);
            match self.first(peer.ask(make(Arc::clone(&uids))), deadline).await {
                Ok(answered) => return numbers(answered).map_err(|error| EachError::all(uids.len(), error)),
                Err(fault) => match fault.lasting() {
                    None => self.note(&uids, fault),
                    Some(CallError::Exhausted { .. }) => add(&self.around.counters.retries, 1),
                    Some(error) => return Err(EachError::all(uids.len(), error)),
                },
            }
        }
        let ask = async |uids: Vec<u32>| {
            let (uid, count) = (uids[0], uids.len());
            let answered = self.insist(uid, make(uids.into()), deadline).await;
            answered.and_then(numbers).map_err(|error| EachError::all(count, error))
        };
        let sections = split::by(&uids, |uid| self.place(uid));
        split::ask(&uids, sections, async |_, section: Vec<u32>| match ask(section.clone()).await {
            Err(EachError { first: CallError::Exhausted { .. }, .. }) if section.len() > 1 => {
                split::ask(&section, split::by(&section, |uid| uid), async |_, one| ask(one).await).await
            }
            answered => answered,
        })
        .await
    }

    /// One first attempt. It needs no timer of its own unless the caller has less time than an answer may take.
    async fn first<T>(
        &self,
        asked: impl Future<Output = Result<T, AttemptError>>,
        deadline: Deadline,
    ) -> Result<T, AttemptError> {
        if deadline.patience >= self.around.answer {
            return asked.await;
        }
        timeout_at(deadline.at, asked).await.unwrap_or_else(|_| Err(late()))
    }

    /// A question about these uids failed. Which of their sections is meant is not known, unless they are all of one.
    fn note(&self, uids: &[u32], fault: AttemptError) {
        add(&self.around.counters.retries, 1);
        let sections = split::by(uids, |uid| self.place(uid));
        let fault = if sections.len() == 1 { fault } else { fault.of_somebody() };
        for &section in sections.keys() {
            self.trouble.note(section, || {
                let now = Instant::now();
                let mut pace = RetryPace::new(now);
                // The first call that asks again goes by the newest table.
                pace.failed(now, fault.clone(), matches!(fault, AttemptError::NotOwner), rand::random());
                pace
            });
        }
    }

    /// Asks about uids of one section until there is an answer, it is refused for good, or the deadline comes.
    async fn insist(&self, uid: u32, ask: CallRequest, deadline: Deadline) -> Result<Answered, CallError> {
        let place = self.place(uid);
        let mut waited = false;
        loop {
            if let Some(gate) = self.trouble.gate(place) {
                match timeout_at(deadline.at, gate.turn()).await {
                    Ok(Some(_turn)) => return self.again(uid, ask, &gate, deadline).await,
                    Ok(None) => waited = true,
                    Err(_) => return Err(CallError::late(deadline.patience, gate.why())),
                }
            }
            let peer = self.pick(uid, 0);
            let asked = put(&peer, ask.clone(), true);
            let answered = match waited {
                false => self.first(asked, deadline).await,
                true => timeout_at(deadline.at, asked).await.unwrap_or_else(|_| Err(late())),
            };
            let fault = match answered {
                Ok(answered) => return Ok(answered),
                Err(fault) => fault,
            };
            if let Some(error) = fault.lasting() {
                return Err(error);
            }
            // Numbers for one uid share their frame with others.
            let fault = if ask.is_single() { fault.of_somebody() } else { fault };
            self.note(&[uid], fault.answered_by(peer.addr()));
        }
    }

    /// Asks again about a section in trouble, on behalf of all waiting calls.
    async fn again(
        &self,
        uid: u32,
        ask: CallRequest,
        gate: &Arc<Gate>,
        deadline: Deadline,
    ) -> Result<Answered, CallError> {
        let late = |why| Err(CallError::late(deadline.patience, why));
        loop {
            let (next, elsewhere, attempt) = {
                let pace = locked(&gate.pace);
                (pace.next().max(Instant::now()), pace.elsewhere, pace.attempt)
            };
            let Some(next) = locked(&self.budget).take(next, deadline.at) else {
                sleep_until(deadline.at).await;
                return late(gate.why());
            };
            sleep_until(next).await;
            let changes = self.around.routes.changes();
            let peer = if elsewhere { self.other(uid, attempt) } else { self.pick(uid, attempt) };
            match timeout_at(deadline.at, put(&peer, ask.clone(), false)).await {
                Ok(Ok(answered)) => {
                    self.trouble.open(gate);
                    return Ok(answered);
                }
                Ok(Err(fault)) => {
                    if let Some(error) = fault.lasting() {
                        // It is served: what is wrong is this question.
                        self.trouble.open(gate);
                        return Err(error);
                    }
                    add(&self.around.counters.retries, 1);
                    let newer = self.around.routes.changes() != changes;
                    let mut pace = locked(&gate.pace);
                    pace.attempt += 1;
                    pace.failed(Instant::now(), fault.answered_by(peer.addr()), newer, rand::random());
                }
                Err(_) => {
                    let mut pace = locked(&gate.pace);
                    let why = match pace.why() {
                        AttemptError::NotOwner => format!("no answer came for uid {uid}"),
                        reported => reported.to_string(),
                    };
                    // The next call that asks keeps to the pause.
                    pace.attempt += 1;
                    pace.failed(Instant::now(), AttemptError::NotOwner, false, rand::random());
                    return late(why);
                }
            }
        }
    }

    /// The section of `uid`; before there is a table, all are one.
    fn place(&self, uid: u32) -> SectionId {
        let view = self.view();
        view.table.as_ref().map_or(SectionId::new(0), |table| table.section(Uid::new(uid)))
    }

    /// The process that serves `uid`, if it answers; else another that may know the owner.
    fn pick(&self, uid: u32, attempt: usize) -> Arc<Peer> {
        let view = self.view();
        let owner = view.owner_index(uid).map(|index| &view.peers[index]);
        match owner {
            Some(owner) if matches!(owner.health(), Health::Up | Health::Fresh) => Arc::clone(owner),
            _ => self.other(uid, attempt),
        }
    }

    /// A process other than the owner of `uid`: one that answers if there is any. The policy decides which comes first, and each attempt
    /// begins one further.
    fn other(&self, uid: u32, attempt: usize) -> Arc<Peer> {
        let view = self.view();
        let owner = view.owner_index(uid);
        let mut order = self.order(&view, uid);
        if let Some(after) = order.iter().position(|&index| Some(index) == owner) {
            order.rotate_left(after);
            order.remove(0);
        }
        if !order.is_empty() {
            let turn = attempt % order.len();
            order.rotate_left(turn);
        }
        let best = order.into_iter().min_by_key(|&index| view.peers[index].health() as u8);
        match best.map(|index| &view.peers[index]) {
            Some(best) if best.health() != Health::Down => Arc::clone(best),
            // All that the table names are gone: perhaps the configured ones are not.
            _ => self.peer(&self.seeds[attempt % self.seeds.len()]),
        }
    }

    /// The indexes of all processes, in the order in which they may know most about `uid`.
    fn order(&self, view: &SetView, uid: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..view.peers.len()).collect();
        match (self.policy, &view.table) {
            (Policy::Spread, _) => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) % order.len().max(1);
                order.rotate_left(turn);
            }
            (Policy::StandbyByHash, Some(table)) => {
                let names: Vec<&str> = table.nodes.iter().map(|node| node.name.as_str()).collect();
                order = Order::Hash.of(Order::slice(&table.sections(), table.section(Uid::new(uid))), &names);
            }
            (Policy::Standby, Some(table)) => {
                let listed =
                    |&index: &usize| self.seeds.iter().position(|seed| *seed == table.nodes[index].addr);
                order.sort_by_key(|index| listed(index).unwrap_or(usize::MAX));
            }
            // Without a table they are in the order of the configuration.
            (Policy::Standby | Policy::StandbyByHash, None) => {}
        }
        order
    }

    fn peer(&self, addr: &str) -> Arc<Peer> {
        let mut peers = locked(&self.peers);
        let dial = || Peer::dial(addr, self.around.clone());
        Arc::clone(peers.entry(addr.to_owned()).or_insert_with(dial))
    }

    /// The connections for the newest table; made anew when there is a newer one.
    fn view(&self) -> Arc<SetView> {
        let view = Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner));
        if view.changes == self.around.routes.changes() {
            return view;
        }
        let mut newest = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let (changes, table) = self.around.routes.table();
        if newest.changes != changes {
            let addrs: Vec<&str> = match &table {
                Some(table) => table.nodes.iter().map(|node| node.addr.as_str()).collect(),
                None => self.seeds.iter().map(String::as_str).collect(),
            };
            let peers = addrs.iter().map(|addr| self.peer(addr)).collect();
            locked(&self.peers).retain(|addr, _| addrs.contains(&addr.as_str()));
            *newest = Arc::new(SetView { changes, table, peers });
        }
        Arc::clone(&newest)
    }
}

impl SetView {
    /// The index of the process that serves `uid`.
    fn owner_index(&self, uid: u32) -> Option<usize> {
        let table = self.table.as_ref()?;
        let owner = table.owner(table.section(Uid::new(uid)))?;
        Some(owner.node as usize)
    }
}

/// Asks `peer`: a number for one uid in a frame with others if it may share one.
async fn put(peer: &Peer, ask: CallRequest, shared: bool) -> Result<Answered, AttemptError> {
    match ask {
        CallRequest::Next { uid, count: 1 } if shared => peer.single(uid).await.map(Answered::Granted),
        ask => peer.ask(ask).await,
    }
}

fn late() -> AttemptError {
    AttemptError::Lost { addr: "the cluster".into(), why: "no answer came in time".into() }
}

fn wrong_answer() -> CallError {
    CallError::Refused("the answer does not match the request".to_owned())
}

fn granted(answered: Answered) -> Result<Granted, CallError> {
    match answered {
        Answered::Granted(granted) => Ok(granted),
        _ => Err(wrong_answer()),
    }
}

fn numbers(answered: Answered) -> Result<Vec<u64>, CallError> {
    match answered {
        Answered::Numbers(numbers) => Ok(numbers),
        _ => Err(wrong_answer()),
    }
}
