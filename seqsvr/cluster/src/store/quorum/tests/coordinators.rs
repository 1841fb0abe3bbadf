//! Two coordinators change the configuration at once, and one may end at any moment: one replaces a store, the other
//! found the stores halted and completes that, or ends it by a next configuration that is the same. Over the pure rounds
//! and replicas, in any order.

use proptest::prelude::*;

use super::super::rounds::{ChangeError, ChangeRound, asked};
use super::*;
use seqsvr_core::store::{Configuration, Configured, Member, Moves};

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const CONFIRMED: u64 = 500;

fn first() -> Configuration {
    let member = |id: u64| Member { id, name: format!("s{id}"), addr: String::new() };
    let (lease, uids) = (Duration::from_secs(2), 0..=u32::MAX);
    let members = (1..=3).map(member).collect();
    Configuration {
        number: 1,
        members,
        write: 2,
        lease,
        layout: LAYOUT,
        uids,
        taking: None,
        moves: Moves::default(),
    }
}

fn replaced() -> Configuration {
    first().replacing("s3", Member { id: 4, name: "s4".to_owned(), addr: String::new() })
}

/// The replicas 1 to 3, and 4, which waits to be taken in. A ceiling was confirmed by 2 and 3.
fn replicas() -> Vec<State> {
    let owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
    let make = |id: u64| {
        let member = Configured { current: Some(Arc::new(first())), ..Configured::default() };
        let configured = if id < 4 { member } else { Configured::default() };
        let copy = Copy { layout: Some(LAYOUT), configured, ..Copy::default() };
        let mut state = State::restored(copy, 1, Flaws::default()).with_id(id);
        if id == 2 || id == 3 {
            let section = SectionId::new(3);
            let claim = Question::Claim { sections: vec![section..=section], owner, layout: LAYOUT };
            let raise = Question::Raise { owner, ceilings: vec![Ceiling { section, max: CONFIRMED }] };
            [claim, raise].iter().for_each(|question| drop(state.ask(Moment::default(), question)));
        }
        state
    };
    (1..=4).map(make).collect()
}

/// Changes the configuration, as `Quorum::change` does.
struct Coordinator {
    next: Arc<Configuration>,
    ballot: u64,
    number: u64,
    round: ChangeRound,
    pending: Vec<(u64, Ask)>,
    done: Option<Result<(), ChangeError>>,
}

impl Coordinator {
    fn new(next: Configuration, number: u64) -> Self {
        let next = Arc::new(next);
        let round = ChangeRound::new(Arc::new(first()), Arc::clone(&next), number, Flaws::default());
        let mut one = Self { next, ballot: 0, number, round, pending: Vec::new(), done: None };
        one.begin();
        one
    }

    /// Anew, under a ballot that nobody else has.
    fn begin(&mut self) {
        self.ballot = (self.ballot / 10 + 1) * 10 + self.number;
        let (current, next) = (Arc::new(first()), Arc::clone(&self.next));
        self.round = ChangeRound::new(current, next, self.ballot, Flaws::default());
        let asks = self.round.open();
        self.pending.clear();
        self.send(asks);
    }

    fn send(&mut self, asks: Vec<Ask>) {
        let members = asked(&first(), &self.next);
        self.pending.extend(asks.into_iter().map(|(to, question)| (members[to], (to, question))));
    }

    /// One of its questions arrives; its answer comes back unless it is lost.
    fn step(&mut self, which: usize, lost: bool, replicas: &mut [State]) {
        if self.done.is_some() || self.pending.is_empty() {
            return;
        }
        let (member, (to, question)) = self.pending.remove(which % self.pending.len());
        let answer = answered(replicas, 1, member, &question).filter(|_| !lost);
        self.take(to, answer);
    }

    /// Goes on to its end while all replicas but one answer, and in the order of the members.
    fn end(&mut self, gone: u64, replicas: &mut [State]) -> Result<(), ChangeError> {
        while self.done.is_none() {
            let (member, (to, question)) = self.pending.remove(0);
            let answer = (member != gone).then(|| answered(replicas, 1, member, &question)).flatten();
            self.take(to, answer);
        }
        self.done.clone().expect("it came to its end")
    }

    fn take(&mut self, to: usize, answer: Option<Answer>) {
        let answer = answer.ok_or_else(|| "lost".to_owned());
        match self.round.on(to, answer) {
            Step::Ask(asks) => self.send(asks),
            Step::Done(Err(ChangeError::Outbid(higher))) => {
                self.ballot = self.ballot.max(higher);
                self.begin();
            }
            Step::Done(Err(ChangeError::Another(accepted))) => {
                self.next = accepted;
                self.begin();
            }
            Step::Done(outcome) => self.done = Some(outcome),
        }
    }
}

fn answered(replicas: &mut [State], number: u64, member: u64, question: &Question) -> Option<Answer> {
    let address = Address { number, member };
    replicas[member as usize - 1].call(Moment::default(), Some(address), question).answer
}

/// Completes the change to the second configuration, as `Quorum::complete` does: by a member that votes in it, or once more from the
/// first.
fn complete(now: &Arc<Configuration>, gone: u64, replicas: &mut [State]) -> Result<(), ChangeError> {
    let mut round = ChangeRound::completing(Arc::clone(now), Flaws::default());
    let mut asks = round.open();
    loop {
        let (to, question) = asks.remove(0);
        let id = now.members[to].id;
        let answer = (id != gone).then(|| answered(replicas, 2, id, &question)).flatten();
        match round.on(to, answer.ok_or_else(String::new)) {
            Step::Ask(more) => asks.extend(more),
            Step::Done(Err(ChangeError::Behind(_))) => {
                return Coordinator::new((**now).clone(), 4).end(gone, replicas);
            }
            Step::Done(outcome) => return outcome,
        }
    }
}

