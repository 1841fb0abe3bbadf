//! The state of one replica, and the rules by which it answers: the fence of the claims, ceilings that only grow,
//! releases, the term and the table. Pure: the shell makes each [`StateChange`] durable before it lets the answer out,
//! and the simulation forgets the changes that were not.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::store::section_map::SectionMap;
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::{
    Answer, Copy, Earlier, Held, Misaddressed, Question, Raised, SectionState,
};
use seqsvr_core::store::{Ceiling, Configured, Layout, Owner};

/// Everything that a replica votes by, and when it last heard of the acting arbiter (which is not durable).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    flaws: Flaws,
    revision: u64,
    promised: u64,
    table: Option<Arc<Table>>,
    layout: Option<Layout>,
    /// Only claimed sections have one.
    ceilings: BTreeMap<SectionId, u64>,
    holders: SectionMap<Holders>,
    /// The highest term whose arbiter reported that it acts, and when.
    last_activity: Option<(u64, Moment)>,
    /// Its id among the members; 0: it has none.
    id: u64,
    /// Which votes count.
    configured: Configured,
}

/// The holder of a section, and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Holders {
    owner: Held,
    earlier: Option<Held>,
}

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// To be sent once the change is durable. `None`: the revision is still the one that the reader knows; ask again when
    /// [`State::revision`] is another, or with no wait when the time is up.
    pub answer: Option<Answer>,
    /// The change that must be durable first; already part of the state that decided.
    pub change: Option<StateChange>,
}

/// The change that a question made: enough to repeat it on a state that is as old as the one that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateChange {
    /// A claim was accepted.
    Claim {
        /// Disjoint ranges.
        sections: Vec<RangeInclusive<SectionId>>,
        /// Their new owner.
        owner: Owner,
        /// The layout, now stored.
        layout: Layout,
    },
    /// Ceilings grew.
    Raise(Vec<Ceiling>),
    /// An owner left.
    Release {
        /// The owner.
        owner: Owner,
        /// The sections that it left, as far as that is noted.
        sections: Vec<RangeInclusive<SectionId>>,
    },
    /// A term was promised.
    Promise(u64),
    /// A table was stored, and its term with it.
    Write(Arc<Table>),
    /// This is the state from now on: the configuration, or part in its change.
    Whole(Box<Copy>),
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Decision {
        Decision { answer: Some(answer), change: None }
    }
}

impl State {
    /// A replica that was just made, without a layout: the first claim fixes it.
    #[cfg(any(test, feature = "simulation"))]
    pub fn new(flaws: Flaws) -> State {
        State::restored(Copy::default(), 1, flaws)
    }

    /// A replica that goes on from a copy. Readers notice when `revision` (1 and up) differs from what they know.
    pub fn restored(copy: Copy, revision: u64, flaws: Flaws) -> State {
        let Copy { promised, table, layout, sections, configured } = copy;
        let mut state = State {
            flaws,
            revision: revision.max(1),
            promised,
            table,
            layout,
            ceilings: BTreeMap::new(),
            holders: SectionMap::default(),
            last_activity: None,
            id: 0,
            configured,
        };
        for (run, one) in sections {
            if one.ceiling > 0 {
                let sections = run.start().get()..=run.end().get();
                state.ceilings.extend(sections.map(|section| (SectionId::new(section), one.ceiling)));
            }
            if let Some(owner) = one.owner {
                state.holders.change(&run, |_| Some(Holders { owner, earlier: one.earlier }));
            }
        }
        state
    }

    /// With its id among the members.
    pub fn with_id(self, id: u64) -> State {
        State { id, ..self }
    }

    /// Its id among the members; 0: it has none.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Which votes count.
    pub fn configured(&self) -> &Configured {
        &self.configured
    }

    /// Grows with each change of the table or the configuration and each release that is noted.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The layout, which gives the numbers of sections their meaning, once it is fixed.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Answers a question, and changes as the answer says.
    pub fn ask(&mut self, now: Moment, question: &Question) -> Decision {
        match question {
            Question::Claim { sections, owner, layout } => self.claim(sections, *owner, *layout),
            Question::Raise { owner, ceilings } => self.raise(*owner, ceilings),
            Question::Release { owner, sections } => self.release(*owner, sections),
            Question::Promise { term } => self.promise(now, *term),
            Question::Write(table) => self.write(now, table),
            Question::Read { revision, wait, .. } if *revision == self.revision && !wait.is_zero() => {
                Decision { answer: None, change: None }
            }
            Question::Read { .. } => self.read(now).into(),
            Question::Acting { term } => {
                self.hear(now, *term);
                Answer::Acting(self.promised).into()
            }
            Question::Copy => Answer::Copy(self.copy()).into(),
            Question::Describe => Answer::Described(self.describe()).into(),
            Question::Seal { ballot, .. } => self.seal(*ballot),
            Question::Accept { ballot, next, .. } => self.accept(*ballot, next),
            Question::Install { next, copy } => self.install(next, copy),
        }
    }

