//! The small values of the whole crate: the user, the numbers, the assignment, the section. Plain data, valid once constructed; no state,
//! no I/O.

use std::fmt;

/// The user of a sequence: any of 2^32 (S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(u32);

impl Uid {
    /// Every `u32` is a uid.
    pub const fn new(uid: u32) -> Self {
        Self(uid)
    }

    /// The bare number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl From<u32> for Uid {
    fn from(uid: u32) -> Self {
        Self(uid)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The assignment under which a number was handed out; later assignments compare larger, `term` first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Counts the authorities that decide on assignments; 0 where there is only one.
    pub term: u64,
    /// Counts the assignments within a term, from 1.
    pub version: u64,
}

impl Epoch {
    /// The first epoch after this one in the same term.
    pub const fn next(self) -> Self {
        Self { term: self.term, version: self.version + 1 }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.version)
    }
}

/// The numbers `first..=last`, now the caller's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Granted {
    /// The smallest of them.
    pub first: u64,
    /// The largest; everything handed out later for the same uid is larger (I6).
    pub last: u64,
    /// The assignment that covers them.
    pub epoch: Epoch,
}

/// A run of adjacent uids that shares one ceiling: number `i` covers the uids from `i` times the section size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(u32);

impl SectionId {
    /// The section with this number.
    pub const fn new(section: u32) -> Self {
        Self(section)
    }

    /// The bare number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
