//! Uids from one Set to another (docs/CLUSTER.md, "Other uids"), while neither is served. The Set that gives them has
//! them no more from the configuration on that the file names; the Set that takes them stores their ceilings, and has
//! them from the next configuration on. Each step goes on when it is run again. `seqsvr backup --uids` and
//! `seqsvr restore` call it.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::sleep;

use super::change::{ChangedConfiguration, Unchanged};
use super::{Quorum, Revisions};
use seqsvr_core::flaws::Flaws;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::backup::Backup;
use seqsvr_core::store::configuration::Taking;
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::{
    Ceiling, Configuration, Layout, Move, Moves, Owner, SectionStore, SetTerms, StoreError,
};

/// Ceilings in one raise.
const BATCH: usize = 10_000;

/// Uids that a Set gave up, and the largest numbers that may have been handed out to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which uids.
    pub uids: RangeInclusive<u32>,
    /// The number of the Set that may take them.
    pub to: u32,
    /// Which Set gave them, and when.
    pub by: Move,
    /// The ceilings above 0 of their sections, and the layout of these.
    pub backup: Backup,
}

impl From<StoreError> for Unchanged {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Quorum {
    /// Takes `uids` from the Set `from`, so that the Set `to` can take them. Once they were given, answers the same again.
    ///
    /// # Errors
    ///
    /// `Unchanged`. Cut off at any moment, the uids are served by nobody until it is called again and they are taken.
    pub async fn give(&self, uids: &RangeInclusive<u32>, from: u32, to: u32) -> Result<Moved, Unchanged> {
        self.nobody_acts().await?;
        let giving = |now: &Configuration| match now.given(uids, to) {
            Some(_) if !now.uids.contains(uids.start()) => Ok(None),
            _ => Ok(Some(now.giving(uids, to)?)),
        };
        let configuration = self.reconfigure(giving).await?.configuration;
        // An AllocSvr that was not stopped may hold a lease; no raise of these sections is confirmed.
        sleep(configuration.lease * 11 / 10).await;
        let everything = self.backup().await?;
        let layout = configuration.layout;
        let sections = section(layout, *uids.start())..=section(layout, *uids.end());
        let number = configuration.given(uids, to).map(|given| given.number).unwrap_or_default();
        let backup = part(everything, layout, &sections);
        Ok(Moved { uids: uids.clone(), to, by: Move { from, number }, backup })
    }

    /// Makes uids that another Set gave up this Set's own, no number of which comes again. `terms`: the terms of this Set, if its
    /// stores are new.
    ///
    /// # Errors
    ///
    /// `Unchanged`. Cut off at any moment, the uids are served by nobody until it is called again.
    pub async fn take(&self, moved: &Moved, terms: &SetTerms) -> Result<ChangedConfiguration, Unchanged> {
        let Some(layout) = moved.backup.layout else { return Err(Unchanged::File) };
        self.described(usize::MAX).await;
        if self.configuration().is_none() {
            let (uids, moves) = (moved.uids.clone(), Moves::default());
            self.begin(&SetTerms { uids, moves, ..terms.clone() }, Some(moved.by)).await?;
        }
        self.nobody_acts().await?;
        let stored = self.configuration().ok_or(Unchanged::Unconfigured)?.layout;
        if stored.section_size != layout.section_size {
            let (stored, file) = (stored.section_size, layout.section_size);
            return Err(Unchanged::Sections { stored, file });
        }
        let sections = section(stored, *moved.uids.start())..=section(stored, *moved.uids.end());
        self.none_is_larger(moved, stored, &sections).await?;
        self.reconfigure(|now| Ok(now.taking(&moved.uids, moved.by, Flaws::default())?)).await?;
        let epoch = self.vacant_under(&sections).await?;
        // The same one when it is called again.
        let incarnation = 1 << 63 | u64::from(moved.by.from) << 31 | (moved.by.number & 0x7fff_ffff);
        self.keep(moved, &sections, stored, Owner { epoch, incarnation }).await?;
        let taking = Some(Taking { uids: moved.uids.clone(), by: moved.by });
        let settled = |now: &Configuration| Ok(now.settled().filter(|_| now.taking == taking));
        self.reconfigure(settled).await
    }

    /// Refuses while an arbiter acts: a node that it gives sections to may serve them.
    async fn nobody_acts(&self) -> Result<(), Unchanged> {
        if self.configuration().is_none() {
            self.described(usize::MAX).await;
        }
        let reading = self.read_table(&Revisions::default(), Duration::ZERO).await?;
        match reading.acting {
            Some(ago) if ago < self.silent => Err(Unchanged::Acting),
            _ => Ok(()),
        }
    }

    /// The Set may have had these uids before: other Sets have only raised the ceilings that it gave them.
    async fn none_is_larger(
        &self,
        moved: &Moved,
        layout: Layout,
        sections: &RangeInclusive<SectionId>,
    ) -> Result<(), Unchanged> {
        let there = part(self.backup().await?, layout, sections);
        let file: std::collections::BTreeMap<SectionId, u64> = moved
            .backup
            .ceilings
            .iter()
            .flat_map(|(run, max)| each(run, *max))
            .map(|one| (one.section, one.max))
            .collect();
        let larger = there
            .ceilings
            .iter()
            .flat_map(|(run, max)| each(run, *max))
            .find(|one| file.get(&one.section).copied().unwrap_or(0) < one.max);
        match larger {
            Some(one) => Err(Unchanged::Stale { section: one.section, stored: one.max }),
            None => Ok(()),
        }
    }

    /// Stores the ceilings, as an owner of the sections that has left them.
    async fn keep(
        &self,
        moved: &Moved,
        sections: &RangeInclusive<SectionId>,
        layout: Layout,
        owner: Owner,
    ) -> Result<(), Unchanged> {
        let ranges = std::slice::from_ref(sections);
        self.claim(ranges, owner, layout).await?;
        let ceilings: Vec<Ceiling> =
            moved.backup.ceilings.iter().flat_map(|(run, max)| each(run, *max)).collect();
        for batch in ceilings.chunks(BATCH) {
            for (raise, outcome) in batch.iter().zip(self.raise(owner, batch).await) {
                if let Err(why) = outcome {
                    return Err(Unchanged::Unavailable(format!("section {}: {why}", raise.section)));
                }
            }
        }
        Ok(self.release(ranges, owner).await?)
    }

    /// Newer than every claim of `sections`, none of which the table has, and older than every later one.
    async fn vacant_under(&self, sections: &RangeInclusive<SectionId>) -> Result<Epoch, Unchanged> {
        let newest = self.newest_epoch().await?;
        let reading = self.read(&Revisions::default(), Duration::ZERO).await?;
        match reading.table {
            Some(table)
                if table.sections().start() > sections.end() || table.sections().end() < sections.start() =>
            {
                Ok(table.version)
            }
            // A new Set: the terms of arbiters begin at 256.
            None => Ok(Epoch { term: 1, version: newest.version + 1 }),
            Some(_) => Err(Unchanged::Table),
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
