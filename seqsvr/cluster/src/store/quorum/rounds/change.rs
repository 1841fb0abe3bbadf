//! The round that changes the configuration. Three steps, each with one question to every replica, and a last word to members that go:
//!
//! ```text
//!  seal     the old members promise a ballot, and answer no other call of the old configuration from then on: a majority
//!  accept   a majority of the old members keeps the next configuration under that ballot: it is decided
//!  install  the members of the next one take over the contents of the copies, and vote in it: W of them put it in force
//! ```
//!
//! Then the members that go are told. Until then they are among those that seal and accept, so a change that was cut off can be made
//! once more, whichever store is lost meanwhile.
//!
//! A value that was confirmed in the old configuration was confirmed by W members, one of which is in the sealed
//! majority, and it confirmed before it was sealed, so the copies hold the value. A value that had fewer than W answers by
//! then can never get them. Nothing has to be waited for, and a member whose disk is lost is missed like one that is
//! down. Ballots keep two coordinators apart: one that is outbid stops, and one that seals finds the configuration that
//! was accepted before, and goes on with that.
//!
//! The first configuration comes of none: all stores that a file lists decide on it together
//! ([`Configuration::listed`]).

use std::sync::Arc;

use super::{Ask, PendingQuestions, Round, Step};
use crate::store::merge::{LayoutsDiffer, merge};
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::store::configuration::Configuration;
use seqsvr_core::store::message::{Answer, Copy, Misaddressed, Question};

/// Why a configuration was not changed, or not for certain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChangeError {
    /// Another coordinator changes it under this, higher ballot.
    Outbid(u64),
    /// Another next one was accepted before: it has to be completed first.
    Another(Arc<Configuration>),
    /// The configuration to change is no longer in force, but this one is.
    Newer(Arc<Configuration>),
    /// Too few of those that answer have come to the configuration to change, which was decided: the change to it has to be completed
    /// first. Where nobody has come to it, that is the change from this one, if those that answer have any.
    Behind(Option<Arc<Configuration>>),
    /// Too few answered; to be done again.
    Unavailable(String),
    /// The copies cannot be of one Set.
    Layouts(LayoutsDiffer),
}

/// Which step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    /// In place of the first two, when a member votes in the next one already: it was decided, and that member has the state.
    Copy,
    Seal,
    Accept,
    Install,
    /// It is in force. Only members that go are asked, and any answer is good enough, or none.
    Tell,
}

/// See the module. Replicas are the old members in their order, then the one that is new.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChangeRound {
    current: Arc<Configuration>,
    next: Arc<Configuration>,
    ballot: u64,
    flaws: Flaws,
    members: Vec<u64>,
    open: PendingQuestions,
    at: At,
    done: usize,
    copies: Vec<Copy>,
    accepted: Option<(u64, Arc<Configuration>)>,
    /// The configurations of those that have not come to the current one.
    behind: Vec<Option<Arc<Configuration>>>,
}

/// The ids of the members that such a round asks, in its order.
pub fn asked(current: &Configuration, next: &Configuration) -> Vec<u64> {
    let new = next.members.iter().filter(|one| !current.has(one.id));
    current.members.iter().chain(new).map(|one| one.id).collect()
}

impl ChangeRound {
    /// From `current`, which is in force or the listed stores, to `next`, under a ballot of which no other change makes use.
    pub fn new(current: Arc<Configuration>, next: Arc<Configuration>, ballot: u64, flaws: Flaws) -> Self {
        let members = asked(&current, &next);
        let (open, at, copies) = (PendingQuestions::new(), At::Seal, Vec::new());
        let (done, accepted, behind) = Default::default();
        Self { current, next, ballot, flaws, members, open, at, done, copies, accepted, behind }
    }

    /// Completes the change to `next`, which a member votes in already. Replicas are its members in their order.
    pub fn completing(next: Arc<Configuration>, flaws: Flaws) -> Self {
        Self { at: At::Copy, ..Self::new(Arc::clone(&next), next, 0, flaws) }
    }

    fn ask_old(&mut self, question: &Question) -> Vec<Ask> {
        let asks = (0..self.current.members.len()).map(|index| (index, question.clone())).collect();
        self.open.asked(asks)
    }

    /// How many answers end the step.
    fn needed(&self) -> usize {
        match self.at {
            At::Install => self.next.write,
            At::Tell => self.that(false).count(),
            _ if self.current.number == 0 && self.flaws.has(Flaw::FirstByFew) => self.current.write,
            _ => self.current.deciders(),
        }
    }

    fn go_on(&mut self, at: At) {
        (self.at, self.done) = (at, 0);
    }

