//! Somebody who runs `seqsvr store replace` or `seqsvr store lease`, again and again until that is done: the real round of the change
//! over the simulated network. This shell does what the command does: asks the replicas what is in force, begins anew when others
//! are in the way, and completes what others have begun. It may end at any moment; what is to be replaced stays known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cx::Cx;
use super::message::{Input, Packet, Tick};
use super::quorum::{Access, place_of};
use super::{MILLI, SECOND};
pub(crate) use seqsvr_cluster::store::quorum::rounds::{ChangeError, ChangeRound, Step, Timed, asked};
use seqsvr_core::clock::Moment;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::message::{Description, Phase};
use seqsvr_core::store::{Address, Configuration, Member};

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A store takes the place of another.
    Replace {
        /// The id of the member that goes.
        old: u64,
        /// Who takes its place.
        new: Member,
    },
    /// The Set gets this lease.
    Lease(Duration),
}

/// See the module.
pub(crate) struct Replacer {
    access: Access,
    task: Option<Task>,
    life: Option<Life>,
}

/// What ends with the process.
struct Life {
    next: u64,
    /// The highest ballot that was seen.
    ballot: u64,
    known: Option<Arc<Configuration>>,
    /// The new one waits to be taken in.
    joins: bool,
    /// Questions that are out, to which replica of the round.
    out: BTreeMap<u64, usize>,
    change: Option<Change>,
    /// The configuration in force that grants a shorter lease than somebody may hold, and until when he may.
    shortening: Option<(u64, Moment)>,
}

/// A round under way.
struct Change {
    round: Timed<ChangeRound>,
    current: Arc<Configuration>,
    next: Arc<Configuration>,
    members: Vec<u64>,
}

