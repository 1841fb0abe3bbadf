//! The quorum's rounds, carried out over the simulated network instead of over gRPC: each AllocSvr and each arbiter has one.
//! The rounds are the real ones; this shell sends their questions and gives up on each after the same patience. As the real
//! one does, it asks the members of one configuration in a round, hears of a newer one, and tells those that slept.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Place;
use super::cx::Cx;
use super::message::{Packet, Tick};
use seqsvr_cluster::store::quorum::Tally;
pub(crate) use seqsvr_cluster::store::quorum::rounds::{
    ActingRound, Ask, ClaimRound, PromiseRound, RaiseRound, ReadRound, ReleaseRound, Round, StandingClaim,
    Step, WriteRound,
};
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::Table;
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::message::{Copy, Description};
use seqsvr_core::store::tables::{Reading, Revisions, WriteError};
use seqsvr_core::store::{
    Address, Ceiling, Claimed, Configuration, Layout, Member, Owner, RaiseError, StoreError,
};

/// The outcome of a call.
pub(crate) enum RoundOutcome {
    Read { asked: Moment, outcome: Result<Reading, StoreError> },
    Claim { standing: Arc<StandingClaim>, outcome: Result<Claimed, StoreError> },
    Raise { owner: Owner, targets: Vec<Ceiling>, outcomes: Vec<Result<u64, RaiseError>> },
    Release { owner: Owner, outcome: Result<(), StoreError> },
    Promise { term: u64, outcome: Result<Option<Arc<Table>>, WriteError> },
    Write { table: Arc<Table>, outcome: Result<(), WriteError> },
    Acting { outcome: Result<u64, StoreError> },
}

/// Takes what a replica answered.
type TakeAnswer = Box<dyn FnMut(usize, Result<Answer, String>) -> Step<RoundOutcome>>;

/// Between two attempts to learn of a configuration while none is known.
const LEARN: Duration = Duration::from_secs(1);

/// How one process calls the quorum.
#[derive(Clone)]
pub(crate) struct Access {
    /// The replicas that its file lists.
    pub(crate) replicas: Vec<Place>,
    pub(crate) sizes: Sizes,
    pub(crate) layout: Layout,
    /// How long a question may take, beside its own wait.
    pub(crate) patience: Duration,
    pub(crate) flaws: Flaws,
}

/// A call under way.
struct QuorumCall {
    take: TakeAnswer,
    /// By which its votes count.
    configuration: Option<Arc<Configuration>>,
    tally: Tally,
}

/// See the module.
pub(crate) struct Quorum {
    access: Access,
    next: u64,
    /// The configuration in use, once one is known.
    configuration: Option<Arc<Configuration>>,
    /// When the replicas of the file were asked for one.
    learned: Option<Moment>,
    /// The claims that stand.
    claims: Vec<Arc<StandingClaim>>,
    calls: BTreeMap<u64, QuorumCall>,
    /// Questions that are out: of which call, to which replica.
    out: BTreeMap<u64, (u64, usize)>,
}

/// Where a member is: its id says so.
pub(crate) fn place_of(member: u64) -> Place {
    member as Place - 1
}

/// The member that the replica at a place is.
pub(crate) fn member_at(place: Place) -> Member {
    let id = place as u64 + 1;
    Member { id, name: format!("s{id}"), addr: format!("http://s{id}:1") }
}

impl Quorum {
    pub(crate) fn new(access: Access, first: u64) -> Self {
        let (claims, calls, out) = Default::default();
        Self { access, next: first, configuration: None, learned: None, claims, calls, out }
    }

    /// The members of the configuration in use, once one is known.
    pub(crate) fn members(&self) -> Option<Vec<Place>> {
        self.configuration.as_ref().map(|one| one.members.iter().map(|member| place_of(member.id)).collect())
    }

    pub(crate) fn read(&mut self, cx: &mut Cx<'_>, revisions: &Revisions, wait: Duration) {
        let round = self.reading(revisions, wait);
        self.start_reading(cx, round);
    }

    /// The same for who waits for no release.
    pub(crate) fn read_table(&mut self, cx: &mut Cx<'_>, revisions: &Revisions, wait: Duration) {
        let round = self.reading(revisions, wait).of_the_table_only();
        self.start_reading(cx, round);
    }

    fn reading(&self, revisions: &Revisions, wait: Duration) -> ReadRound {
        ReadRound::new(revisions, wait, self.sizes(), self.access.flaws)
    }

    fn start_reading(&mut self, cx: &mut Cx<'_>, round: ReadRound) {
        let asked = cx.now;
        self.start(cx, round, move |outcome| RoundOutcome::Read { asked, outcome });
    }

    pub(crate) fn claim(&mut self, cx: &mut Cx<'_>, sections: Vec<RangeInclusive<SectionId>>, owner: Owner) {
        let layout = self.access.layout;
        let question = Question::Claim { sections: sections.clone(), owner, layout };
        let round = ClaimRound::new(question, self.sizes(), self.access.flaws);
        let standing = StandingClaim { owner, layout, sections };
        self.start(cx, round, move |outcome| RoundOutcome::Claim { standing: Arc::new(standing), outcome });
    }

    pub(crate) fn raise(&mut self, cx: &mut Cx<'_>, owner: Owner, targets: Vec<Ceiling>) {
        let standing = self.claims.iter().rfind(|one| one.owner == owner).cloned();
        let round = RaiseRound::new(owner, standing, targets.clone(), self.sizes());
        self.start(cx, round, move |outcomes| RoundOutcome::Raise { owner, targets, outcomes });
    }

