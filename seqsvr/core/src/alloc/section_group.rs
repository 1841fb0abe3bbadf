//! A section group: the sections that one owner got together, with memory of their own and the task that raises their
//! ceilings. A section that comes back belongs to a new group with fresh memory, so that no value of the old one can be
//! handed out again. `embedded` or the server of a Set owns the group; dropping it ends it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::metrics::Counters;
use super::raiser::Raiser;
use super::shared::SectionGroupState;
use crate::config::Options;
use crate::ids::SectionId;
use crate::store::{Claimed, Owner, SectionStore};

/// The sections that one owner got together, while they are served.
pub struct SectionGroup {
    shared: Arc<SectionGroupState>,
    stop: CancellationToken,
}

/// The parts of a section group beside its sections.
pub struct Means {
    /// Where ceilings are raised.
    pub store: Arc<dyn SectionStore>,
    /// By which settings.
    pub options: Options,
    /// Where its events are counted.
    pub counters: Arc<Counters>,
    /// Called with each section that another owner has claimed.
    pub lost: Box<dyn Fn(SectionId) + Send + Sync>,
}

impl SectionGroup {
    /// Begins to serve `sections`, sorted and without overlap, which `owner` claimed; within a Tokio runtime. The handle
    /// is the raiser's: it ends, after a raise that is under way, when the section group was stopped or dropped.
    pub fn begin(
        means: Means,
        owner: Owner,
        sections: &[RangeInclusive<SectionId>],
        claimed: &Claimed,
    ) -> (Self, JoinHandle<()>) {
        let Means { store, options, counters, lost } = means;
        let shared = Arc::new(SectionGroupState::new(&options, owner, sections, claimed, counters));
        let stop = CancellationToken::new();
        let raiser = Raiser { shared: Arc::clone(&shared), store, options, stop: stop.clone(), lost };
        let raiser = tokio::spawn(raiser.run());
        (Self { shared, stop }, raiser)
    }

    /// Its memory.
    #[inline]
    pub fn shared(&self) -> &SectionGroupState {
        &self.shared
    }

    /// Ends it: the raiser closes all sections when a raise under way has ended.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for SectionGroup {
    fn drop(&mut self) {
        self.stop();
    }
}
