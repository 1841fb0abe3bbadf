//! Which calls a replica answers, and its part in a change of the configuration: it is sealed, accepts the next one, and
//! installs the one that was decided on.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Decision, State, StateChange};
use crate::store::merge::merge;
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::Flaw;
use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::{Answer, Copy, Description, Misaddressed, Question};
use seqsvr_core::store::{Address, Configuration, Configured};

impl State {
    /// Answers a question that was sent to `to`, if it is meant for this replica and counts for its configuration.
    /// Callers without an address know no configuration.
    pub fn call(&mut self, now: Moment, to: Option<Address>, question: &Question) -> Decision {
        match self.misaddressed(to, question) {
            None => self.ask(now, question),
            Some(why) => {
                let configuration = self.configured.current.clone();
                Answer::Misaddressed { why, configuration }.into()
            }
        }
    }

    fn misaddressed(&self, to: Option<Address>, question: &Question) -> Option<Misaddressed> {
        let Configured { current, ballot, .. } = &self.configured;
        let Address { number: of, member: meant } = to.unwrap_or_default();
        let number = self.configured.number();
        if meant != 0 && meant != self.id {
            return Some(Misaddressed::Member);
        }
        match question {
            Question::Describe | Question::Install { .. } => return None,
            _ if current.as_ref().is_some_and(|current| !current.has(self.id)) => {
                return Some(Misaddressed::Removed);
            }
            // Before there is a configuration, operators may look at the state.
            Question::Copy => return to.and_then(|to| otherwise(to.number, number)),
            Question::Seal { number: of, .. } | Question::Accept { number: of, .. } => {
                return otherwise(*of, number);
            }
            _ if current.is_none() && of == 0 && !self.flaws.has(Flaw::ServeUnconfigured) => {
                return Some(Misaddressed::Unconfigured);
            }
            _ => {}
        }
        if of != number && !self.flaws.has(Flaw::AnyNumber) {
            return otherwise(of, number);
        }
        (*ballot > 0 && !self.flaws.has(Flaw::VoteWhileSealed)).then_some(Misaddressed::Sealed)
    }

    /// Whether a section is none of the Set: neither its own nor being taken in. Ceilings of sections that it gave up stay as
    /// they were when it did.
    pub(super) fn is_outside(&self, section: SectionId) -> bool {
        let configured = self.configured.current.as_ref();
        configured.is_some_and(|current| !current.sections().contains(&section))
    }

    /// Whether a table assigns uids whose ceilings are not here yet.
    pub(super) fn gives_what_is_taken_in(&self, table: &Table) -> bool {
        let current = self.configured.current.as_deref();
        let Some(taking) = current.and_then(|one| one.taking.as_ref()) else { return false };
        let section = |uid: u32| SectionId::new(uid / table.section_size);
        let (first, last) = (section(*taking.uids.start()), section(*taking.uids.end()));
        table.assignments.iter().any(|one| *one.sections.start() <= last && first <= *one.sections.end())
    }

    pub(super) fn describe(&self) -> Description {
        let Configured { current, ballot, .. } = &self.configured;
        Description {
            name: String::new(),
            id: self.id,
            layout: self.layout,
            configuration: current.clone(),
            sealed: *ballot > 0,
        }
    }

    /// Changes its configuration, or its part in a change; the values `taken` over are merged in.
    fn reconfigured(&mut self, taken: Option<&Copy>, configured: Configured) -> Option<StateChange> {
        let own = self.copy();
        let merged = merge(taken.cloned().into_iter().chain([own])).ok()?;
        self.changed(StateChange::Whole(Box::new(Copy { configured, ..merged })))
    }

    pub(super) fn seal(&mut self, ballot: u64) -> Decision {
        if ballot <= self.configured.ballot {
            return Answer::Outbid(self.configured.ballot).into();
        }
        let configured = Configured { ballot, ..self.configured.clone() };
        let change = self.reconfigured(None, configured);
        let accepted = self.configured.accepted.clone();
        Decision { answer: Some(Answer::Sealed { accepted, copy: self.copy() }), change }
    }

    pub(super) fn accept(&mut self, ballot: u64, next: &Arc<Configuration>) -> Decision {
        if ballot < self.configured.ballot {
            return Answer::Outbid(self.configured.ballot).into();
        }
        let accepted = Some((ballot, Arc::clone(next)));
        let change = self.reconfigured(None, Configured { ballot, accepted, ..self.configured.clone() });
        Decision { answer: Some(Answer::Accepted), change }
    }

    /// The configuration that was decided on replaces the current one, with all values that were confirmed before. Values that
    /// are here already stay: they only grow. A member that votes in it already has all of that, or W others have.
    pub(super) fn install(&mut self, next: &Arc<Configuration>, copy: &Copy) -> Decision {
        let number = self.configured.number();
        let other = self.configured.current.as_ref().is_some_and(|current| current != next);
        if number > next.number || number == next.number && other {
            let configuration = self.configured.current.clone();
            return Answer::Misaddressed { why: Misaddressed::Newer, configuration }.into();
        }
        // It votes in it: values that another one has beyond its own were never confirmed, and must not become so by being copied.
        if number == next.number {
            return Answer::Installed.into();
        }
        // It takes part in the first configuration of a new Set, which may be decided: no other Set can have it.
        if number == 0 && self.configured.ballot > 0 && next.number > 1 {
            return Answer::Misaddressed { why: Misaddressed::Sealed, configuration: None }.into();
        }
        let configured = Configured { current: Some(Arc::clone(next)), ..Configured::default() };
        let change = self.reconfigured(Some(copy), configured);
        match change {
            Some(_) => Decision { answer: Some(Answer::Installed), change },
            None => Answer::OtherLayout(self.layout.unwrap_or(next.layout)).into(),
        }
    }
}

/// A call of configuration `of` to a replica of `number`.
fn otherwise(of: u64, number: u64) -> Option<Misaddressed> {
    match of.cmp(&number) {
        Ordering::Equal => None,
        Ordering::Less => Some(Misaddressed::Newer),
        Ordering::Greater => Some(Misaddressed::Behind),
    }
}