    pub(crate) fn release(
        &mut self,
        cx: &mut Cx<'_>,
        sections: Vec<RangeInclusive<SectionId>>,
        owner: Owner,
    ) {
        let round = ReleaseRound::new(Question::Release { owner, sections }, self.sizes());
        self.start(cx, round, move |outcome| RoundOutcome::Release { owner, outcome });
    }

    pub(crate) fn promise(&mut self, cx: &mut Cx<'_>, term: u64) {
        let round = PromiseRound::new(term, self.sizes());
        self.start(cx, round, move |outcome| RoundOutcome::Promise { term, outcome });
    }

    pub(crate) fn write(&mut self, cx: &mut Cx<'_>, table: Arc<Table>) {
        let round = WriteRound::new(Arc::clone(&table), self.sizes());
        self.start(cx, round, move |outcome| RoundOutcome::Write { table, outcome });
    }

    pub(crate) fn acting(&mut self, cx: &mut Cx<'_>, term: u64) {
        let round = ActingRound::new(term, self.sizes());
        self.start(cx, round, move |outcome| RoundOutcome::Acting { outcome });
    }

    /// A replica's answer, or `None` when the patience is over. Answers to no question are dropped.
    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<Answer>) -> Option<RoundOutcome> {
        let Some((number, from)) = self.out.remove(&id) else {
            if let Some(Answer::Described(Description { configuration: Some(newer), .. })) = answer {
                self.follow(newer);
            }
            return None;
        };
        let call = self.calls.get_mut(&number)?;
        let answer = answer.ok_or_else(|| "no answer in time".to_owned());
        let answer = answer.and_then(|answer| call.tally.note(from, answer));
        match (call.take)(from, answer) {
            Step::Ask(asks) => {
                self.ask(cx, number, asks);
                None
            }
            Step::Done(mut outcome) => {
                let call = self.calls.remove(&number)?;
                if let RoundOutcome::Read { outcome: Ok(reading), .. } = &mut outcome {
                    reading.bounds = call.configuration.as_ref().map(|one| one.bounds());
                }
                self.out.retain(|_, (call, _)| *call != number);
                self.learned(cx, call);
                if let RoundOutcome::Claim { standing, outcome: Ok(_) } = &outcome {
                    let known = self.claims.iter().position(|one| one.owner == standing.owner);
                    let earlier = known.map(|index| self.claims.swap_remove(index));
                    self.claims.push(Arc::new(StandingClaim::clone(standing).with(earlier.as_deref())));
                }
                Some(outcome)
            }
        }
    }

    /// Uses the configurations that an ended call learned of: a newer one is followed, and a replica that missed the call's gets it
    /// once enough vote in that.
    fn learned(&mut self, cx: &mut Cx<'_>, QuorumCall { configuration, tally, .. }: QuorumCall) {
        let Tally { answered, behind, newer } = tally;
        if let Some(newer) = newer {
            return self.follow(newer);
        }
        let Some(current) = configuration.filter(|current| answered.len() >= current.write) else { return };
        for index in behind {
            let install = Question::Install { next: Arc::clone(&current), copy: Arc::<Copy>::default() };
            let (id, member) = (self.fresh(), current.members[index].id);
            let to = Some(Address { number: current.number, member });
            cx.send(place_of(member), Packet::Question { id, to, question: install });
        }
    }

    fn follow(&mut self, newer: Arc<Configuration>) {
        let known = self.configuration.as_ref().map_or(0, |known| known.number);
        if newer.number > known {
            self.configuration = Some(newer);
        }
    }

    fn sizes(&self) -> Sizes {
        let known = self.configuration.as_ref().and_then(|known| known.sizes().ok());
        known.unwrap_or(self.access.sizes)
    }

    /// While no configuration is known: asks the replicas of the file.
    fn learn(&mut self, cx: &mut Cx<'_>) {
        if self.configuration.is_some() || self.learned.is_some_and(|last| cx.now < last + LEARN) {
            return;
        }
        self.learned = Some(cx.now);
        for place in self.access.replicas.clone() {
            let id = self.fresh();
            cx.send(place, Packet::Question { id, to: None, question: Question::Describe });
        }
    }

    fn start<R: Round + 'static>(
        &mut self,
        cx: &mut Cx<'_>,
        mut round: R,
        outcome: impl FnOnce(R::Outcome) -> RoundOutcome + 'static,
    ) {
        self.learn(cx);
        let asks = round.open();
        let mut finish = Some(outcome);
        let take = move |from, answer| match round.on(from, answer) {
            Step::Ask(asks) => Step::Ask(asks),
            Step::Done(done) => Step::Done(finish.take().expect("a round ends once")(done)),
        };
        let number = self.fresh();
        let (configuration, tally) = (self.configuration.clone(), Tally::default());
        self.calls.insert(number, QuorumCall { take: Box::new(take), configuration, tally });
        self.ask(cx, number, asks);
    }

    fn ask(&mut self, cx: &mut Cx<'_>, number: u64, asks: Vec<Ask>) {
        let Some(call) = self.calls.get(&number) else { return };
        let configuration = call.configuration.clone();
        for (replica, question) in asks {
            let id = self.fresh();
            let wait = if let Question::Read { wait, .. } = question { wait } else { Duration::ZERO };
            self.out.insert(id, (number, replica));
            let (place, to) = match &configuration {
                Some(one) => {
                    let member = one.members[replica].id;
                    (place_of(member), Address { number: one.number, member })
                }
                None => (self.access.replicas[replica], Address::default()),
            };
            cx.send(place, Packet::Question { id, to: Some(to), question });
            cx.tick(cx.now + wait + self.access.patience, Tick::Late(id));
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