    /// Repeats a change: on the state as it was before, for changes that are read back from disk.
    pub fn apply(&mut self, change: &StateChange) {
        match change {
            StateChange::Claim { sections, owner, layout } => {
                self.layout = Some(*layout);
                let taken = Held { owner: *owner, released: false };
                for range in sections {
                    self.holders.change(range, |old| Some(Holders::taken(old, taken)));
                }
            }
            StateChange::Raise(ceilings) => {
                for one in ceilings {
                    let stored = self.ceilings.entry(one.section).or_default();
                    *stored = one.max.max(*stored);
                }
            }
            StateChange::Release { owner, sections } => {
                let flaws = self.flaws;
                for range in sections {
                    self.holders.change(range, |old| old.map(|old| old.released(*owner, flaws)));
                }
                self.revision += 1;
            }
            StateChange::Promise(term) => self.promised = self.promised.max(*term),
            StateChange::Write(table) => {
                self.promised = self.promised.max(table.version.term);
                self.table = Some(table.clone());
                self.revision += 1;
            }
            StateChange::Whole(copy) => {
                let restored = State::restored(copy.as_ref().clone(), self.revision + 1, self.flaws);
                *self = State { id: self.id, last_activity: self.last_activity, ..restored };
            }
        }
    }

    fn changed(&mut self, change: StateChange) -> Option<StateChange> {
        self.apply(&change);
        Some(change)
    }

    fn claim(&mut self, sections: &[RangeInclusive<SectionId>], owner: Owner, layout: Layout) -> Decision {
        if let Some(stored) = self.layout.filter(|stored| *stored != layout) {
            return Answer::OtherLayout(stored).into();
        }
        // As if a newer owner had them: sections that the Set gave up have one elsewhere.
        if sections.iter().any(|range| self.is_outside(*range.start()) || self.is_outside(*range.end())) {
            return Answer::Outclaimed(owner.epoch).into();
        }
        let stands = |holder: Owner| same(holder, owner, self.flaws);
        let held = || sections.iter().flat_map(|range| self.holders.within(range));
        let newer = |(_, held): (_, Holders)| {
            let holder = held.owner.owner;
            (!stands(holder) && holder.epoch >= owner.epoch).then_some(holder.epoch)
        };
        if let Some(newest) = held().filter_map(newer).max() {
            return Answer::Outclaimed(newest).into();
        }
        let count =
            |range: &RangeInclusive<SectionId>| u64::from(range.end().get() - range.start().get()) + 1;
        let standing: u64 =
            held().filter(|(_, held)| stands(held.owner.owner)).map(|(run, _)| count(&run)).sum();
        let repeated = self.layout.is_some() && standing == sections.iter().map(count).sum::<u64>();
        let change = (!repeated).then(|| StateChange::Claim { sections: sections.to_vec(), owner, layout });
        let change = change.and_then(|change| self.changed(change));
        Decision { answer: Some(self.claimed(sections)), change }
    }

    /// The answer to a claim of `sections` that stands.
    fn claimed(&self, sections: &[RangeInclusive<SectionId>]) -> Answer {
        let mut sections = sections.to_vec();
        sections.sort_unstable_by_key(|range| *range.start());
        let of = |range: &RangeInclusive<SectionId>| {
            self.ceilings.range(range.clone()).map(|(&section, &max)| Ceiling { section, max })
        };
        let ceilings = sections.iter().flat_map(of).collect();
        let mut earlier: Vec<Earlier> = Vec::new();
        for (run, held) in sections.iter().flat_map(|range| self.holders.within(range)) {
            let Some(Held { owner, released }) = held.earlier else { continue };
            match earlier.last_mut() {
                Some(last)
                    if last.sections.end().get().checked_add(1) == Some(run.start().get())
                        && (last.owner, last.released) == (owner, released) =>
                {
                    last.sections = *last.sections.start()..=*run.end();
                }
                _ => earlier.push(Earlier { sections: run, owner, released }),
            }
        }
        Answer::Claimed { ceilings, earlier }
    }

    fn raise(&mut self, owner: Owner, ceilings: &[Ceiling]) -> Decision {
        let mut raised = Vec::with_capacity(ceilings.len());
        let mut grown = Vec::new();
        for &Ceiling { section, max } in ceilings {
            if self.is_outside(section) {
                raised.push(Raised::NotOwner(owner.epoch));
                continue;
            }
            let holder = self.holders.get(section).map(|held| held.owner.owner);
            if !holder.is_some_and(|holder| same(holder, owner, self.flaws)) {
                let newest = holder.map_or(Epoch::default(), |holder| holder.epoch);
                raised.push(Raised::NotOwner(newest));
                continue;
            }
            let stored = self.ceilings.get(&section).copied().unwrap_or(0);
            if stored > max {
                raised.push(Raised::Smaller(stored));
                continue;
            }
            if stored < max {
                self.ceilings.insert(section, max);
                grown.push(Ceiling { section, max });
            }
            raised.push(Raised::Confirmed(max));
        }
        let change = (!grown.is_empty()).then_some(StateChange::Raise(grown));
        Decision { answer: Some(Answer::Raised(raised)), change }
    }

