//! The part of a store that must outlive its loss: the ceilings, and how far epochs, terms and the table had come. Taken from any store,
//! and put into any, by the same claims and raises by which an owner would: so nothing that a store refuses can be restored, and stored
//! values only grow. `backup_file` is its form on disk.
//!
//! Numbers handed out after the backup are in no copy. Therefore every section starts `ahead` of its backed-up ceiling, also a section that
//! the backup does not name, and epochs and terms begin above all that can have been used since.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

use super::tables::{Revisions, RoutingTableStore, WriteError};
use super::{Ceiling, Layout, MAX_CEILING, Moves, Owner, RaiseError, SectionStore, StoreError};
use crate::ids::{Epoch, SectionId};
use crate::routing::Table;
use crate::store::message::Copy;

/// How far ahead of the backup every section starts unless told otherwise.
pub const AHEAD: u64 = 10_000_000;
/// Terms that arbiters can have used since the backup: one for each takeover.
const ROUNDS: u64 = 1 << 20;
/// Terms are round × this + the number of the arbiter.
const NUMBERS: u64 = 256;
/// Ceilings in one raise.
const BATCH: usize = 10_000;

/// Everything that a restore needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backup {
    /// Fixed by the first claim, or when a replica is initialised.
    pub layout: Option<Layout>,
    /// The largest term that was promised; 0 for stores without tables.
    pub promised: u64,
    /// The newest epoch of any claim.
    pub newest: Epoch,
    /// The least that every section starts at, listed or not.
    pub floor: u64,
    /// The newest table.
    pub table: Option<Arc<Table>>,
    /// Sorted runs of sections with the same ceiling above 0.
    pub ceilings: Vec<(RangeInclusive<SectionId>, u64)>,
    /// Which uids went to other Sets, and came from others.
    pub moves: Moves,
}

impl Backup {
    /// With `ceilings`, which are sorted by section.
    pub fn with(self, ceilings: impl IntoIterator<Item = Ceiling>) -> Self {
        self.with_runs(ceilings.into_iter().map(|one| (one.section..=one.section, one.max)))
    }

    /// With runs of sections, which are sorted.
    fn with_runs(mut self, runs: impl IntoIterator<Item = (RangeInclusive<SectionId>, u64)>) -> Self {
        for (sections, max) in runs {
            match self.ceilings.last_mut() {
                Some((run, same))
                    if run.end().get().checked_add(1) == Some(sections.start().get()) && *same == max =>
                {
                    *run = *run.start()..=*sections.end();
                }
                _ => self.ceilings.push((sections, max)),
            }
        }
        self
    }

    /// Whether the store was ever used: claimed from, or led by an arbiter.
    pub fn is_used(&self) -> bool {
        let Self { promised, newest, floor, table, ceilings, .. } = self;
        *promised > 0 || *newest > Epoch::default() || *floor > 0 || table.is_some() || !ceilings.is_empty()
    }

    /// The largest term in it.
    fn term(&self) -> u64 {
        let table = self.table.as_ref().map_or(0, |table| table.version.term);
        self.promised.max(self.newest.term).max(table)
    }
}

impl From<Copy> for Backup {
    fn from(copy: Copy) -> Self {
        // New stores agree on a configuration of their own, but the uids of the Set outlive it. An arbiter that has not yet taken given
        // uids out of the table, or taken ones in, must not decide whose they are.
        let Copy { promised, table, layout, sections, configured } = copy;
        let moves = configured.current.as_ref().map(|one| one.moves.clone()).unwrap_or_default();
        let table = match (table, configured.current) {
            (Some(table), Some(current)) if table.uids != current.uids => {
                Some(Arc::new(table.reshaped(&current.uids)))
            }
            (table, _) => table,
        };
        let newest = sections.iter().filter_map(|(_, state)| Some(state.owner?.owner.epoch)).max();
        let listed = sections.into_iter().filter(|(_, state)| state.ceiling > 0);
        let newest = newest.unwrap_or_default();
        let backup = Self { layout, promised, newest, table, moves, ..Self::default() };
        backup.with_runs(listed.map(|(run, state)| (run, state.ceiling)))
    }
}

/// How to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restoring {
    /// Added to every ceiling: more than what was handed out to any uid since the backup.
    pub ahead: u64,
    /// Also into stores that are in use.
    pub into_used: bool,
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Sections that start higher now.
    pub sections: u32,
    /// The largest ceiling.
    pub highest: u64,
    /// The term that all later ones are above.
    pub term: u64,
}