/// The second configuration that replicas vote in: one at most. A member that goes knows of it only when it is in force.
fn second(replicas: &[State]) -> Option<Arc<Configuration>> {
    let of = |state: &State| state.configured().current.clone().filter(|one| one.number == 2);
    let all: Vec<_> = replicas.iter().filter_map(of).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "two configurations have the number 2");
    let (vote, told): (Vec<_>, Vec<_>) = replicas
        .iter()
        .filter_map(|state| Some((of(state)?, state.id())))
        .partition(|(now, id)| now.has(*id));
    assert!(told.is_empty() || vote.len() >= 2, "{told:?} has left for {vote:?}");
    all.into_iter().next()
}

/// All members that vote in the configuration in force know the confirmed ceiling: a claim may ask any of them.
fn assert_kept(replicas: &[State], now: &Configuration) {
    let ceiling = |id: u64| {
        let copy = replicas[id as usize - 1].copy();
        copy.sections.iter().map(|(_, one)| one.ceiling).max().unwrap_or(0)
    };
    let votes = |id: &u64| replicas[*id as usize - 1].configured().number() == 2;
    let voters: Vec<u64> = now.members.iter().map(|one| one.id).filter(votes).collect();
    assert!(voters.len() >= 2 && voters.iter().all(|&id| ceiling(id) == CONFIRMED), "{voters:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn both_end_in_one_configuration_that_has_everything(
        steps in prop::collection::vec((any::<bool>(), 0..8_usize, prop::bool::weighted(0.15)), 0..40), dies in 0..40_usize,
        gone in 1..=4_u64,
    ) {
        let mut replicas = replicas();
        let mut both = [Coordinator::new(replaced(), 1), Coordinator::new(first().next(), 2)];
        for (at, (who, which, lost)) in steps.into_iter().enumerate() {
            let who = if at >= dies { 1 } else { usize::from(who) };
            both[who].step(which, lost, &mut replicas);
            second(&replicas);
        }
        for one in both.iter().filter(|one| one.done == Some(Ok(()))) {
            prop_assert_eq!(second(&replicas), Some(Arc::clone(&one.next)));
            assert_kept(&replicas, &one.next);
        }
        // A coordinator that finds the stores halted completes the change, however far the other one had come and whichever store is lost.
        let mut last = Coordinator::new(first().next(), 3);
        let outcome = last.end(gone, &mut replicas);
        let now = second(&replicas).expect("it was decided");
        if outcome.is_err() {
            // It had come to pass before.
            prop_assert_eq!(complete(&now, gone, &mut replicas), Ok(()), "after {:?}", outcome);
        }
        assert_kept(&replicas, &now);
    }
}

/// A table that its arbiter wrote to one store before it died; another arbiter was promised a higher term by the others, and does not
/// know of it. The change spreads that table, so the promise must no longer count.
#[test]
fn an_arbiter_that_was_promised_before_a_change_asks_anew() {
    let mut replicas = replicas();
    let table = |term: u64, version: u64| {
        let version = Epoch { term, version };
        let uids = 0..=u32::MAX;
        let (section_size, nodes, assignments) = (100_000, Vec::new(), Vec::new());
        Arc::new(Table { set: 0, version, section_size, uids, nodes, assignments })
    };
    let mut ask = |id: usize, question: Question| replicas[id - 1].ask(Moment::default(), &question).answer;
    assert_eq!(ask(1, Question::Write(table(256, 9))), Some(Answer::Written));
    for id in [2, 3] {
        assert_eq!(ask(id, Question::Promise { term: 513 }), Some(Answer::Promised(None)));
    }
    let mut change = Coordinator::new(replaced(), 1);
    while change.done.is_none() {
        change.step(0, false, &mut replicas);
    }
    assert_eq!(change.done, Some(Ok(())));
    let votes = |one: &State| one.configured().number() == 2 && replaced().has(one.id());
    let voters = replicas.iter().filter(|one| votes(one)).count();
    assert!(voters >= 2, "{voters}");
    for state in replicas.iter_mut().filter(|one| votes(one)) {
        let write = state.ask(Moment::default(), &Question::Write(table(513, 9))).answer;
        assert_eq!(write, Some(Answer::Outranked(514)));
        let promised = state.ask(Moment::default(), &Question::Promise { term: 769 }).answer;
        assert_eq!(promised, Some(Answer::Promised(Some(table(256, 9)))));
    }
}

/// Nothing of the last step arrives but what is sent to the store that goes, and then another store is lost.
#[test]
fn a_change_that_came_to_its_last_step_is_completed_whichever_store_is_lost() {
    for gone in 1..=4 {
        let mut replicas = replicas();
        let mut cut_off = Coordinator::new(replaced(), 1);
        let installs = |one: &Coordinator| {
            one.pending.iter().any(|(_, (_, question))| matches!(question, Question::Install { .. }))
        };
        while !installs(&cut_off) {
            cut_off.step(0, false, &mut replicas);
        }
        for (member, (_, question)) in cut_off.pending {
            if member == 3 {
                answered(&mut replicas, 1, member, &question);
            }
        }
        assert_eq!(complete(&cut_off.next, gone, &mut replicas), Ok(()), "without {gone}");
        assert_kept(&replicas, &cut_off.next);
    }
}
