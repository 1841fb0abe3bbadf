//! Somebody who stores the first configuration of the Set, as an arbiter does, or changes it, as `seqsvr store` does, again and
//! again until that is done: the real round of the change over the simulated network. This shell asks the replicas what is in
//! force, begins anew when others are in the way, and completes what others have begun. It may end at any moment; what is to be
//! done stays known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cx::Cx;
use super::message::{Input, Packet, Tick};
use super::quorum::{Access, member_at, place_of};
use super::{MILLI, SECOND};
pub(crate) use seqsvr_cluster::store::quorum::rounds::{ChangeError, ChangeRound, Round as _, Step, asked};
use seqsvr_core::store::message::{Answer, Description, Question};
use seqsvr_core::store::{Address, Configuration, Member, SetTerms};

/// A task of a replacer.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// The Set gets a first configuration, of the replicas that the file lists.
    Establish(SetTerms),
    /// A store takes the place of another.
    Replace {
        /// The id of the member that goes.
        old: u64,
        /// The member that takes its place.
        new: Member,
    },
    /// One more store.
    Grow(Member),
    /// One fewer.
    Shrink {
        /// The id of the member that goes.
        old: u64,
    },
    /// The Set gets this W.
    Write(usize),
}

impl Task {
    /// Whether it came to this.
    fn is_done(&self, now: &Configuration) -> bool {
        match self {
            Self::Establish(_) => true,
            Self::Replace { new, .. } | Self::Grow(new) => now.has(new.id),
            Self::Shrink { old } => !now.has(*old),
            Self::Write(write) => now.write == *write,
        }
    }
}

/// See the module.
pub(crate) struct Replacer {
    access: Access,
    task: Option<Task>,
    life: Option<ReplacerLife>,
}

/// State that ends with the process.
struct ReplacerLife {
    next: u64,
    /// The highest ballot that was seen.
    ballot: u64,
    known: Option<Arc<Configuration>>,
    /// Those that said what they are, and that they have no configuration.
    new: BTreeSet<u64>,
    /// Those that answered.
    there: BTreeSet<u64>,
    /// Questions that are out, to which replica of the round.
    out: BTreeMap<u64, usize>,
    change: Option<ReplacerChange>,
}

/// A round under way.
struct ReplacerChange {
    round: ChangeRound,
    current: Arc<Configuration>,
    next: Arc<Configuration>,
    members: Vec<u64>,
}

