//! Releases: sections that are no longer served, until the stores have noted that their last answer has left. Pure;
//! owned by `node`. A release only spares the next owner a wait, so it is given up once that would be over.

use std::collections::BTreeMap;
use std::time::Duration;

use super::runs::Runs;
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::Epoch;

/// The sections that are no longer served and not yet released, by the epoch under which they were served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Releases(BTreeMap<Epoch, Ended>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ended {
    /// Answers may still be on their way out.
    draining: Runs,
    /// To be released.
    due: Runs,
    /// A release is on its way.
    asking: Runs,
    /// The next release is made then or later.
    at: Moment,
    /// After this moment nobody waits for it.
    until: Moment,
}

impl Releases {
    /// `sections` are no longer served. Nobody waits for their release after `until`.
    pub(super) fn unload(&mut self, epoch: Epoch, sections: &Runs, now: Moment, until: Moment) {
        let (draining, due, asking) = Default::default();
        let ended = self.0.entry(epoch).or_insert_with(|| Ended { draining, due, asking, at: now, until });
        ended.draining = ended.draining.union(sections);
        ended.until = until;
    }

    /// The answers of everything unloaded have left.
    pub(super) fn drained(&mut self) {
        for ended in self.0.values_mut() {
            let drained = std::mem::take(&mut ended.draining);
            ended.due = ended.due.union(&drained);
        }
    }

    /// The release on its way was noted, or may not have been.
    pub(super) fn released<E>(&mut self, epoch: Epoch, outcome: Result<(), E>, now: Moment, retry: Duration) {
        let Some(ended) = self.0.get_mut(&epoch) else { return };
        let asked = std::mem::take(&mut ended.asking);
        if outcome.is_err() {
            ended.due = ended.due.union(&asked);
            ended.at = now + retry;
        }
    }

    /// The releases to make now.
    pub(super) fn release(&mut self, now: Moment) -> Vec<(Epoch, Runs)> {
        let mut releases = Vec::new();
        for (&epoch, ended) in &mut self.0 {
            if now > ended.until {
                ended.due = Runs::default();
            }
            if ended.asking.is_empty() && !ended.due.is_empty() && ended.at <= now {
                ended.asking = std::mem::take(&mut ended.due);
                releases.push((epoch, ended.asking.clone()));
            }
        }
        self.0.retain(|_, ended| !ended.is_over());
        releases
    }

    /// When there may be something to release without any event.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        let waiting = self.0.values().filter(|ended| ended.asking.is_empty() && !ended.due.is_empty());
        waiting.map(|ended| ended.at).min()
    }

    /// Whether everything has left.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

impl Ended {
    fn is_over(&self) -> bool {
        self.draining.is_empty() && self.due.is_empty() && self.asking.is_empty()
    }
}