    fn release(&mut self, owner: Owner, sections: &[RangeInclusive<SectionId>]) -> Decision {
        let affected = |(run, held): (_, Holders)| (held.released(owner, self.flaws) != held).then_some(run);
        let held = sections.iter().flat_map(|range| self.holders.within(range));
        let sections: Vec<_> = held.filter_map(affected).collect();
        let change = (!sections.is_empty()).then_some(StateChange::Release { owner, sections });
        let change = change.and_then(|change| self.changed(change));
        Decision { answer: Some(Answer::Released), change }
    }

    /// Each term is promised once: of two arbiters that were given the same number by mistake, and bid for the same term, at
    /// most one gets W promises for it. (An arbiter that missed the answer bids for a higher one.)
    fn promise(&mut self, now: Moment, term: u64) -> Decision {
        if term <= self.promised {
            return Answer::Outranked(self.promised).into();
        }
        let change = self.changed(StateChange::Promise(term));
        self.hear(now, term);
        Decision { answer: Some(Answer::Promised(self.table.clone())), change }
    }

    /// A table of a term that was not promised here takes the place of the promise: its arbiter has W promises elsewhere, and
    /// a lower term that were promised now could write nothing.
    fn write(&mut self, now: Moment, table: &Arc<Table>) -> Decision {
        if table.version.term < self.promised {
            return Answer::Outranked(self.promised).into();
        }
        if self.gives_what_is_taken_in(table) {
            let configuration = self.configured.current.clone();
            return Answer::Misaddressed { why: Misaddressed::Taking, configuration }.into();
        }
        match &self.table {
            Some(stored) if stored == table => return Answer::Written.into(),
            Some(stored) if stored.version >= table.version => return Answer::Newer(stored.version).into(),
            _ => {}
        }
        let change = self.changed(StateChange::Write(table.clone()));
        self.hear(now, table.version.term);
        Decision { answer: Some(Answer::Written), change }
    }

    fn read(&self, now: Moment) -> Answer {
        let active = self.last_activity.filter(|(term, _)| *term >= self.promised);
        Answer::Table {
            revision: self.revision,
            table: self.table.clone(),
            promised: self.promised,
            acting: active.map(|(_, at)| now.since(at)),
        }
    }

    fn hear(&mut self, now: Moment, term: u64) {
        if self.last_activity.is_none_or(|(latest, _)| latest <= term) {
            self.last_activity = Some((term, now));
        }
    }

    /// Everything that this replica votes by.
    pub fn copy(&self) -> Copy {
        let mut sections: Vec<(RangeInclusive<SectionId>, SectionState)> = Vec::new();
        let mut push = |first: u32, last: u32, state: SectionState| {
            if first > last {
                return;
            }
            match sections.last_mut() {
                Some((run, before)) if run.end().get().checked_add(1) == Some(first) && *before == state => {
                    *run = *run.start()..=SectionId::new(last);
                }
                _ => sections.push((SectionId::new(first)..=SectionId::new(last), state)),
            }
        };
        for (run, Holders { owner, earlier }) in self.holders.iter() {
            let state = |ceiling| SectionState { ceiling, owner: Some(owner), earlier };
            let mut next = Some(run.start().get());
            for (&section, &ceiling) in self.ceilings.range(run.clone()) {
                let section = section.get();
                if let (Some(next), Some(before)) = (next, section.checked_sub(1)) {
                    push(next, before, state(0));
                }
                push(section, section, state(ceiling));
                next = section.checked_add(1);
            }
            if let Some(next) = next {
                push(next, run.end().get(), state(0));
            }
        }
        Copy {
            promised: self.promised,
            table: self.table.clone(),
            layout: self.layout,
            sections,
            configured: self.configured.clone(),
        }
    }
}

/// Whether `holder` is `owner`: the same incarnation under the same epoch.
fn same(holder: Owner, owner: Owner, flaws: Flaws) -> bool {
    holder == owner || flaws.has(Flaw::EpochOfNode) && holder.epoch == owner.epoch
}

impl Holders {
    /// After a claim by `taken`, which stands. The one that it replaces becomes the earlier one, unless a higher is there.
    fn taken(old: Option<Holders>, taken: Held) -> Holders {
        match old {
            None => Holders { owner: taken, earlier: None },
            Some(old) if old.owner.owner == taken.owner => old,
            Some(Holders { owner, earlier }) => {
                let higher = earlier.filter(|earlier| earlier.owner.epoch > owner.owner.epoch);
                Holders { owner: taken, earlier: Some(higher.unwrap_or(owner)) }
            }
        }
    }

    /// After a release by `owner`: noted where it is exactly the newest or the highest earlier one.
    fn released(self, owner: Owner, flaws: Flaws) -> Holders {
        let left = |held: Held| Held {
            released: held.released || held.owner == owner || flaws.has(Flaw::LooseRelease),
            ..held
        };
        Holders { owner: left(self.owner), earlier: self.earlier.map(left) }
    }
}

mod reconfigure;
#[cfg(test)]
mod tests;
