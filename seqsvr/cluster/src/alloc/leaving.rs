//! Releases: what was served and is not any more, until the stores have noted that its last answer has left. Pure; owned by
//! `node`. A release only spares the next owner a wait, so it is given up once that would be over.

use std::collections::BTreeMap;
use std::time::Duration;

use super::runs::Runs;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::Epoch;

/// The sections on their way out, by the epoch under which they were served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Leaving(BTreeMap<Epoch, Parting>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parting {
    /// Answers may still be on their way out.
    draining: Runs,
    /// To be released.
    due: Runs,
    /// A release is on its way.
    asking: Runs,
    /// The next release is to be made then or later.
    at: Moment,
    /// After this moment nobody waits for it.
    until: Moment,
}

impl Leaving {
    /// `sections` are no longer served. Nobody waits for their release after `until`.
    pub(super) fn unload(&mut self, epoch: Epoch, sections: &Runs, now: Moment, until: Moment) {
        let (draining, due, asking) = Default::default();
        let parting =
            self.0.entry(epoch).or_insert_with(|| Parting { draining, due, asking, at: now, until });
        parting.draining = parting.draining.union(sections);
        parting.until = until;
    }

    /// The answers of everything unloaded have left.
    pub(super) fn drained(&mut self) {
        for parting in self.0.values_mut() {
            let drained = std::mem::take(&mut parting.draining);
            parting.due = parting.due.union(&drained);
        }
    }

    /// The release on its way was noted, or may not have been.
    pub(super) fn released<E>(&mut self, epoch: Epoch, outcome: Result<(), E>, now: Moment, retry: Duration) {
        let Some(parting) = self.0.get_mut(&epoch) else { return };
        let asked = std::mem::take(&mut parting.asking);
        if outcome.is_err() {
            parting.due = parting.due.union(&asked);
            parting.at = now + retry;
        }
    }

    /// The releases to make now.
    pub(super) fn release(&mut self, now: Moment) -> Vec<(Epoch, Runs)> {
        let mut releases = Vec::new();
        for (&epoch, parting) in &mut self.0 {
            if now > parting.until {
                parting.due = Runs::default();
            }
            if parting.asking.is_empty() && !parting.due.is_empty() && parting.at <= now {
                parting.asking = std::mem::take(&mut parting.due);
                releases.push((epoch, parting.asking.clone()));
            }
        }
        self.0.retain(|_, parting| !parting.is_over());
        releases
    }

    /// When there may be something to release without any event.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        let waiting = self.0.values().filter(|parting| parting.asking.is_empty() && !parting.due.is_empty());
        waiting.map(|parting| parting.at).min()
    }

    /// Whether everything has left.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

impl Parting {
    fn is_over(&self) -> bool {
        self.draining.is_empty() && self.due.is_empty() && self.asking.is_empty()
    }
}