/// Why nothing, or not everything, was restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The backup is of stores that were never used.
    #[error("the backup holds nothing: its stores were never used")]
    Nothing,
    /// They hold something.
    #[error(
        "the stores are in use; restore into new ones (`seqsvr store --init`), or repeat with --into-used, which lowers nothing and \
         raises every section"
    )]
    Used,
    /// Somebody could hand out numbers meanwhile.
    #[error("an arbiter acts on these stores; stop all arbiters and AllocSvrs of the Set first")]
    Acting,
    /// Another Set hands out their numbers.
    #[error(
        "the backup is of the uids {} to {}, and the Set has {} to {} by now: it gave the others to another Set after the backup was \
         taken (`seqsvr backup --uids`), which hands out their numbers. Nothing was restored. Restore a backup that was taken since, or \
         take one of these stores as they are (`seqsvr backup`) and restore that with an --ahead that is large enough",
        backup.start(), backup.end(), set.start(), set.end()
    )]
    Given {
        /// The uids of the backup.
        backup: RangeInclusive<u32>,
        /// Those that the Set has left.
        set: RangeInclusive<u32>,
    },
    /// The sum is no ceiling.
    #[error("--ahead {0} takes a ceiling above {MAX_CEILING}, the largest; give a smaller one")]
    TooFar(u64),
    /// It may be repeated with `into_used`.
    #[error("{0}; what was restored so far does no harm: repeat with --into-used")]
    Store(#[from] StoreError),
    /// It may be repeated with `into_used`.
    #[error("the table was not restored: {0}; repeat with --into-used")]
    Table(#[from] WriteError),
    /// It may be repeated with `into_used`.
    #[error(
        "section {section}: {why}; stop all arbiters and AllocSvrs of the Set, and repeat with --into-used"
    )]
    Raise {
        /// The first that was not raised.
        section: SectionId,
        /// Why.
        why: RaiseError,
    },
}

/// Puts `backup` into stores of any kind, which nobody else may use meanwhile. `tables` where the stores keep some; `owner` is the
/// incarnation that the sections are claimed by, unlike any that was ever used.
///
/// # Errors
///
/// Every [`RestoreError`]. Ceilings that were raised by then stay raised.
pub async fn restore(
    sections: &dyn SectionStore,
    tables: Option<&dyn RoutingTableStore>,
    backup: &Backup,
    how: Restoring,
    incarnation: u64,
) -> Result<Restored, RestoreError> {
    let layout = backup.layout.filter(|_| backup.is_used()).ok_or(RestoreError::Nothing)?;
    let there = sections.backup().await?;
    if there.is_used() && !how.into_used {
        return Err(RestoreError::Used);
    }
    if let Some(tables) = tables {
        let before = tables.read(&Revisions::default(), std::time::Duration::ZERO).await?;
        if let (Some(bounds), Some(table)) = (&before.bounds, &backup.table)
            && (table.uids.start() < bounds.uids.start() || table.uids.end() > bounds.uids.end())
        {
            return Err(RestoreError::Given { backup: table.uids.clone(), set: bounds.uids.clone() });
        }
        if there.is_used() && before.acting.is_some_and(|ago| ago < SILENT) {
            return Err(RestoreError::Acting);
        }
    }
    let term = (backup.term().max(there.term()) / NUMBERS + ROUNDS) * NUMBERS;
    let owner = Owner { epoch: Epoch { term, version: 1 }, incarnation };
    let all = everything(backup, layout);
    let targets = targets(backup, &all, how.ahead).ok_or(RestoreError::TooFar(how.ahead))?;
    if let Some(tables) = tables {
        tables.promise(term).await?;
    }
    sections.claim(std::slice::from_ref(&all), owner, layout).await?;
    let mut restored = Restored { sections: 0, highest: 0, term };
    for batch in targets.chunks(BATCH) {
        for (raise, outcome) in batch.iter().zip(sections.raise(owner, batch).await) {
            match outcome {
                Ok(_) => restored.sections += 1,
                // Higher already.
                Err(RaiseError::Smaller { .. }) => {}
                Err(why) => return Err(RestoreError::Raise { section: raise.section, why }),
            }
            restored.highest = restored.highest.max(raise.max);
        }
    }
    // Nobody has to wait for this owner.
    sections.release(std::slice::from_ref(&all), owner).await?;
    if let (Some(tables), Some(table)) = (tables, &backup.table) {
        tables.write(&Arc::new(vacant(table, term))).await?;
    }
    Ok(restored)
}

/// An arbiter that was silent for this long has ended.
pub const SILENT: std::time::Duration = std::time::Duration::from_secs(5);

/// All sections that can have numbers: those of the Set, or of the whole uid space where there is no table.
fn everything(backup: &Backup, layout: Layout) -> RangeInclusive<SectionId> {
    match &backup.table {
        Some(table) => table.sections(),
        None => SectionId::new(0)..=SectionId::new(u32::MAX / layout.section_size),
    }
}

/// The ceiling that each section of `all` starts at. `None`: one of them would be too large.
fn targets(backup: &Backup, all: &RangeInclusive<SectionId>, ahead: u64) -> Option<Vec<Ceiling>> {
    let mut known: BTreeMap<u32, u64> = BTreeMap::new();
    for (run, max) in &backup.ceilings {
        known.extend((run.start().get()..=run.end().get()).map(|section| (section, *max)));
    }
    let target = |section: u32| {
        let max = known.get(&section).copied().unwrap_or(0).max(backup.floor).checked_add(ahead);
        let max = max.filter(|max| *max <= MAX_CEILING)?;
        Some(Ceiling { section: SectionId::new(section), max })
    };
    (all.start().get()..=all.end().get()).map(target).collect()
}

/// The nodes and homes of `table`, with every section given to a life of its node that is over: the arbiter gives them anew.
fn vacant(table: &Table, term: u64) -> Table {
    let version = Epoch { term, version: table.version.version + 1 };
    let mut table = Table { version, ..table.clone() };
    for one in &mut table.assignments {
        one.incarnation = 0;
        one.epoch = version;
    }
    table
}
