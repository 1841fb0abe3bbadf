//! Uids from one Set to another (docs/CLUSTER.md, "Other uids"): the Set that gives them stops serving them, and writes
//! their ceilings into a file once nobody can hold a lease on them; the Set that takes them serves them once these
//! ceilings are stored. Each is two configurations with work in between, and whoever runs it again goes on. `seqsvr
//! store give` and `take` call it.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::sleep;

use super::change::{ATTEMPTS, Changed, Unchanged};
use super::{Quorum, Revisions};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::backup::Backup;
use seqsvr_core::store::configuration::Transition;
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::{Ceiling, Configuration, Layout, Owner, RaiseError, SectionStore, StoreError};

/// Ceilings in one raise.
const BATCH: usize = 10_000;

/// Uids that a Set gave up, and what was the largest number that may have been handed out to any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which uids.
    pub uids: RangeInclusive<u32>,
    /// The ceilings above 0 of their sections, and what these mean.
    pub backup: Backup,
}

impl From<StoreError> for Unchanged {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Quorum {
    /// Takes `uids` from the Set, and hands what must move with them to `save`, which makes it durable. The other uids are served
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// `Unchanged`. Cut off at any moment, or when `save` fails, the uids are served by nobody until it is called again.
    pub async fn give<E>(
        &self,
        uids: &RangeInclusive<u32>,
        save: impl Fn(&Moved) -> Result<(), E>,
    ) -> Result<Result<Changed, E>, Unchanged> {
        self.serving().await?;
        for _ in 0..ATTEMPTS {
            let given = self.reconfigure(|now| Ok(now.giving(uids)?)).await?.configuration;
            // No read of an earlier configuration is answered any more, and no raise of these sections is confirmed.
            sleep(given.awaited() * 11 / 10).await;
            let everything = self.backup().await?;
            let layout = given.layout;
            let sections = section(layout, *uids.start())..=section(layout, *uids.end());
            let moved = Moved { uids: uids.clone(), backup: part(everything, layout, &sections) };
            if let Err(error) = save(&moved) {
                return Ok(Err(error));
            }
            // One that came meanwhile has to be waited for itself.
            let settled = |now: &Configuration| Ok(now.settled().filter(|_| now.number == given.number));
            let done = self.reconfigure(settled).await?;
            if done.configuration.transition.is_none() {
                return Ok(Ok(Changed { already: false, ..done }));
            }
        }
        Err(Unchanged::Unavailable("others change the stores at the same time".to_owned()))
    }

    /// Makes uids that another Set gave up this Set's own, no number of which comes again. `None`: the Set is new, and begins with
    /// these ceilings when its arbiter and AllocSvrs are started.
    ///
    /// # Errors
    ///
    /// `Unchanged`. Cut off at any moment, the uids are served by nobody until it is called again.
    pub async fn take(&self, moved: &Moved, incarnation: u64) -> Result<Option<Changed>, Unchanged> {
        let Some(layout) = moved.backup.layout else { return Err(Unchanged::File) };
        self.described(usize::MAX).await;
        if self.configuration().is_none() {
            let there = self.backup().await?;
            if there.table.is_some() || there.promised > 0 {
                return Err(Unchanged::Unconfigured);
            }
            // Below every epoch of an arbiter: their terms begin at 256.
            let epoch = Epoch { term: 1, version: there.newest.version + 1 };
            self.keep(moved, there.layout.unwrap_or(layout), Owner { epoch, incarnation }).await?;
            return Ok(None);
        }
        self.serving().await?;
        let stored = self.configuration().ok_or(Unchanged::Unconfigured)?.layout;
        if stored.section_size != layout.section_size {
            let (stored, file) = (stored.section_size, layout.section_size);
            return Err(Unchanged::Sections { stored, file });
        }
        let begun = self.reconfigure(|now| Ok(now.taking(&moved.uids)?)).await?;
        if begun.configuration.transition.is_none() {
            return Ok(Some(begun));
        }
        let sections = section(stored, *moved.uids.start())..=section(stored, *moved.uids.end());
        let epoch = self.vacant_under(&sections).await?;
        self.keep(moved, stored, Owner { epoch, incarnation }).await?;
        let taking = Some(Transition::Taking(moved.uids.clone()));
        let settled = |now: &Configuration| Ok(now.settled().filter(|_| now.transition == taking));
        let done = self.reconfigure(settled).await?;
        Ok(Some(Changed { already: false, ..done }))
    }

    /// Stores the ceilings, as an owner of the sections that has left them.
    async fn keep(&self, moved: &Moved, layout: Layout, owner: Owner) -> Result<(), Unchanged> {
        let ranges = [section(layout, *moved.uids.start())..=section(layout, *moved.uids.end())];
        self.claim(&ranges, owner, layout).await?;
        let ceilings: Vec<Ceiling> =
            moved.backup.ceilings.iter().flat_map(|(run, max)| each(run, *max)).collect();
        for batch in ceilings.chunks(BATCH) {
            for (raise, outcome) in batch.iter().zip(self.raise(owner, batch).await) {
                match outcome {
                    // Higher already: it was this Set's own before.
                    Ok(_) | Err(RaiseError::Smaller { .. }) => {}
                    Err(why) => {
                        return Err(Unchanged::Unavailable(format!("section {}: {why}", raise.section)));
                    }
                }
            }
        }
        Ok(self.release(&ranges, owner).await?)
    }

    /// The version of the table that counts: newer than every claim of `sections`, none of which it has, and older than every
    /// later one.
    async fn vacant_under(&self, sections: &RangeInclusive<SectionId>) -> Result<Epoch, Unchanged> {
        let reading = self.read(&Revisions::default(), Duration::ZERO).await?;
        match reading.table {
            Some(table)
                if table.sections().start() > sections.end() || table.sections().end() < sections.start() =>
            {
                Ok(table.version)
            }
            _ => Err(Unchanged::Table),
        }
    }
}

fn section(layout: Layout, uid: u32) -> SectionId {
    SectionId::new(uid / layout.section_size)
}

fn each(run: &RangeInclusive<SectionId>, max: u64) -> impl Iterator<Item = Ceiling> + use<> {
    (run.start().get()..=run.end().get())
        .map(move |section| Ceiling { section: SectionId::new(section), max })
}

/// The ceilings of these sections alone.
fn part(everything: Backup, layout: Layout, sections: &RangeInclusive<SectionId>) -> Backup {
    let within = |(run, max): (RangeInclusive<SectionId>, u64)| {
        let run = (*run.start()).max(*sections.start())..=(*run.end()).min(*sections.end());
        (!run.is_empty()).then_some((run, max))
    };
    let ceilings = everything.ceilings.into_iter().filter_map(within).collect();
    Backup { layout: Some(layout), ceilings, ..Backup::default() }
}
