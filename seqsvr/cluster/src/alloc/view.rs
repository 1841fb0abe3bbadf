//! The part of one Set that a node serves at one moment: the table it goes by, and a section group for each section that
//! is served. Immutable but for the deadline; each change makes a new view. Requests look here. Once a view is dropped,
//! everything that was taken through it has been answered.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{oneshot, watch};

use super::runs::Runs;
use seqsvr_core::alloc::section_group::SectionGroup;
use seqsvr_core::alloc::split::Split;
use seqsvr_core::clock::Moment;
use seqsvr_core::error::{Refusal, TryNextError};
use seqsvr_core::ids::{Granted, Uid};
use seqsvr_core::routing::Table;

/// Why a request got nothing.
#[derive(Debug)]
pub enum Denied {
    /// The ceiling must be raised first, which is asked for; look again when this changes.
    Later(watch::Receiver<u64>),
    /// Another process serves it.
    NotOwner,
    /// It cannot be served now; asking again may help.
    Unavailable(Cause),
    /// Asking again cannot help.
    Refused(Refusal),
}

/// Why something cannot be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// No table was read yet.
    NoTable,
    /// The lease is over.
    Lease,
    /// The section was given to this node, but another may still be serving it.
    Gaining,
    /// The ceiling could not be raised in time.
    Raise,
    /// Too many requests of this stream wait already.
    Crowded,
}

/// Says that a view was dropped: no request looks at it.
pub(crate) type Gone = oneshot::Receiver<()>;

/// The place of a section that another node serves.
const ELSEWHERE: u32 = u32::MAX;
/// The place of a section that was given to this node and is not served yet.
const GAINING: u32 = u32::MAX - 1;

/// See the module.
pub struct ServedView {
    /// Tells views apart.
    serial: u64,
    table: Option<Arc<Table>>,
    split: Split,
    uids: RangeInclusive<u32>,
    first_section: usize,
    /// For each section of the Set the index of its section group, or one of the constants.
    places: Box<[u32]>,
    groups: Vec<Arc<SectionGroup>>,
    /// Answers must leave before this moment, in nanoseconds; 0: none may. A view that is no longer the newest keeps its
    /// last deadline, so that an unloaded section never gains by a later renewal.
    deadline: AtomicU64,
    /// Dropped with the view.
    _gone: oneshot::Sender<()>,
}

impl ServedView {
    /// The sections `held` of `table`, of which the section groups serve those listed with them.
    pub(crate) fn new(
        serial: u64,
        section_size: u32,
        table: Option<Arc<Table>>,
        held: &Runs,
        served: &[(Arc<SectionGroup>, Runs)],
    ) -> (Self, Gone) {
        let sections = table.as_ref().map(|table| table.sections());
        let (first, count) = sections.map_or((0, 0), |sections| {
            let first = sections.start().get();
            (first as usize, (sections.end().get() - first) as usize + 1)
        });
        let mut places = vec![ELSEWHERE; count].into_boxed_slice();
        let mut put = |sections: &Runs, place: u32| {
            for run in sections.ranges() {
                places[run.start().get() as usize - first..=run.end().get() as usize - first].fill(place);
            }
        };
        if count > 0 {
            put(held, GAINING);
            for (index, (_, sections)) in served.iter().enumerate() {
                put(&sections.intersection(held), index as u32);
            }
        }
        let (sender, gone) = oneshot::channel();
        let view = Self {
            serial,
            split: Split::new(section_size),
            // Without a table none is inside.
            uids: table.as_ref().map_or(RangeInclusive::new(1, 0), |table| table.uids.clone()),
            table,
            first_section: first,
            places,
            groups: served.iter().map(|(group, _)| Arc::clone(group)).collect(),
            deadline: AtomicU64::new(0),
            _gone: sender,
        };
        (view, gone)
    }

    /// Tells this view from every other of the same Set.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The table it goes by.
    pub fn table(&self) -> Option<&Arc<Table>> {
        self.table.as_ref()
    }

    /// Answers may leave before this moment.
    pub(crate) fn set_deadline(&self, until: Option<Moment>) {
        self.deadline.store(until.map_or(0, Moment::as_nanos), Ordering::Release);
    }

    /// Answers may leave before this moment.
    pub(crate) fn deadline(&self) -> Moment {
        Moment::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Whether `uid` belongs to the Set; none does before the first table.
    pub(crate) fn covers(&self, uid: Uid) -> bool {
        self.uids.contains(&uid.get())
    }

    /// The section group that serves `uid` here.
    #[inline]
    pub fn group(&self, uid: Uid) -> Result<&SectionGroup, Denied> {
        let index = self.split.section(uid.get()).wrapping_sub(self.first_section);
        match self.places.get(index).map(|&place| self.groups.get(place as usize).ok_or(place)) {
            Some(Ok(group)) => Ok(group),
            Some(Err(GAINING)) => Err(Denied::Unavailable(Cause::Gaining)),
            Some(Err(_)) => Err(Denied::NotOwner),
            None => Err(self.outside(uid)),
        }
    }

    #[cold]
    fn outside(&self, uid: Uid) -> Denied {
        let Some(table) = &self.table else { return Denied::Unavailable(Cause::NoTable) };
        let (set, first, last) = (table.set, self.uids.start(), self.uids.end());
        Denied::Refused(Refusal::Cluster(format!(
            "uid {uid} is outside Set {set}, which has the uids {first} to {last}; correct the Sets of the caller"
        )))
    }

    /// Takes `count` numbers for `uid`. They may be used only if the deadline has not passed since.
    #[inline]
    pub(crate) fn take(&self, uid: Uid, count: u32) -> Result<Granted, Denied> {
        let group = self.group(uid)?;
        match group.shared().take(uid, count) {
            Ok(granted) => Ok(granted),
            Err(error) => again(group, error, || group.shared().take(uid, count)),
        }
    }

    /// Lets `uid` go on above `at_least`.
    pub(crate) fn advance(&self, uid: Uid, at_least: u64) -> Result<(), Denied> {
        let group = self.group(uid)?;
        match group.shared().advance(uid, at_least) {
            Ok(()) => Ok(()),
            Err(error) => again(group, error, || group.shared().advance(uid, at_least)),
        }
    }

    /// An upper bound of what was handed out for `uid`.
    #[inline]
    pub(crate) fn current(&self, uid: Uid) -> Result<u64, Denied> {
        self.group(uid)?.shared().current(uid).ok_or(Denied::NotOwner)
    }

    /// The section groups that serve here.
    pub(crate) fn groups(&self) -> &[Arc<SectionGroup>] {
        &self.groups
    }
}

/// An attempt would have to wait: once more after listening for the end of the wait, so that no raise goes unheard.
#[cold]
fn again<T>(
    group: &SectionGroup,
    error: TryNextError,
    attempt: impl FnOnce() -> Result<T, TryNextError>,
) -> Result<T, Denied> {
    let error = match error {
        TryNextError::WouldWait => {
            let rounds = group.shared().rounds();
            match attempt() {
                Err(TryNextError::WouldWait) => return Err(Denied::Later(rounds)),
                Err(TryNextError::Final(refusal)) => refusal,
                Ok(done) => return Ok(done),
            }
        }
        TryNextError::Final(refusal) => refusal,
    };
    Err(match error {
        // It was closed after it had been found: unloaded, or claimed by a newer owner.
        Refusal::Fenced { .. } | Refusal::Stopped => Denied::NotOwner,
        refusal => Denied::Refused(refusal),
    })
}
