//! The configuration of one Set: which replicas vote, how many must answer, and what all roles must have in common.
//! Stored by every replica, numbered, and compared in every call: a vote counts for one configuration only
//! (docs/CLUSTER.md, "The configuration"). Plain values; who changes it is `quorum::rounds::change`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Layout;
use crate::store::{Sizes, SizesError};

mod transition;

pub use transition::CannotChange;
pub use transition::{Bounds, Transition};

/// What a lease may be.
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
    /// What the stored numbers of sections mean.
    pub layout: Layout,
    /// The uids of the Set, both ends included.
    pub uids: RangeInclusive<u32>,
    /// What it is on its way to, if it is not to stay.
    pub transition: Option<Transition>,
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

/// To whom a call is meant, and for which configuration it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Address {
    /// The caller's configuration; 0 when it knows none.
    pub number: u64,
    /// The member that it means; 0 when it does not know.
    pub member: u64,
}

/// What an AllocSvr would store as the first configuration, and what must be as stored when it begins to serve.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The lease of its file, or the default.
    pub lease: Duration,
    /// Whether its file says so: then the stored one must be the same.
    pub lease_is_set: bool,
    /// The layout.
    pub layout: Layout,
    /// The uids of the table.
    pub uids: RangeInclusive<u32>,
}

/// What a replica keeps of configurations, durable with what it votes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Configured {
    /// The one that it votes in; `None` before the first was stored.
    pub current: Option<Arc<Configuration>>,
    /// The highest ballot for the next one that it takes part in. Above 0 it answers no other call of the current one any more.
    pub ballot: u64,
    /// The next one that it accepted last, and under which ballot.
    pub accepted: Option<(u64, Arc<Configuration>)>,
    /// It was made to be taken in, and votes in nothing before.
    pub joining: bool,
}

impl Configured {
    /// The number of the current one; 0: none is stored.
    pub fn number(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.number)
    }

    /// The newer of two, for a replica that lost its own: of the same configuration the higher ballots.
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
                    joining: self.joining && other.joining,
                    current: self.current,
                }
            }
        }
    }
}

impl Configuration {
    /// N and W.
    ///
    /// # Errors
    ///
    /// They do not fit together.
    pub fn sizes(&self) -> Result<Sizes, SizesError> {
        Sizes::new(self.members.len(), self.write)
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
            () if !LEASES.contains(&self.awaited()) => Some("earlier lease"),
            () if self.uids.is_empty() => Some("range of uids"),
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
        Self { number: self.number + 1, members: self.members.iter().map(put).collect(), ..self.clone() }
    }

    /// What a role's own file says otherwise, in one line.
    pub fn differs(&self, terms: &Terms) -> Option<String> {
        let stored = format!("configuration {} of the Set", self.number);
        terms.differ_from(self.lease, self.layout, &stored, "seqsvr store lease MILLISECONDS")
    }
}

impl Terms {
    /// In what a role's file differs from what is `stored`, in one line; `change` says how to change the stored lease.
    pub fn differ_from(&self, lease: Duration, layout: Layout, stored: &str, change: &str) -> Option<String> {
        let line = |there: String, here: String, set: String| {
            Some(format!("{stored} has {there}, but this role's file has {here}; {set}"))
        };
        if self.lease_is_set && self.lease != lease {
            let millis = |lease: Duration| lease.as_millis().to_string();
            let there = millis(lease);
            let set = format!("set lease_ms = {there}, or leave it out; to change the stored one: {change}");
            return line(format!("lease_ms = {there}"), millis(self.lease), set);
        }
        if self.layout != layout {
            let show = |one: Layout| format!("section_size {} and step {}", one.section_size, one.step);
            let Layout { section_size, step } = layout;
            let set = format!("set section_size = {section_size} and step = {step}");
            return line(show(layout), show(self.layout), set);
        }
        None
    }
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
            transition: None,
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
    fn one_replica_under_two_addresses_is_no_configuration() {
        let mut twice = configuration();
        twice.members[2].id = 1;
        assert_eq!(twice.problem(), Some("id of a member"));
    }

    #[test]
    fn what_a_file_says_otherwise_is_reported_in_one_line() {
        let stored = configuration();
        let Configuration { lease, layout, uids, .. } = stored.clone();
        let same = Terms { lease, lease_is_set: true, layout, uids };
        assert_eq!(stored.differs(&same), None);
        let reported = |terms: Terms| stored.differs(&terms).unwrap_or_default();
        assert!(reported(Terms { lease: lease / 2, ..same.clone() }).contains("set lease_ms = 2000"));
        let unset = Terms { lease: lease / 2, lease_is_set: false, ..same.clone() };
        assert_eq!(stored.differs(&unset), None, "the stored lease counts where the file says none");
        let layout = Layout { step: 5, ..layout };
        assert!(reported(Terms { layout, ..same }).contains("step = 10000"));
    }
}