impl Replacer {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, task: None, life: None }
    }

    /// The task that it begins with its next life, or goes on with.
    pub(crate) fn task(&mut self) -> &mut Option<Task> {
        &mut self.task
    }

    /// The operator's file.
    pub(crate) fn access(&mut self) -> &mut Access {
        &mut self.access
    }

    pub(crate) fn crash(&mut self) {
        self.life = None;
    }

    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Start => {
                let (known, out, change) = Default::default();
                let next = cx.chance.number() >> 8;
                self.life = Some(ReplacerLife {
                    next,
                    ballot: 0,
                    known,
                    new: BTreeSet::new(),
                    there: BTreeSet::new(),
                    out,
                    change,
                });
                self.describe(cx);
            }
            Input::Tick(Tick::Next) => self.describe(cx),
            Input::Packet(_, Packet::Answer { id, answer }) => self.answered(cx, id, Some(answer)),
            Input::Tick(Tick::Late(id)) => self.answered(cx, id, None),
            Input::Packet(..) | Input::Tick(_) => {}
        }
    }

    /// Asks the replicas of the file, the members as far as they are known and the new one what they are.
    fn describe(&mut self, cx: &mut Cx<'_>) {
        let (Some(life), Some(task)) = (&mut self.life, &self.task) else { return };
        life.change = None;
        life.new.clear();
        life.there.clear();
        life.out.clear();
        let new = match task {
            Task::Replace { new, .. } | Task::Grow(new) => Some(place_of(new.id)),
            _ => None,
        };
        let members = life.known.iter().flat_map(|known| &known.members).map(|one| place_of(one.id));
        let asked: BTreeSet<_> = self.access.replicas.iter().copied().chain(members).chain(new).collect();
        for place in asked {
            life.next += 1;
            life.out.insert(life.next, place);
            cx.send(place, Packet::Question { id: life.next, to: None, question: Question::Describe });
            cx.tick(cx.now + self.access.patience, Tick::Late(life.next));
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, id: u64, answer: Option<Answer>) {
        let Some(life) = &mut self.life else { return };
        let Some(from) = life.out.remove(&id) else { return };
        if let Some(change) = &mut life.change {
            let answer = answer.ok_or_else(|| "no answer in time".to_owned());
            return match change.round.on(from, answer) {
                Step::Ask(asks) => self.ask(cx, asks),
                Step::Done(outcome) => self.done(cx, outcome),
            };
        }
        if let Some(Answer::Described(Description { id, configuration, .. })) = answer {
            life.there.insert(id);
            if configuration.is_none() {
                life.new.insert(id);
            }
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
        let (known, task, is_new) =
            (life.known.clone(), task.clone(), |one: &Member| life.new.contains(&one.id));
        let enough = |of: &Configuration, needed| {
            of.members.iter().filter(|one| life.there.contains(&one.id)).count() >= needed
        };
        let next = match (&known, &task) {
            (None, Task::Establish(terms)) => {
                let members: Vec<Member> =
                    self.access.replicas.iter().map(|&place| member_at(place)).collect();
                members.iter().all(is_new).then(|| {
                    let (write, SetTerms { lease, layout, uids, moves }) =
                        (self.access.sizes.w(), terms.clone());
                    Configuration { number: 1, members, write, lease, layout, uids, taking: None, moves }
                })
            }
            (None, _) => None,
            (Some(known), task) if task.is_done(known) => Some((**known).clone()),
            (Some(known), Task::Replace { old, new }) => {
                match known.members.iter().find(|one| one.id == *old) {
                    Some(old) => is_new(new).then(|| known.replacing(&old.name, new.clone())),
                    // Somebody else has replaced it, unless a newer configuration is only not known here.
                    None if enough(known, known.deciders()) => return self.task = None,
                    None => None,
                }
            }
            (Some(known), Task::Grow(new)) => is_new(new).then(|| known.adding(new.clone())),
            (Some(known), Task::Shrink { old }) => {
                known.members.iter().find(|one| one.id == *old).map(|old| known.removing(&old.name))
            }
            (Some(known), Task::Write(write)) => match known.writing(*write) {
                next if next.sizes().is_ok() => Some(next),
                // It is refused.
                _ => return self.task = None,
            },
            (Some(_), Task::Establish(_)) => unreachable!("it is done"),
        };
        // As the command makes sure: otherwise it would seal some, which then answer no caller.
        let can_be_completed = |known: &Configuration, next: &Configuration| {
            known == next || (enough(known, known.deciders()) && enough(next, next.write))
        };
        let next = match &known {
            Some(known) => next.filter(|next| can_be_completed(known, next)),
            None => next,
        };
        match (known, next) {
            (_, None) => cx.tick_in(SECOND / 2..SECOND, Tick::Next),
            (Some(known), Some(next)) => self.carry(cx, known, Arc::new(next)),
            (None, Some(first)) => self.carry(cx, Arc::new(first.listed()), Arc::new(first)),
        }
    }

    /// Changes `current` to `next`; or completes that, where they are one.
    fn carry(&mut self, cx: &mut Cx<'_>, current: Arc<Configuration>, next: Arc<Configuration>) {
        let Some(life) = &mut self.life else { return };
        life.ballot = (((life.ballot >> 32) + 1) << 32) | u64::from(cx.chance.number() as u32);
        let members = asked(&current, &next);
        let mut round = if current == next {
            ChangeRound::completing(Arc::clone(&next), self.access.flaws)
        } else {
            ChangeRound::new(Arc::clone(&current), Arc::clone(&next), life.ballot, self.access.flaws)
        };
        let asks = round.open();
        life.out.clear();
        life.change = Some(ReplacerChange { round, current, next, members });
        self.ask(cx, asks);
    }

    fn ask(&mut self, cx: &mut Cx<'_>, asks: Vec<(usize, Question)>) {
        let Some(life) = &mut self.life else { return };
        let Some(ReplacerChange { current, members, .. }) = &life.change else { return };
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
        let Some(ReplacerChange { current, next, .. }) = life.change.take() else { return };
        life.out.clear();
        match outcome {
            Ok(()) => {
                if task.is_done(&next) {
                    self.task = None;
                    return;
                }
                // Another change was to be completed first.
                life.known = Some(next);
            }
            // Of a list that has a replica in common with this one: people are told.
            Err(ChangeError::Another(other))
                if current.number == 0 && !other.members.iter().all(|one| current.has(one.id)) =>
            {
                return self.task = None;
            }
            Err(ChangeError::Another(accepted)) => return self.carry(cx, current, accepted),
            Err(ChangeError::Outbid(higher)) => life.ballot = life.ballot.max(higher),
            // It may have been cut off before enough had it.
            Err(ChangeError::Newer(newer)) => return self.carry(cx, Arc::clone(&newer), newer),
            // All that came to it are gone.
            Err(ChangeError::Behind(Some(older))) if current == next => {
                return self.carry(cx, older, current);
            }
            // Replicas that slept through the change before are brought up to date, as by an arbiter that finds stores halted.
            Err(ChangeError::Behind(_) | ChangeError::Unavailable(_))
                if current != next && current.number > 0 =>
            {
                return self.carry(cx, Arc::clone(&current), current);
            }
            Err(ChangeError::Behind(_) | ChangeError::Unavailable(_)) => {}
            Err(ChangeError::Layouts(why)) => unreachable!("all are set up alike: {why}"),
        }
        cx.tick_in(5 * MILLI..200 * MILLI, Tick::Next);
    }
}
