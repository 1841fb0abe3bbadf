//! Every decision of an AllocSvr about one Set except handing out numbers from memory: when the table is read, which
//! sections are claimed, served, unloaded and released, and when; until when the lease lasts. Pure: the shell
//! carries out the [`Action`]s and feeds their outcomes back as [`NodeEvent`]s; the simulation does the same.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::hold::Hold;
use super::releases::Releases;
use super::runs::Runs;
use seqsvr_core::alloc::lease::Lease;
use seqsvr_core::clock::Moment;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::tables::{Reading, Revisions};
use seqsvr_core::store::{Claimed, Layout, Owner, StoreError};

pub use super::hold::{Predecessor, Serving};

/// The rules of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeRules {
    /// Its name in tables.
    pub name: String,
    /// This life of it; never repeats.
    pub incarnation: u64,
    /// How long a read of the table lets it serve, while the stores say nothing of it; the same for all nodes of the Set.
    pub lease: Duration,
    /// The layout, which gives the numbers of sections their meaning.
    pub layout: Layout,
    /// Broken rules, in the simulation.
    pub flaws: Flaws,
}

/// An event that the core decides on.
#[derive(Debug)]
pub enum NodeEvent {
    /// The first event.
    Start,
    /// The moment of [`Node::wake_at`] has come.
    Wake,
    /// A read ended.
    Read {
        /// Taken before the request left.
        asked: Moment,
        /// Its outcome.
        outcome: Result<Reading, StoreError>,
    },
    /// A claim ended.
    Claimed {
        /// The owner that claims.
        owner: Owner,
        /// Its outcome.
        outcome: Result<Claimed, StoreError>,
    },
    /// The last [`Action::Record`] is carried out, as far as the disk took it.
    Recorded,
    /// A release ended.
    Released {
        /// The owner that leaves.
        owner: Owner,
        /// Whether it was noted.
        outcome: Result<(), StoreError>,
    },
    /// The stores refused to raise a ceiling, because a newer owner has claimed the section.
    Lost {
        /// Under which assignment it was served.
        owner: Owner,
        /// Which section.
        section: SectionId,
    },
    /// The last answer of everything unloaded so far has left or was thrown away.
    Drained,
    /// Serve nothing more: unload and release everything.
    Stop,
}

/// An action for the shell, carried out in order. Reads, claims, releases and the record may take their time; `Serve`
/// and `Unload` take effect before the next event, and before a longer lease does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the table.
    Read {
        /// The revisions seen last.
        revisions: Revisions,
        /// How long to wait for news.
        wait: Duration,
    },
    /// Claim sections.
    Claim {
        /// Which.
        sections: Vec<RangeInclusive<SectionId>>,
        /// The owner that claims.
        owner: Owner,
    },
    /// Make durable, on this machine, the sections served from now on; replaces the record before.
    Record(Vec<Serving>),
    /// Serve sections.
    Serve {
        /// Under which assignment.
        owner: Owner,
        /// Which.
        sections: Vec<RangeInclusive<SectionId>>,
        /// From where.
        claimed: Claimed,
    },
    /// Serve sections no more, from this very moment; [`NodeEvent::Drained`] follows.
    Unload {
        /// Under which assignment they were served.
        owner: Owner,
        /// Which.
        sections: Vec<RangeInclusive<SectionId>>,
    },
    /// Tell the stores that nothing more is handed out.
    Release {
        /// The owner that leaves.
        owner: Owner,
        /// Which sections.
        sections: Vec<RangeInclusive<SectionId>>,
    },
}

/// Sections that the table gives to this life of the node, and that it does not serve yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSections {
    /// Which.
    pub sections: Runs,
    /// When they were given.
    pub(crate) given: Moment,
    /// From when on no earlier owner can have a lease.
    pub due: Moment,
}

/// An AllocSvr's view of one Set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    rules: NodeRules,
    predecessor: Option<Predecessor>,
    lease: Lease,
    revisions: Revisions,
    /// The table that is obeyed.
    table: Option<Arc<Table>>,
    reads: Reads,
    /// The sections that this table gives to this incarnation, less those lost to a newer claim.
    holds: BTreeMap<Epoch, Hold>,
    /// The sections being recorded; they are served once they are.
    recording: Option<BTreeMap<Epoch, Runs>>,
    releases: Releases,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reads {
    /// One is on its way.
    Asking,
    /// The next is made then, without waiting for news.
    At(Moment),
    /// None is made again.
    Stopped,
}

