//! A StoreSvr: the real state and its rules over a simulated disk. As the real shell does, it changes memory at once, makes the
//! changes of a while durable together, and lets no answer leave before everything is durable that was written before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::chance::Chance;
use super::cx::Cx;
use super::disk::Disk;
use super::message::{Input, Packet, Tick};
use super::{MICRO, MILLI, Place};
pub(crate) use seqsvr_cluster::replica::state::{State, StateChange};
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Address, Configuration};

/// A record of the log.
#[derive(Clone, Debug)]
enum LogRecord {
    /// The first: what the replica begins with.
    Start(State),
    /// A change since.
    Change(StateChange),
}

/// See the module.
pub(crate) struct Replica {
    /// Its id among the members.
    id: u64,
    flaws: Flaws,
    disk: Disk<LogRecord>,
    life: Option<ReplicaLife>,
}

/// State that ends with the process.
struct ReplicaLife {
    state: State,
    /// Answers that wait for the disk: until so much is durable.
    leaving: Vec<(usize, Place, u64, Answer)>,
    /// Readers that wait for news.
    held: BTreeMap<u64, WaitingReader>,
    next: u64,
    syncing: bool,
}

/// A reader that waits.
struct WaitingReader {
    from: Place,
    id: u64,
    /// To whom it spoke.
    to: Option<Address>,
    /// Whether a release is news for it, or another table alone.
    releases: bool,
}

impl Replica {
    /// New: it votes in nothing yet.
    pub(crate) fn new(id: u64, flaws: Flaws) -> Self {
        let mut disk = Disk::default();
        disk.write(LogRecord::Start(State::restored(Copy::default(), 1, flaws).with_id(id)));
        disk.sync(1);
        Self { id, flaws, disk, life: None }
    }

    pub(crate) fn crash(&mut self, chance: &mut Chance) {
        self.life = None;
        self.disk.crash(chance);
    }

    /// The configuration that is on its disk.
    pub(crate) fn configuration(&self) -> Option<Arc<Configuration>> {
        self.stored().configured().current.clone()
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => self.start(),
            Input::Packet(from, Packet::Question { id, to, question }) => {
                self.question(cx, (from, id, to), &question);
            }
            Input::Tick(Tick::Synced(until)) => self.synced(cx, until as usize),
            Input::Tick(Tick::Held(number)) => self.let_go(cx, number),
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    fn start(&mut self) {
        let state = self.stored();
        self.life =
            Some(ReplicaLife { state, leaving: Vec::new(), held: BTreeMap::new(), next: 0, syncing: false });
    }

    fn stored(&self) -> State {
        let mut state = State::restored(Copy::default(), 1, self.flaws).with_id(self.id);
        for record in self.disk.read() {
            match record {
                LogRecord::Start(start) => state = start.clone(),
                LogRecord::Change(change) => state.apply(change),
            }
        }
        state
    }

    fn question(
        &mut self,
        cx: &mut Cx<'_>,
        (from, id, to): (Place, u64, Option<Address>),
        question: &Question,
    ) {
        let Some(life) = &mut self.life else { return };
        let revision = life.state.revision();
        let decision = life.state.call(cx.now, to, question);
        let is_table = matches!(decision.change, Some(StateChange::Write(_) | StateChange::Whole(_)));
        if let Some(change) = decision.change {
            self.disk.write(LogRecord::Change(change));
        }
        match (decision.answer, question) {
            (Some(answer), _) => life.leaving.push((self.disk.written(), from, id, answer)),
            (None, &Question::Read { wait, releases, .. }) => {
                life.next += 1;
                life.held.insert(life.next, WaitingReader { from, id, to, releases });
                cx.tick(cx.now + wait, Tick::Held(life.next));
            }
            (None, _) => {}
        }
        if life.state.revision() != revision {
            let wakes =
                |(number, reader): (&u64, &WaitingReader)| (is_table || reader.releases).then_some(*number);
            let held: Vec<u64> = life.held.iter().filter_map(wakes).collect();
            for number in held {
                self.let_go(cx, number);
            }
        }
        self.flush(cx);
    }

    /// Answers a reader that was kept waiting.
    fn let_go(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(life) = &mut self.life else { return };
        let Some(WaitingReader { from, id, to, .. }) = life.held.remove(&number) else { return };
        let question = Question::Read { revision: 0, wait: Duration::ZERO, releases: true };
        if let Some(answer) = life.state.call(cx.now, to, &question).answer {
            life.leaving.push((self.disk.written(), from, id, answer));
        }
        self.flush(cx);
    }

    fn synced(&mut self, cx: &mut Cx<'_>, until: usize) {
        self.disk.sync(until);
        if let Some(life) = &mut self.life {
            life.syncing = false;
        }
        self.flush(cx);
    }

    /// Lets out what may go, and syncs what must be durable for the rest.
    fn flush(&mut self, cx: &mut Cx<'_>) {
        let Some(life) = &mut self.life else { return };
        let ready = life.leaving.partition_point(|(needs, ..)| *needs <= self.disk.synced());
        for (_, to, id, answer) in life.leaving.drain(..ready) {
            cx.send(to, Packet::Answer { id, answer });
        }
        if !life.syncing && self.disk.written() > self.disk.synced() {
            life.syncing = true;
            let takes = if cx.chance.permille(20) { 60 * MILLI } else { 2 * MILLI };
            cx.tick_in(100 * MICRO..takes, Tick::Synced(self.disk.written() as u64));
        }
    }
}
