//! Where ceilings are durable. [`SectionStore`] is the seam between the allocator and its storage: a store keeps one ceiling for each
//! section and the owner that may raise it, refuses everything that would go back, and knows no uid and no number that was handed out.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use thiserror::Error;

use self::backup::Backup;
use crate::ids::{Epoch, SectionId};

pub mod backup;
pub mod batches;
pub mod claims;
pub mod configuration;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod memory;
pub mod message;
pub mod sizes;
#[cfg(any(test, feature = "sqlite"))]
mod sql;
#[cfg(any(test, feature = "sqlite"))]
pub mod sqlite;
pub mod tables;

pub use configuration::{Address, Configuration, Configured, Member, Move, Moves, SetTerms};
pub use memory::Memory;
pub use message::{Answer, Earlier, Held, Question};
pub use sizes::{Sizes, SizesError};

/// The largest ceiling that a store must be able to keep: 2^63 - 1.
pub const MAX_CEILING: u64 = i64::MAX as u64;

/// Runs of sections.
pub type Ranges = [RangeInclusive<SectionId>];

/// The meaning of stored section numbers; fixed by the first claim for the life of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Adjacent uids that share one ceiling.
    pub section_size: u32,
    /// By how much the ceiling is raised at a time.
    pub step: u32,
}

impl Layout {
    /// In what a role's file differs from what is `stored` under that name, in one line.
    pub fn differs_from(self, stored: Self, name: &str) -> Option<String> {
        let show = |one: Self| format!("section_size {} and step {}", one.section_size, one.step);
        (self != stored).then(|| {
            let Self { section_size, step } = stored;
            format!(
                "{name} has {}, but this role's file has {}; set section_size = {section_size} and step = {step}",
                show(stored),
                show(self)
            )
        })
    }
}

/// One incarnation of one process under one assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The assignment.
    pub epoch: Epoch,
    /// Tells two processes apart that were given the same epoch by mistake.
    pub incarnation: u64,
}

/// A durable ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ceiling {
    /// The section that it bounds.
    pub section: SectionId,
    /// The largest number that may be handed out in it: 0 to [`MAX_CEILING`].
    pub max: u64,
}

/// The result of a successful claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The ceilings stored for the claimed sections, each at most once, in any order.
    pub ceilings: Vec<Ceiling>,
    /// The least that every claimed section starts at, whether it is listed or not.
    pub floor: u64,
    /// The earlier owners of the sections: the highest earlier claim of each, sorted runs without overlap.
    pub earlier: Vec<Earlier>,
}

/// Keeps the ceilings of sections, each fenced by the epoch of its owner.
///
/// The contract, of which the conformance suite checks all but the last:
///
/// - A ceiling never becomes smaller, regardless of the caller and of the order in which calls arrive. Targets are absolute, so a repeated,
///   late or unknown raise can only leave a gap.
/// - A claim takes sections for an owner, and answers with their ceilings *as of the claim*: after it no
///   raise of an earlier owner succeeds, so nothing above these ceilings was ever confirmed to one. (In a
///   quorum the maxima therefore come from the very answers that accepted the claim, never from a read.)
/// - A claim must be newer than every earlier claim of any of its sections; the same owner may repeat its own.
///   It takes all of its sections or none.
/// - A confirmed change survives a power cut, but in [`Memory`].
#[async_trait]
pub trait SectionStore: Send + Sync {
    /// Whether nobody else can use what is stored while this value has it open, by a lock or because it is memory. A store that answers
    /// `false`, as most do, may be used by several processes at a time: the claims fence an old owner's raises, but only a
    /// lease keeps it from handing out what it has left. So [`Embedded`](crate::alloc::Embedded), which has none, refuses it.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// The newest epoch of any claim so far; the default (0.0) before the first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn newest_epoch(&self) -> Result<Epoch, StoreError>;

    /// Takes `sections`, which are disjoint, for `owner`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Layout`] and [`StoreError::Claimed`] are refusals that change nothing; after
    /// [`StoreError::Unavailable`] the claim may or may not stand, and may be repeated.
    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError>;

    /// Raises ceilings and answers in order, once for each: the ceiling now durable, not smaller than the
    /// target. Each stands alone; a store may carry them out together.
    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>>;

    /// Notes that `owner`, which served `sections`, hands out nothing more in them: the next claimer sees it in [`Claimed::earlier`] and
    /// need not wait for the lease to end. Exempt from the epoch check, so that it also arrives after the next claim; noted only where the
    /// newest or the highest earlier owner of a section is exactly this one, else without effect.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: it may or may not be noted, and may be repeated.
    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError>;

    /// Everything that a restore needs: all that was confirmed before the call began, and perhaps what came since.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], also where a store cannot be backed up.
    async fn backup(&self) -> Result<Backup, StoreError> {
        Err(StoreError::Unavailable("this store cannot be backed up".to_owned()))
    }
}

/// Why a store could not be opened, read or claimed from.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The data was written under other settings.
    #[error(
        "the stored sections have section_size {} and step {}, but {} and {} are configured; \
         set section_size = {} and step = {}",
        stored.section_size, stored.step, configured.section_size, configured.step,
        stored.section_size, stored.step
    )]
    Layout {
        /// The layout that the data was written under.
        stored: Layout,
        /// The requested layout.
        configured: Layout,
    },
    /// One of the sections belongs to an owner that is newer, or to another one of the same epoch.
    #[error(
        "the sections are owned under epoch {newest}; stop the other process that uses this store, then start again"
    )]
    Claimed {
        /// The epoch that holds the section.
        newest: Epoch,
    },
    /// The storage failed; the text says how.
    #[error("the section store cannot be used: {0}")]
    Unavailable(String),
}

/// Why one ceiling was not confirmed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RaiseError {
    /// Refused: the stored ceiling is larger. Nothing changed; a target at or above it can succeed.
    #[error("the stored ceiling is {stored}, larger than the target")]
    Smaller {
        /// The stored ceiling.
        stored: u64,
    },
    /// Refused for good: the section was never this owner's, or is another's by now.
    #[error("the section is owned under epoch {newest}")]
    NotOwner {
        /// The epoch of the newest claim of the section.
        newest: Epoch,
    },
    /// The storage failed before anything was written: try again.
    #[error("nothing was written: {0}")]
    Unavailable(String),
    /// The storage failed so that the ceiling may or may not be durable: not confirmed, and to be repeated with
    /// the same or a larger target.
    #[error("it is unknown whether the ceiling was written: {0}")]
    Unknown(String),
}
