//! The quorum's rounds, carried out over the simulated network instead of over gRPC: each AllocSvr and each arbiter has one.
//! The rounds are the real ones; this shell sends their questions and gives up on each after the same patience.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Place;
use super::message::{Packet, Tick};
use super::world::Cx;
use crate::clock::Moment;
use crate::flaws::Flaws;
use crate::ids::SectionId;
use crate::replica::{Answer, Question};
use crate::routing::Table;
use crate::store::quorum::Sizes;
use crate::store::quorum::rounds::{
    ActingRound, Ask, ClaimRound, PromiseRound, RaiseRound, ReadRound, ReleaseRound, Round, Standing, Step,
    Timed, WriteRound, waiting,
};
use crate::store::tables::{Mark, Reading, WriteError};
use crate::store::{Ceiling, Claimed, Layout, Owner, RaiseError, StoreError};

/// What a call came to.
pub(crate) enum Outcome {
    Read { asked: Moment, outcome: Result<Reading, StoreError> },
    Claim { standing: Arc<Standing>, outcome: Result<Claimed, StoreError> },
    Raise { owner: Owner, targets: Vec<Ceiling>, outcomes: Vec<Result<u64, RaiseError>> },
    Release { owner: Owner, outcome: Result<(), StoreError> },
    Promise { term: u64, outcome: Result<Option<Arc<Table>>, WriteError> },
    Write { table: Arc<Table>, outcome: Result<(), WriteError> },
    Acting { outcome: Result<u64, StoreError> },
}

/// A call under way: takes what a replica answered.
type Call = Box<dyn FnMut(Moment, usize, Result<Answer, String>) -> Step<Outcome>>;

/// How one process calls the quorum.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) replicas: Vec<Place>,
    pub(crate) sizes: Sizes,
    pub(crate) layout: Layout,
    /// How long a question may take, beside its own wait.
    pub(crate) patience: Duration,
    pub(crate) flaws: Flaws,
}

/// See the module.
pub(crate) struct Quorum {
    access: Access,
    next: u64,
    /// The claims that stand.
    claims: Vec<Arc<Standing>>,
    calls: BTreeMap<u64, Call>,
    /// Questions that are out: of which call, to which replica.
    out: BTreeMap<u64, (u64, usize)>,
}

impl Quorum {
    pub(crate) fn new(access: Access, first: u64) -> Self {
        Self { access, next: first, claims: Vec::new(), calls: BTreeMap::new(), out: BTreeMap::new() }
    }

    pub(crate) fn read(&mut self, cx: &mut Cx<'_>, mark: &Mark, wait: Duration) {
        let wait = waiting(wait, self.access.patience);
        let round = ReadRound::new(mark, wait, self.access.sizes, self.access.flaws);
        let asked = cx.now;
        self.start(cx, round, move |outcome| Outcome::Read { asked, outcome });
    }

    pub(crate) fn claim(&mut self, cx: &mut Cx<'_>, sections: Vec<RangeInclusive<SectionId>>, owner: Owner) {
        let layout = self.access.layout;
        let question = Question::Claim { sections: sections.clone(), owner, layout };
        let round = ClaimRound::new(question, self.access.sizes, self.access.flaws);
        let standing = Standing { owner, layout, sections };
        self.start(cx, round, move |outcome| Outcome::Claim { standing: Arc::new(standing), outcome });
    }

    pub(crate) fn raise(&mut self, cx: &mut Cx<'_>, owner: Owner, targets: Vec<Ceiling>) {
        let standing = self.claims.iter().rfind(|one| one.owner == owner).cloned();
        let round = RaiseRound::new(owner, standing, targets.clone(), self.access.sizes);
        self.start(cx, round, move |outcomes| Outcome::Raise { owner, targets, outcomes });
    }

    pub(crate) fn release(
        &mut self,
        cx: &mut Cx<'_>,
        sections: Vec<RangeInclusive<SectionId>>,
        owner: Owner,
    ) {
        let round = ReleaseRound::new(Question::Release { owner, sections }, self.access.sizes);
        self.start(cx, round, move |outcome| Outcome::Release { owner, outcome });
    }

    pub(crate) fn promise(&mut self, cx: &mut Cx<'_>, term: u64) {
        let round = PromiseRound::new(term, self.access.sizes);
        self.start(cx, round, move |outcome| Outcome::Promise { term, outcome });
    }

    pub(crate) fn write(&mut self, cx: &mut Cx<'_>, table: Arc<Table>) {
        let round = WriteRound::new(Arc::clone(&table), self.access.sizes);
        self.start(cx, round, move |outcome| Outcome::Write { table, outcome });
    }

    pub(crate) fn acting(&mut self, cx: &mut Cx<'_>, term: u64) {
        let round = ActingRound::new(term, self.access.sizes);
        self.start(cx, round, move |outcome| Outcome::Acting { outcome });
    }

    /// A replica's answer, or `None` when the patience is over. Answers to no question are dropped.
    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<Answer>) -> Option<Outcome> {
        let (number, from) = self.out.remove(&id)?;
        let call = self.calls.get_mut(&number)?;
        match call(cx.now, from, answer.ok_or_else(|| "no answer in time".to_owned())) {
            Step::Ask(asks) => {
                self.ask(cx, number, asks);
                None
            }
            Step::Done(outcome) => {
                self.calls.remove(&number);
                self.out.retain(|_, (call, _)| *call != number);
                if let Outcome::Claim { standing, outcome: Ok(_) } = &outcome {
                    let known = self.claims.iter().position(|one| one.owner == standing.owner);
                    let earlier = known.map(|index| self.claims.swap_remove(index));
                    self.claims.push(Arc::new(Standing::clone(standing).with(earlier.as_deref())));
                }
                Some(outcome)
            }
        }
    }

    fn start<R: Round + 'static>(
        &mut self,
        cx: &mut Cx<'_>,
        round: R,
        outcome: impl FnOnce(R::Outcome) -> Outcome + 'static,
    ) {
        let mut round = Timed::new(round, cx.now, self.access.patience, self.access.flaws);
        let asks = round.open();
        let mut finish = Some(outcome);
        let call = move |now, from, answer| match round.on(now, from, answer) {
            Step::Ask(asks) => Step::Ask(asks),
            Step::Done(done) => Step::Done(finish.take().expect("a round ends once")(done)),
        };
        let number = self.fresh();
        self.calls.insert(number, Box::new(call));
        self.ask(cx, number, asks);
    }

    fn ask(&mut self, cx: &mut Cx<'_>, number: u64, asks: Vec<Ask>) {
        for (replica, question) in asks {
            let id = self.fresh();
            let wait = if let Question::Read { wait, .. } = question { wait } else { Duration::ZERO };
            self.out.insert(id, (number, replica));
            cx.send(self.access.replicas[replica], Packet::Question { id, question });
            cx.tick(cx.now + wait + self.access.patience, Tick::Late(id));
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
