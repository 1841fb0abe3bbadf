//! Groups: who is in, since which joining, and the one way in which that changes (I13).
//!
//! A group's state is a version and its members; a [`GroupChange`] leads from one version to the next and
//! is refused on any other, so that two people who change a group at once cannot undo each other.

use super::{GroupId, Uid};

/// Which of a user's memberships in a group: 1 for the first, one more for each rejoining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MembershipEpoch(pub u32);

/// One who is or was in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub uid: Uid,
    /// The current or last membership epoch.
    pub epoch: MembershipEpoch,
    /// Whether the membership epoch goes on.
    pub active: bool,
}

/// A group as last accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which.
    pub gid: GroupId,
    /// What people call it.
    pub name: String,
    /// Counts the changes; 1 after the making.
    pub version: u64,
    /// Everyone who was ever in, by uid.
    pub members: Vec<Member>,
}

/// What happened to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStep {
    /// It was made with these people in it.
    Created {
        /// What people call it.
        name: String,
        /// Its first members, by uid.
        members: Vec<Uid>,
    },
    /// Somebody came in.
    Added(Uid, MembershipEpoch),
    /// Somebody was put out; the membership epoch that ended.
    Removed(Uid, MembershipEpoch),
    /// Somebody left by themselves; the membership epoch that ended.
    Left(Uid, MembershipEpoch),
}

impl GroupStep {
    /// The word in a `membership` body.
    pub fn word(&self) -> &'static str {
        match self {
            GroupStep::Created { .. } => "created",
            GroupStep::Added(..) => "added",
            GroupStep::Removed(..) => "removed",
            GroupStep::Left(..) => "left",
        }
    }

    /// The membership epoch that it ends, if it ends one.
    pub fn ends(&self) -> Option<(Uid, MembershipEpoch)> {
        match *self {
            GroupStep::Removed(uid, epoch) | GroupStep::Left(uid, epoch) => Some((uid, epoch)),
            GroupStep::Created { .. } | GroupStep::Added(..) => None,
        }
    }
}

/// A step together with the version that it starts from (0 for the making).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    /// Which group.
    pub gid: GroupId,
    /// The version that the change was decided on.
    pub from_version: u64,
    /// What happens.
    pub step: GroupStep,
}

impl Group {
    /// The group that `change` makes, if it is a making.
    pub fn create(change: &GroupChange) -> Option<Group> {
        let GroupStep::Created { name, members } = &change.step else { return None };
        let mut members: Vec<Member> =
            members.iter().map(|&uid| Member { uid, epoch: MembershipEpoch(1), active: true }).collect();
        members.sort_by_key(|member| member.uid);
        members.dedup_by_key(|member| member.uid);
        Some(Group { gid: change.gid, name: name.clone(), version: 1, members })
    }

    /// The next state, or `None` when the change was decided on another version.
    pub fn apply(&self, change: &GroupChange) -> Option<Group> {
        if change.gid != self.gid || change.from_version != self.version {
            return None;
        }
        let mut next = self.clone();
        next.version += 1;
        match change.step {
            GroupStep::Created { .. } => return None,
            GroupStep::Added(uid, epoch) => next.set(Member { uid, epoch, active: true }),
            GroupStep::Removed(uid, epoch) | GroupStep::Left(uid, epoch) => {
                next.set(Member { uid, epoch, active: false });
            }
        }
        Some(next)
    }

    fn set(&mut self, member: Member) {
        match self.members.binary_search_by_key(&member.uid, |m| m.uid) {
            Ok(at) => self.members[at] = member,
            Err(at) => self.members.insert(at, member),
        }
    }

    /// The membership epoch of `uid`, if it goes on.
    pub fn epoch_of(&self, uid: Uid) -> Option<MembershipEpoch> {
        let at = self.members.binary_search_by_key(&uid, |m| m.uid).ok()?;
        self.members[at].active.then_some(self.members[at].epoch)
    }

    /// The epoch that a (re)joining of `uid` would start.
    pub fn next_epoch(&self, uid: Uid) -> MembershipEpoch {
        match self.members.binary_search_by_key(&uid, |m| m.uid) {
            Ok(at) => MembershipEpoch(self.members[at].epoch.0 + 1),
            Err(_) => MembershipEpoch(1),
        }
    }

    /// Those who are in, by uid.
    pub fn active(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().copied().filter(|member| member.active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Group {
        let step = GroupStep::Created { name: "walkers".into(), members: vec![Uid(2), Uid(1), Uid(2)] };
        Group::create(&GroupChange { gid: GroupId(7), from_version: 0, step }).expect("a making")
    }

    #[test]
    fn a_change_decided_on_an_older_version_is_refused() {
        let group = made();
        let add = |version, uid| GroupChange {
            gid: group.gid,
            from_version: version,
            step: GroupStep::Added(uid, MembershipEpoch(1)),
        };
        let second = group.apply(&add(1, Uid(3))).expect("current");
        assert_eq!(second.apply(&add(1, Uid(4))), None);
        assert_eq!(second.active().count(), 3);
    }

    #[test]
    fn rejoining_starts_a_new_epoch() {
        let group = made();
        let step = GroupStep::Left(Uid(2), group.epoch_of(Uid(2)).expect("in"));
        let left = group.apply(&GroupChange { gid: group.gid, from_version: 1, step }).expect("current");
        assert_eq!(left.epoch_of(Uid(2)), None);
        assert_eq!(left.next_epoch(Uid(2)), MembershipEpoch(2));
    }
}