    /// Sealed by enough.
    fn accept(&mut self) -> Step<Result<(), ChangeError>> {
        if let Some((_, accepted)) = self.accepted.take().filter(|(_, accepted)| *accepted != self.next) {
            return Step::Done(Err(ChangeError::Another(accepted)));
        }
        self.go_on(At::Accept);
        let (number, ballot) = (self.current.number, self.ballot);
        Step::Ask(self.ask_old(&Question::Accept { number, ballot, next: Arc::clone(&self.next) }))
    }

    /// Decided.
    fn install(&mut self) -> Step<Result<(), ChangeError>> {
        let copies = std::mem::take(&mut self.copies);
        let copies = if self.flaws.has(Flaw::InstallWithoutState) { Vec::new() } else { copies };
        let copy = match merge(copies) {
            Ok(copy) => Arc::new(asked_anew(copy)),
            Err(why) => return Step::Done(Err(ChangeError::Layouts(why))),
        };
        self.go_on(At::Install);
        self.ask_to_install(true, copy)
    }

    /// In force.
    fn tell(&mut self) -> Step<Result<(), ChangeError>> {
        self.go_on(At::Tell);
        match self.needed() {
            0 => Step::Done(Ok(())),
            _ => self.ask_to_install(false, Arc::default()),
        }
    }

    /// The replicas that are members of the next one; those that go, where `stay` is false.
    fn that(&self, stay: bool) -> impl Iterator<Item = usize> {
        (0..self.members.len()).filter(move |&index| self.next.has(self.members[index]) == stay)
    }

    fn ask_to_install(&mut self, stay: bool, copy: Arc<Copy>) -> Step<Result<(), ChangeError>> {
        let install = Question::Install { next: Arc::clone(&self.next), copy };
        let asks = self.that(stay).map(|index| (index, install.clone())).collect();
        Step::Ask(self.open.asked(asks))
    }
}

/// A table that one member alone had is on all of them afterwards, and counts. The arbiter that was promised a higher term need not
/// know it, and must not write one that comes of an older table: it is outranked, and asks anew.
fn asked_anew(copy: Copy) -> Copy {
    let older = copy.table.as_ref().is_some_and(|table| table.version.term < copy.promised);
    Copy { promised: copy.promised + u64::from(older), ..copy }
}

impl Round for ChangeRound {
    type Outcome = Result<(), ChangeError>;

    fn open(&mut self) -> Vec<Ask> {
        match self.at {
            At::Copy => self.ask_old(&Question::Copy),
            _ => self.ask_old(&Question::Seal { number: self.current.number, ballot: self.ballot }),
        }
    }

    fn on(&mut self, from: usize, answer: Result<Answer, String>) -> Step<Self::Outcome> {
        self.open.out -= 1;
        match (answer, &self.at) {
            (Ok(Answer::Sealed { accepted, copy }), At::Seal) => {
                self.done += 1;
                self.copies.push(copy);
                let ballot = |accepted: &Option<(u64, _)>| accepted.as_ref().map(|(ballot, _)| *ballot);
                if ballot(&accepted) > ballot(&self.accepted) {
                    self.accepted = accepted;
                }
            }
            (Ok(Answer::Copy(copy)), At::Copy) => {
                if copy.configured.current.as_ref() == Some(&self.next) {
                    self.copies.push(copy);
                    return self.install();
                }
                self.open.failed(from, "it does not vote in that configuration yet");
            }
            (Ok(Answer::Accepted), At::Accept) => self.done += 1,
            (Ok(Answer::Installed), At::Install) => self.done += 1,
            // An answer to an earlier step.
            (Ok(Answer::Sealed { .. } | Answer::Accepted | Answer::Copy(_)), _) => {}
            (_, At::Tell) => self.done += usize::from(!self.next.has(self.members[from])),
            (Ok(Answer::Outbid(ballot)), _) => return Step::Done(Err(ChangeError::Outbid(ballot))),
            (Ok(Answer::Misaddressed { configuration: Some(newer), .. }), _)
                if newer.number > self.current.number && newer != self.next =>
            {
                return Step::Done(Err(ChangeError::Newer(newer)));
            }
            (Ok(Answer::Misaddressed { why, configuration }), _) => {
                if why == Misaddressed::Behind {
                    self.behind.push(configuration);
                }
                self.open.failed(from, &why.to_string());
            }
            (Ok(_), _) => self.open.wrong(from),
            (Err(why), _) => self.open.failed(from, &why),
        }
        let needed = self.needed();
        if self.done >= needed && self.at != At::Copy {
            return match self.at {
                At::Seal => self.accept(),
                At::Accept => self.install(),
                At::Install => self.tell(),
                At::Tell | At::Copy => Step::Done(Ok(())),
            };
        }
        if self.open.out > 0 {
            return Step::WAIT;
        }
        let newest = self.behind.drain(..).max_by_key(|one| one.as_ref().map(|one| one.number));
        Step::Done(Err(match newest {
            Some(older) => ChangeError::Behind(older),
            None => ChangeError::Unavailable(self.open.why(self.done, needed)),
        }))
    }
}