impl Node {
    /// A node that knows nothing yet.
    pub fn new(rules: NodeRules, predecessor: Option<Predecessor>) -> Self {
        let lease = Lease::new(rules.lease, rules.flaws);
        Self {
            rules,
            predecessor,
            lease,
            revisions: Revisions::default(),
            table: None,
            reads: Reads::Stopped,
            holds: BTreeMap::new(),
            recording: None,
            releases: Releases::default(),
        }
    }

    /// Takes note of `event` at `now`, and returns the actions to carry out.
    pub fn on(&mut self, now: Moment, event: NodeEvent) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            NodeEvent::Start => self.reads = Reads::At(now),
            NodeEvent::Wake => {}
            NodeEvent::Read { asked, outcome } => self.read(now, asked, outcome, &mut actions),
            NodeEvent::Claimed { owner, outcome } => {
                let retry = self.retry();
                if let Some(hold) = self.holds.get_mut(&owner.epoch) {
                    hold.claimed(now, outcome, retry);
                }
            }
            NodeEvent::Recorded => self.serve(&mut actions),
            NodeEvent::Released { owner, outcome } => {
                let retry = self.retry();
                self.releases.released(owner.epoch, outcome, now, retry);
            }
            NodeEvent::Lost { owner, section } => self.lose(now, owner.epoch, section, &mut actions),
            NodeEvent::Drained => self.releases.drained(),
            NodeEvent::Stop => self.stop(now, &mut actions),
        }
        self.proceed(now, &mut actions);
        actions
    }

    /// Until when numbers may be handed out: compared with the clock after each request arrived and again before its
    /// answer leaves. Requests to unloaded sections must not be answered under a later deadline than the one before.
    pub fn lease_until(&self) -> Option<Moment> {
        self.lease.until()
    }

    /// How long a read lets it serve by now.
    pub fn lease(&self) -> Duration {
        self.lease.length()
    }

    /// The table that is obeyed.
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        self.table.as_ref()
    }

    /// The sections that the table gives to this incarnation, whether they are served already or not.
    pub fn held(&self) -> Runs {
        self.holds.values().fold(Runs::default(), |all, hold| all.union(&hold.sections()))
    }

    /// The sections given to this incarnation and not served yet.
    pub fn waiting(&self) -> Vec<WaitingSections> {
        let waiting = |hold: &Hold| {
            let (sections, given, due) = hold.waiting()?;
            Some(WaitingSections { sections: sections.clone(), given, due })
        };
        self.holds.values().filter_map(waiting).collect()
    }

    /// When to send [`NodeEvent::Wake`].
    pub fn wake_at(&self) -> Option<Moment> {
        let read = match self.reads {
            Reads::At(at) => Some(at),
            Reads::Asking | Reads::Stopped => None,
        };
        let holds = self.holds.values().filter_map(Hold::wake_at);
        read.into_iter().chain(holds).chain(self.releases.wake_at()).min()
    }

    /// Whether a [`NodeEvent::Stop`] is carried out: nothing is served, and all is released that could be.
    pub fn is_stopped(&self) -> bool {
        self.reads == Reads::Stopped && self.holds.is_empty() && self.releases.is_over()
    }

    fn owner(&self, epoch: Epoch) -> Owner {
        Owner { epoch, incarnation: self.rules.incarnation }
    }

    fn read(
        &mut self,
        now: Moment,
        asked: Moment,
        outcome: Result<Reading, StoreError>,
        actions: &mut Vec<Action>,
    ) {
        if self.reads != Reads::Asking {
            return;
        }
        let Ok(reading) = outcome else {
            self.reads = Reads::At(now + self.retry());
            return;
        };
        self.revisions = reading.revisions;
        if let Some(bounds) = &reading.bounds {
            self.lease.follow(bounds);
        }
        // A table that counted is never followed by an older one; a reading that says otherwise renews nothing.
        let obeyed = self.table.as_ref().map(|table| table.version);
        // Uids that the Set gave up are taken away at once, even if the table still has them.
        let within = |table: Arc<Table>| match &reading.bounds {
            Some(bounds) => table.within(&bounds.uids),
            None => Some(table),
        };
        let table = reading.table.and_then(within);
        if let Some(table) = table.filter(|table| obeyed.is_none_or(|obeyed| obeyed <= table.version)) {
            let same = |known: &Arc<Table>| known.version == table.version && known.uids == table.uids;
            if !self.table.as_ref().is_some_and(same) {
                self.obey(now, &table, actions);
                self.table = Some(table);
            }
            self.lease.renew(asked, now);
            for hold in self.holds.values_mut() {
                hold.look_again(now);
            }
        }
        // One lost answer does not end the lease.
        actions.push(self.ask(self.lease.length() / 4));
    }

    /// The pause after a failure.
    fn retry(&self) -> Duration {
        self.lease.length() / 40
    }

    fn ask(&mut self, wait: Duration) -> Action {
        self.reads = Reads::Asking;
        Action::Read { revisions: self.revisions.clone(), wait }
    }

    /// Unloads the sections that a newer table takes away, and begins to hold those that it gives.
    ///
    /// Sections that it leaves under their epoch go on being served, even when the lease was over in between. An epoch is
    /// the version of the table that gave the sections: an owner that got them since from a table that counted would have
    /// them under a newer epoch, in that table and in every later one, and back here they would carry a newer epoch again.
    /// A table that never counted was obeyed by no node.
    fn obey(&mut self, now: Moment, table: &Table, actions: &mut Vec<Action>) {
        let mut given: BTreeMap<Epoch, Vec<RangeInclusive<SectionId>>> = BTreeMap::new();
        for one in table.of(&self.rules.name) {
            if one.incarnation == self.rules.incarnation || self.rules.flaws.has(Flaw::EpochOfNode) {
                given.entry(one.epoch).or_default().push(one.sections.clone());
            }
        }
        let mut given: BTreeMap<Epoch, Runs> =
            given.into_iter().map(|(epoch, sections)| (epoch, Runs::new(sections))).collect();
        let none = Runs::default();
        let epochs: Vec<Epoch> = self.holds.keys().copied().collect();
        for epoch in epochs {
            self.keep(now, epoch, given.get(&epoch).unwrap_or(&none), actions);
            if given.remove(&epoch).is_none() {
                self.holds.remove(&epoch);
            }
        }
        let takeover = self.lease.takeover(now);
        let gained = given.into_iter().map(|(epoch, sections)| (epoch, Hold::new(sections, now, takeover)));
        self.holds.extend(gained);
    }

    /// Gives up the sections that are held under `epoch` but not in `kept`.
    fn keep(&mut self, now: Moment, epoch: Epoch, kept: &Runs, actions: &mut Vec<Action>) {
        let Some(hold) = self.holds.get_mut(&epoch) else { return };
        let lost = hold.keep(kept);
        if !lost.is_empty() {
            self.releases.unload(epoch, &lost, now, now + self.lease.length() * 2);
            actions.push(Action::Unload { owner: self.owner(epoch), sections: lost.into_ranges() });
        }
    }

    fn lose(&mut self, now: Moment, epoch: Epoch, section: SectionId, actions: &mut Vec<Action>) {
        let Some(hold) = self.holds.get(&epoch) else { return };
        let kept = hold.sections().difference(&Runs::new([section..=section]));
        self.keep(now, epoch, &kept, actions);
    }

    fn stop(&mut self, now: Moment, actions: &mut Vec<Action>) {
        let epochs: Vec<Epoch> = self.holds.keys().copied().collect();
        for epoch in epochs {
            self.keep(now, epoch, &Runs::default(), actions);
        }
        self.holds.clear();
        self.lease.end();
        self.reads = Reads::Stopped;
    }

    fn serve(&mut self, actions: &mut Vec<Action>) {
        for (epoch, sections) in self.recording.take().unwrap_or_default() {
            let served = self.holds.get_mut(&epoch).and_then(|hold| hold.serve(&sections));
            if let Some((sections, claimed)) = served {
                let owner = self.owner(epoch);
                actions.push(Action::Serve { owner, sections: sections.into_ranges(), claimed });
            }
        }
    }

    /// Does everything that has become possible.
    fn proceed(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if matches!(self.reads, Reads::At(at) if at <= now) {
            actions.push(self.ask(Duration::ZERO));
        }
        let incarnation = self.rules.incarnation;
        for (&epoch, hold) in &mut self.holds {
            hold.settle(now, self.predecessor.as_ref());
            if let Some(sections) = hold.claim(now) {
                let owner = Owner { epoch, incarnation };
                actions.push(Action::Claim { sections: sections.ranges().to_vec(), owner });
            }
        }
        if self.recording.is_none() && self.holds.values().any(|hold| !hold.ready().is_empty()) {
            let ready = |(&epoch, hold): (&Epoch, &Hold)| (epoch, hold.ready().clone());
            self.recording = Some(self.holds.iter().map(ready).collect());
            let record = |(&epoch, hold): (&Epoch, &Hold)| {
                let sections = hold.serving().union(hold.ready());
                (!sections.is_empty()).then(|| (self.owner(epoch), sections.into_ranges()))
            };
            actions.push(Action::Record(self.holds.iter().filter_map(record).collect()));
        }
        for (epoch, sections) in self.releases.release(now) {
            actions.push(Action::Release { owner: self.owner(epoch), sections: sections.into_ranges() });
        }
    }
}

#[cfg(test)]
mod tests;
