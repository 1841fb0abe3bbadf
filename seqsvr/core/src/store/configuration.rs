//! The configuration of one Set: which replicas vote, how many must answer, and the settings that all roles share. Stored by every replica,
//! numbered, and compared in every call: a vote counts for one configuration only (docs/CLUSTER.md, "The configuration"). Plain values;
//! `quorum::rounds::change` changes it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Layout;
use crate::store::{Sizes, SizesError};

mod moves;

pub use moves::{CannotChange, Given, Move, Moves, Taking};

/// The lease of a new Set whose arbiter's file says none.
pub const LEASE: Duration = Duration::from_secs(2);

/// The range of leases.
pub const LEASES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// The replicas of a Set and what its roles agree on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// 1 and up; each change has the next one.
    pub number: u64,
    /// The N replicas that vote: 1 to 15.
    pub members: Vec<Member>,
    /// W: how many of them must answer.
    pub write: usize,
    /// How long a read of the table lets an AllocSvr serve: the same for all.
    pub lease: Duration,
    /// The meaning of stored section numbers.
    pub layout: Layout,
    /// The uids of the Set, both ends included.
    pub uids: RangeInclusive<u32>,
    /// The uids that are being taken in from another Set.
    pub taking: Option<Taking>,
    /// Which uids went to other Sets, and came from others.
    pub moves: Moves,
}

/// One replica, as the configuration knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Drawn when its files were made: tells it apart from every other, whatever its name and address.
    pub id: u64,
    /// Its name, unique within the Set.
    pub name: String,
    /// Where callers reach it that know no other address of it: `http://host:port` or `https://host:port`.
    pub addr: String,
}

/// The bounds of a read of the table: as the configuration says in which it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// How long the read lets an AllocSvr serve.
    pub lease: Duration,
    /// The uids of the Set.
    pub uids: RangeInclusive<u32>,
}

/// The member that a call is meant for, and the configuration that it counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Address {
    /// The caller's configuration; 0 when it knows none.
    pub number: u64,
    /// The member that it means; 0 when it does not know.
    pub member: u64,
}

/// The settings that all roles of a Set have in common, as an arbiter's file gives them for a new Set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetTerms {
    /// How long a read of the table lets an AllocSvr serve.
    pub lease: Duration,
    /// The meaning of stored section numbers.
    pub layout: Layout,
    /// The uids of the Set, both ends included.
    pub uids: RangeInclusive<u32>,
    /// Of a Set that is restored: which went to others and came from others before.
    pub moves: Moves,
}

/// A replica's record of configurations, durable together with the data that it votes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Configured {
    /// The one that it votes in; `None` before the first was stored.
    pub current: Option<Arc<Configuration>>,
    /// The highest ballot for the next one that it takes part in. Above 0 it answers no other call of the current one.
    pub ballot: u64,
    /// The next one that it accepted last, and under which ballot.
    pub accepted: Option<(u64, Arc<Configuration>)>,
}

impl Configured {
    /// The number of the current one; 0: none is stored.
    pub fn number(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.number)
    }

    /// The newer of two: of the same configuration the higher ballots.
    pub fn newer(self, other: Self) -> Self {
        match self.number().cmp(&other.number()) {
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Equal => {
                let ballot = |accepted: &Option<(u64, _)>| accepted.as_ref().map(|(ballot, _)| *ballot);
                let mine = ballot(&self.accepted) >= ballot(&other.accepted);
                Self {
                    ballot: self.ballot.max(other.ballot),
                    accepted: if mine { self.accepted } else { other.accepted },
                    current: self.current,
                }
            }
        }
    }
}

impl Configuration {
    /// The bounds of the reads that it answers.
    pub fn bounds(&self) -> Bounds {
        Bounds { lease: self.lease, uids: self.uids.clone() }
    }

    /// The next one, otherwise the same.
    pub fn next(&self) -> Self {
        Self { number: self.number + 1, ..self.clone() }
    }

    /// N and W.
    ///
    /// # Errors
    ///
    /// They do not fit together.
    pub fn sizes(&self) -> Result<Sizes, SizesError> {
        Sizes::new(self.members.len(), self.write)
    }

    /// The state before the first configuration: the stores that a file lists. It is in force nowhere; all of them decide together on the
    /// first one, so of two lists with a store in common at most one gets a configuration.
    pub fn listed(&self) -> Self {
        Self { number: 0, ..self.clone() }
    }

    /// How many members decide on the next configuration: two such groups have a member in common, and so has each with any W.
    pub fn deciders(&self) -> usize {
        match self.number {
            0 => self.members.len(),
            _ => majority(self.members.len()),
        }
    }

