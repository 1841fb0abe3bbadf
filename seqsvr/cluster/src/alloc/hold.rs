//! The sections that a table gave to this incarnation under one epoch: which of them still wait, may be served, are
//! served. Pure; owned by `node`, one for each epoch that the table names.

use std::time::Duration;

use super::runs::Runs;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::SectionId;
use seqsvr_core::store::{Claimed, Owner, StoreError};

/// The process that had this one's data directory before, proved dead by the lock on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Predecessor {
    /// Which life of the node it was.
    pub incarnation: u64,
    /// The sections that it had recorded as served.
    pub serving: Vec<Serving>,
}

/// An owner and the sections that it serves.
pub type Serving = (Owner, Vec<std::ops::RangeInclusive<SectionId>>);

/// Sections under one epoch, from the table that gave them to the one that takes them away. They only become fewer: more
/// sections under an epoch that is known already would break the rules of tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold {
    /// When the table gave them.
    given: Moment,
    /// From when on no earlier owner can have a lease.
    takeover: Moment,
    /// Given, not served.
    waiting: Runs,
    /// Those of the waiting that nobody else can be serving.
    ready: Runs,
    /// Handed to `Serve`.
    serving: Runs,
    /// The newest claim that stands, of everything that waits.
    found: Option<Claimed>,
    /// A claim is on its way.
    asking: bool,
    /// When to make the next claim, once none is on its way.
    due: Option<Moment>,
}

impl Hold {
    /// Sections that counted as given at `now`.
    pub(super) fn new(sections: Runs, now: Moment, takeover: Moment) -> Self {
        let (ready, serving) = (Runs::default(), Runs::default());
        let due = Some(now);
        Self { given: now, takeover, waiting: sections, ready, serving, found: None, asking: false, due }
    }

    /// The sections not served yet, with when they were given, and from when on they could have been served.
    pub(super) fn waiting(&self) -> Option<(&Runs, Moment, Moment)> {
        (!self.waiting.is_empty()).then_some((&self.waiting, self.given, self.takeover))
    }

    /// The sections handed to `Serve`.
    pub(super) fn serving(&self) -> &Runs {
        &self.serving
    }

    /// The sections that may be served once that is recorded.
    pub(super) fn ready(&self) -> &Runs {
        &self.ready
    }

    /// Everything held.
    pub(super) fn sections(&self) -> Runs {
        self.waiting.union(&self.serving)
    }

    /// Keeps only `kept`, and returns the served sections of the rest.
    pub(super) fn keep(&mut self, kept: &Runs) -> Runs {
        let lost = self.serving.difference(kept);
        for runs in [&mut self.waiting, &mut self.ready, &mut self.serving] {
            *runs = runs.intersection(kept);
        }
        lost
    }

    /// The stores may have changed: an earlier owner may have released.
    pub(super) fn look_again(&mut self, now: Moment) {
        self.due = Some(now);
    }

    /// The sections to claim now.
    pub(super) fn claim(&mut self, now: Moment) -> Option<&Runs> {
        let due = !self.asking && self.due.is_some_and(|due| due <= now);
        if !due || self.waiting == self.ready {
            return None;
        }
        self.asking = true;
        self.due = None;
        Some(&self.waiting)
    }

    /// Notes the outcome of the claim that was on its way.
    pub(super) fn claimed(&mut self, now: Moment, outcome: Result<Claimed, StoreError>, retry: Duration) {
        self.asking = false;
        match outcome {
            Ok(found) => self.found = Some(found),
            // Refused for a newer claim of one of the sections: the table that gave it away is about to be read.
            Err(_) => self.due = Some(self.due.map_or(now + retry, |due| due.min(now + retry))),
        }
    }

    /// Finds the sections that no other process can be serving: all after the wait, and before it those that had no earlier
    /// owner, one that has released, or the dead predecessor that recorded them.
    pub(super) fn settle(&mut self, now: Moment, predecessor: Option<&Predecessor>) {
        let Some(found) = &self.found else { return };
        if now >= self.takeover {
            self.ready = self.waiting.clone();
            return;
        }
        let mut free = self.waiting.clone();
        for earlier in found.earlier.iter().filter(|earlier| !earlier.released) {
            let recorded = predecessor.map(|dead| recorded(dead, earlier.owner)).unwrap_or_default();
            free = free.difference(&Runs::new([earlier.sections.clone()]).difference(&recorded));
        }
        self.ready = self.ready.union(&free);
    }

    /// `sections` are recorded: those that are still ready are served from now on, from these ceilings.
    pub(super) fn serve(&mut self, sections: &Runs) -> Option<(Runs, Claimed)> {
        let served = self.ready.intersection(sections);
        let found = self.found.as_ref().filter(|_| !served.is_empty())?;
        let ceilings = found.ceilings.iter().filter(|ceiling| served.contains(ceiling.section));
        let claimed =
            Claimed { ceilings: ceilings.copied().collect(), floor: found.floor, earlier: Vec::new() };
        self.waiting = self.waiting.difference(&served);
        self.ready = self.ready.difference(&served);
        self.serving = self.serving.union(&served);
        Some((served, claimed))
    }

    /// When there may be something to do here without any event.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        if self.waiting == self.ready {
            return None;
        }
        let takeover = self.found.as_ref().map(|_| self.takeover);
        let due = self.due.filter(|_| !self.asking);
        takeover.into_iter().chain(due).min()
    }
}

fn recorded(dead: &Predecessor, owner: Owner) -> Runs {
    let of_owner =
        dead.serving.iter().filter(|(one, _)| *one == owner && owner.incarnation == dead.incarnation);
    Runs::new(of_owner.flat_map(|(_, sections)| sections.iter().cloned()))
}
