//! The routing table of one Set: which incarnation of which process serves which sections, under which epoch. A plain value, ordered by its
//! version; a change makes a new one.

use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

use crate::ids::{Epoch, SectionId, Uid};

/// The owners of the sections of one Set (S11). Valid once [`check`](Self::check) passes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// The number of the Set (S6).
    pub set: u32,
    /// Orders tables: (term of the arbiter, count of changes).
    pub version: Epoch,
    /// Adjacent uids in one section; section `i` begins at uid `i * section_size`.
    pub section_size: u32,
    /// The uids of the Set; both ends lie on borders of sections.
    pub uids: RangeInclusive<u32>,
    /// The processes that the Set knows, also drained ones, by which assignments name them.
    pub nodes: Vec<Node>,
    /// Sorted by section, without overlap. Sections in none have no owner.
    pub assignments: Vec<Assignment>,
}

/// An AllocSvr as the table knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its name, unique within the Set: `[a-z0-9_.-]{1,64}`.
    pub name: String,
    /// Where callers reach it: `http://host:port` or `https://host:port`.
    pub addr: String,
    /// Whether it is given sections.
    pub state: NodeState,
}

/// Whether a node is given sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// It is, while it answers probes.
    Active,
    /// It is not, until it is added again.
    Drained,
}

/// Adjacent sections with one owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// Both ends included.
    pub sections: RangeInclusive<SectionId>,
    /// Index into the nodes: the serving one.
    pub node: u32,
    /// Index into the nodes: the one that serves when all are well.
    pub home: u32,
    /// Which life of the process.
    pub incarnation: u64,
    /// The version of the table that gave the sections to this incarnation; later tables keep it.
    pub epoch: Epoch,
}

/// Why a table cannot be obeyed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The uids are none, or cut a section.
    #[error("the uids {first} to {last} do not lie on borders of sections of {section_size}")]
    Uids {
        /// The first uid.
        first: u32,
        /// The last uid.
        last: u32,
        /// Uids in a section.
        section_size: u32,
    },
    /// Assignments are unsorted, overlap, or reach beyond the Set.
    #[error("section {0} is assigned twice, out of order, or outside the Set")]
    Sections(SectionId),
    /// An assignment names a node that is not there, or an epoch newer than the table.
    #[error("the assignment from section {0} names an unknown node or a future epoch")]
    Assignment(SectionId),
    /// Two nodes have one name.
    #[error("two nodes are named {0}")]
    Name(String),
}

impl Table {
    /// The sections of the Set.
    pub fn sections(&self) -> RangeInclusive<SectionId> {
        self.section(Uid::new(*self.uids.start()))..=self.section(Uid::new(*self.uids.end()))
    }

    /// The section of `uid`, whether in the Set or not.
    pub fn section(&self, uid: Uid) -> SectionId {
        SectionId::new(uid.get() / self.section_size)
    }

    /// The assignment of `section`.
    pub fn owner(&self, section: SectionId) -> Option<&Assignment> {
        let after = self.assignments.partition_point(|one| *one.sections.start() <= section);
        self.assignments[..after].last().filter(|one| one.sections.contains(&section))
    }

    /// The assignments of the node called `name`, in any of its lives.
    pub fn of<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Assignment> {
        let node = self.index(name);
        self.assignments.iter().filter(move |one| Some(one.node) == node)
    }

    /// The index of the node called `name`.
    pub fn index(&self, name: &str) -> Option<u32> {
        self.nodes.iter().position(|node| node.name == name).map(|index| index as u32)
    }

    /// The same table with these uids, whole sections: what lies outside is nobody's, what is new has no owner.
    #[must_use]
    pub fn reshaped(&self, uids: &RangeInclusive<u32>) -> Self {
        let shape = Self { uids: uids.clone(), assignments: Vec::new(), ..self.clone() };
        let (first, last) = shape.sections().into_inner();
        let cut = |one: &Assignment| {
            let sections = (*one.sections.start()).max(first)..=(*one.sections.end()).min(last);
            (!sections.is_empty()).then(|| Assignment { sections, ..one.clone() })
        };
        Self { assignments: self.assignments.iter().filter_map(cut).collect(), ..shape }
    }

    /// The table without what lies outside of `uids`. `None`: all of it does.
    pub fn within(self: &Arc<Self>, uids: &RangeInclusive<u32>) -> Option<Arc<Self>> {
        let both = *self.uids.start().max(uids.start())..=*self.uids.end().min(uids.end());
        match both {
            none if none.is_empty() => None,
            all if all == self.uids => Some(Arc::clone(self)),
            some => Some(Arc::new(self.reshaped(&some))),
        }
    }

    /// Whether the table can be obeyed: everything that is said about the fields holds.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), TableError> {
        let (first, last, size) = (*self.uids.start(), *self.uids.end(), self.section_size);
        let cut = || TableError::Uids { first, last, section_size: size };
        let ends_whole =
            last == u32::MAX || size != 0 && (u64::from(last) + 1).is_multiple_of(u64::from(size));
        if size == 0 || first > last || !first.is_multiple_of(size) || !ends_whole {
            return Err(cut());
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if self.index(&node.name) != Some(index as u32) {
                return Err(TableError::Name(node.name.clone()));
            }
        }
        let mut next = Some(*self.sections().start());
        for one in &self.assignments {
            let (start, end) = (*one.sections.start(), *one.sections.end());
            if next.is_none_or(|next| start < next) || end < start || end > *self.sections().end() {
                return Err(TableError::Sections(start));
            }
            let known = |node: u32| (node as usize) < self.nodes.len();
            if !known(one.node) || !known(one.home) || one.epoch > self.version {
                return Err(TableError::Assignment(start));
            }
            next = end.get().checked_add(1).map(SectionId::new);
        }
        Ok(())
    }
}