    /// Whether everything is within its range; the reason if not.
    pub fn problem(&self) -> Option<&'static str> {
        let distinct = |count: usize| count == self.members.len();
        let ids: BTreeSet<u64> = self.members.iter().map(|one| one.id).collect();
        let names: BTreeSet<&str> = self.members.iter().map(|one| one.name.as_str()).collect();
        match () {
            () if self.number == 0 => Some("number of a configuration"),
            () if self.sizes().is_err() => Some("number of members"),
            () if !distinct(ids.len()) || ids.contains(&0) => Some("id of a member"),
            () if !distinct(names.len()) => Some("name of a member"),
            () if !LEASES.contains(&self.lease) => Some("lease"),
            () if self.uids.is_empty() => Some("range of uids"),
            () if !self.moves.fit() => Some("number of moves"),
            () => None,
        }
    }

    /// Whether this member votes in it.
    pub fn has(&self, id: u64) -> bool {
        self.members.iter().any(|one| one.id == id)
    }

    /// The member of this name.
    pub fn named(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|one| one.name == name)
    }

    /// The next one: `new` in the place of the member called `old`.
    pub fn replacing(&self, old: &str, new: Member) -> Self {
        let put = |one: &Member| if one.name == old { new.clone() } else { one.clone() };
        Self { members: self.members.iter().map(put).collect(), ..self.next() }
    }

    /// The next one: `new` votes, too. W stays a majority where it is one, and stays as it is where that is enough.
    pub fn adding(&self, new: Member) -> Self {
        let members: Vec<Member> = self.members.iter().cloned().chain([new]).collect();
        let write = self.write.max(majority(members.len()));
        Self { members, write, ..self.next() }
    }

    /// The next one: the member called `old` votes no more. W stays a majority where it is one, and is never more than all.
    pub fn removing(&self, old: &str) -> Self {
        let members: Vec<Member> = self.members.iter().filter(|one| one.name != old).cloned().collect();
        let is_majority = self.write == majority(self.members.len());
        let write = if is_majority { majority(members.len()) } else { self.write.min(members.len()) };
        Self { members, write, ..self.next() }
    }

    /// The next one, in which `write` members must answer.
    pub fn writing(&self, write: usize) -> Self {
        Self { write, ..self.next() }
    }

    /// How the layout in a role's own file differs, in one line.
    pub fn differs(&self, layout: Layout) -> Option<String> {
        layout.differs_from(self.layout, &format!("configuration {} of the Set", self.number))
    }
}

/// The fewest of `n` that meet any other as many.
const fn majority(n: usize) -> usize {
    n / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn configuration() -> Configuration {
        let member = |id: u64| Member { id, name: format!("s{id}"), addr: format!("http://s{id}:1") };
        Configuration {
            number: 1,
            members: (1..=3).map(member).collect(),
            write: 2,
            lease: Duration::from_secs(2),
            layout: Layout { section_size: 100_000, step: 10_000 },
            uids: 0..=u32::MAX,
            taking: None,
            moves: Moves::default(),
        }
    }

    #[test]
    fn a_replacement_changes_one_member_and_the_number() {
        let new = Member { id: 9, name: "s9".to_owned(), addr: "http://s9:1".to_owned() };
        let next = configuration().replacing("s2", new);
        assert_eq!(next.members.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 9, 3]);
        assert_eq!((next.number, next.problem()), (2, None));
    }

    #[test]
    fn stores_grow_and_shrink_and_w_stays_what_it_means() {
        let new = |id: u64| Member { id, name: format!("s{id}"), addr: format!("http://s{id}:1") };
        let sizes = |one: &Configuration| (one.members.len(), one.write, one.problem());
        let four = configuration().adding(new(4));
        let five = four.adding(new(5));
        assert_eq!((sizes(&four), sizes(&five)), ((4, 3, None), (5, 3, None)));
        assert_eq!(
            (sizes(&five.removing("s1")), sizes(&five.removing("s1").removing("s5"))),
            ((4, 3, None), (3, 2, None))
        );
        let all = five.writing(4);
        assert_eq!(
            (sizes(&all), sizes(&all.removing("s2")), sizes(&all.removing("s2").removing("s3"))),
            ((5, 4, None), (4, 4, None), (3, 3, None))
        );
        assert_eq!(five.writing(2).problem(), Some("number of members"));
        assert_eq!((five.deciders(), four.deciders(), all.deciders(), all.listed().deciders()), (3, 3, 3, 5));
    }

    #[test]
    fn one_replica_under_two_addresses_is_no_configuration() {
        let mut twice = configuration();
        twice.members[2].id = 1;
        assert_eq!(twice.problem(), Some("id of a member"));
    }

    #[test]
    fn what_a_file_says_otherwise_is_reported_in_one_line() {
        let stored = configuration();
        assert_eq!(stored.differs(stored.layout), None);
        let line = stored.differs(Layout { step: 5, ..stored.layout }).unwrap_or_default();
        assert!(line.contains("set section_size = 100000 and step = 10000"), "{line}");
    }
}