impl Replacer {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, task: None, life: None }
    }

    /// What it begins with its next life, or goes on with.
    pub(crate) fn task(&mut self) -> &mut Option<Task> {
        &mut self.task
    }

    pub(crate) fn crash(&mut self) {
        self.life = None;
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => {
                let (known, out, change, shortening) = Default::default();
                let next = cx.chance.number() >> 8;
                self.life = Some(Life { next, ballot: 0, known, joins: false, out, change, shortening });
                self.describe(cx);
            }
            Input::Tick(Tick::Next) => self.describe(cx),
            Input::Packet(_, Packet::Answer { id, answer }) => self.answered(cx, id, Some(answer)),
            Input::Tick(Tick::Late(id)) => self.answered(cx, id, None),
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    /// Asks the replicas of the file and the new one what they are.
    fn describe(&mut self, cx: &mut Cx<'_>) {
        let (Some(life), Some(task)) = (&mut self.life, &self.task) else { return };
        (life.joins, life.change) = (false, None);
        life.out.clear();
        let new = if let Task::Replace { new, .. } = task { Some(place_of(new.id)) } else { None };
        for place in self.access.replicas.iter().copied().chain(new) {
            life.next += 1;
            life.out.insert(life.next, place);
            cx.send(place, Packet::Question { id: life.next, to: None, question: Question::Describe });
            cx.tick(cx.now + self.access.patience, Tick::Late(life.next));
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<Answer>) {
        let (Some(life), Some(task)) = (&mut self.life, &self.task) else { return };
        let Some(from) = life.out.remove(&id) else { return };
        if let Some(change) = &mut life.change {
            let answer = answer.ok_or_else(|| "no answer in time".to_owned());
            return match change.round.on(cx.now, from, answer) {
                Step::Ask(asks) => self.ask(cx, asks),
                Step::Done(outcome) => self.done(cx, outcome),
            };
        }
        if let Some(Answer::Described(Description { id, phase, configuration, .. })) = answer {
            life.joins |=
                matches!(task, Task::Replace { new, .. } if new.id == id) && phase == Phase::Joining;
            let number = |one: &Option<Arc<Configuration>>| one.as_ref().map(|one| one.number);
            if number(&configuration) > number(&life.known) {
                life.known = configuration;
            }
        }
        if life.out.is_empty() {
            self.decide(cx);
        }
    }

    fn decide(&mut self, cx: &mut Cx<'_>) {
        let (Some(life), Some(task)) = (&self.life, &self.task) else { return };
        let Some(known) = life.known.clone() else {
            cx.tick_in(SECOND / 2..SECOND, Tick::Next);
            return;
        };
        let (old, new) = match task {
            Task::Lease(lease) => {
                let settled =
                    life.shortening.is_some_and(|(number, at)| number == known.number && cx.now >= at);
                let next =
                    known.toward_lease(*lease).ok().flatten().or_else(|| known.settled().filter(|_| settled));
                return self.carry(cx, Arc::clone(&known), next.map_or(known, Arc::new));
            }
            Task::Replace { old, new } => (*old, new.clone()),
        };
        match (known.has(old), known.has(new.id)) {
            (_, true) => self.carry(cx, Arc::clone(&known), known),
            (true, false) if life.joins => {
                let name = known.members.iter().find(|one| one.id == old).map(|one| one.name.clone());
                let next = known.replacing(&name.unwrap_or_default(), new);
                self.carry(cx, known, Arc::new(next));
            }
            (true, false) => cx.tick_in(SECOND / 2..SECOND, Tick::Next),
            // Somebody else has replaced it.
            (false, false) => self.task = None,
        }
    }

    /// Changes `current` to `next`; or completes that, where they are one.
    fn carry(&mut self, cx: &mut Cx<'_>, current: Arc<Configuration>, next: Arc<Configuration>) {
        let Some(life) = &mut self.life else { return };
        life.ballot = (((life.ballot >> 32) + 1) << 32) | u64::from(cx.chance.number() as u32);
        let members = asked(&current, &next);
        let round = if current == next {
            ChangeRound::completing(Arc::clone(&next), self.access.flaws)
        } else {
            ChangeRound::new(Arc::clone(&current), Arc::clone(&next), life.ballot, self.access.flaws)
        };
        let mut round = Timed::new(round, cx.now, self.access.patience, self.access.flaws);
        let asks = round.open();
        life.out.clear();
        life.change = Some(Change { round, current, next, members });
        self.ask(cx, asks);
    }

    fn ask(&mut self, cx: &mut Cx<'_>, asks: Vec<(usize, Question)>) {
        let Some(life) = &mut self.life else { return };
        let Some(Change { current, members, .. }) = &life.change else { return };
        for (index, question) in asks {
            life.next += 1;
            life.out.insert(life.next, index);
            let to = Some(Address { number: current.number, member: members[index] });
            cx.send(place_of(members[index]), Packet::Question { id: life.next, to, question });
            cx.tick(cx.now + self.access.patience, Tick::Late(life.next));
        }
    }

    fn done(&mut self, cx: &mut Cx<'_>, outcome: Result<(), ChangeError>) {
        let (Some(life), Some(task)) = (&mut self.life, &self.task) else { return };
        let Some(Change { current, next, .. }) = life.change.take() else { return };
        life.out.clear();
        match outcome {
            Ok(()) => {
                let done = match task {
                    Task::Replace { new, .. } => next.has(new.id),
                    Task::Lease(lease) => next.lease == *lease && next.transition.is_none(),
                };
                if done {
                    self.task = None;
                    return;
                }
                if matches!(task, Task::Lease(lease) if next.lease == *lease) {
                    // In force by now: whoever read under an earlier one asked before.
                    let at = cx.now + next.awaited() * 11 / 10;
                    life.shortening = Some((next.number, at));
                    return cx.tick(at, Tick::Next);
                }
                // Another change was to be completed first.
                life.known = Some(next);
            }
            Err(ChangeError::Another(accepted)) => return self.carry(cx, current, accepted),
            Err(ChangeError::Outbid(higher)) => life.ballot = life.ballot.max(higher),
            // It may have been cut off before enough had it.
            Err(ChangeError::Newer(newer)) => return self.carry(cx, Arc::clone(&newer), newer),
            // Who slept through the change before is brought up to date, as by an arbiter that finds stores halted.
            Err(ChangeError::Unavailable(_)) if current != next => {
                return self.carry(cx, Arc::clone(&current), current);
            }
            Err(ChangeError::Unavailable(_)) => {}
            Err(ChangeError::Layouts(why)) => unreachable!("all are set up alike: {why}"),
        }
        cx.tick_in(5 * MILLI..200 * MILLI, Tick::Next);
    }
}
