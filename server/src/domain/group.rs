//! Groups: who is in and may do what, since which joining, and the one way in which that changes (I13).
//!
//! A group's state is a version and its members; a [`GroupChange`] leads from one version to the next and is refused on
//! any other, so that two people who change a group at once cannot undo each other. A [`GroupStep`] is what happened, in
//! words; [`Group::change`] makes a change of it.

use std::time::Duration;

pub use settings::{GroupSetting, GroupSettings, History, MOST_MUTED, Mute, Muted, SLOWEST};

use super::{GroupId, Timestamp, Uid};

mod settings;

/// Which of a user's memberships in a group: 1 for the first, one more for each rejoining. 0: never in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MembershipEpoch(pub u32);

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Write, add people, make invitations, leave.
    Member,
    /// That, and take back others' messages, pin, remove, ban and mute members, set name, topic, history and slow mode, see reports,
    /// revoke invitations.
    Administrator,
    /// That, and appoint administrators and the owner. Each group has one owner, who cannot be removed.
    Owner,
}

impl Role {
    /// The word in answers and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Member => "member",
            Role::Administrator => "administrator",
            Role::Owner => "owner",
        }
    }

    /// The role of that word.
    pub fn parse(word: &str) -> Option<Role> {
        [Role::Member, Role::Administrator, Role::Owner].into_iter().find(|role| role.as_str() == word)
    }
}

/// How somebody stands to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In it.
    In {
        /// With this role.
        role: Role,
        /// The version to which the joining led; 0: not known.
        since: u64,
    },
    /// Left by themselves.
    Left,
    /// Was removed, and comes back if added by somebody, or by an invitation made after this moment.
    Removed {
        /// When.
        at: Timestamp,
    },
    /// Cannot come in until the ban is lifted.
    Banned {
        /// When.
        at: Timestamp,
    },
}

impl Standing {
    /// As the stores keep it, beside whether the membership goes on: a number for what it is, and its version or time. Stored,
    /// must stay stable.
    pub fn code(self) -> (u8, i64) {
        match self {
            Standing::In { role: Role::Member, since } => (0, since.cast_signed()),
            Standing::In { role: Role::Administrator, since } => (1, since.cast_signed()),
            Standing::In { role: Role::Owner, since } => (2, since.cast_signed()),
            Standing::Left => (0, 0),
            Standing::Removed { at } => (3, at.0),
            Standing::Banned { at } => (4, at.0),
        }
    }

    /// Read back; any number passes.
    pub fn from_code(active: bool, code: u8, number: i64) -> Standing {
        match (active, code) {
            (true, 1) => Standing::In { role: Role::Administrator, since: number.cast_unsigned() },
            (true, 2) => Standing::In { role: Role::Owner, since: number.cast_unsigned() },
            (true, 0) => Standing::In { role: Role::Member, since: number.cast_unsigned() },
            (true, _) => Standing::In { role: Role::Member, since: 0 },
            (false, 3) => Standing::Removed { at: Timestamp(number) },
            (false, 4) => Standing::Banned { at: Timestamp(number) },
            (false, _) => Standing::Left,
        }
    }
}

/// One who is or was in a group, or is banned from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The person's uid.
    pub uid: Uid,
    /// The current or last membership epoch.
    pub epoch: MembershipEpoch,
    /// How they stand to the group now.
    pub standing: Standing,
}

impl Member {
    /// Whether the membership epoch goes on.
    pub fn is_active(&self) -> bool {
        matches!(self.standing, Standing::In { .. })
    }

    fn role(&self) -> Option<Role> {
        match self.standing {
            Standing::In { role, .. } => Some(role),
            _ => None,
        }
    }

    fn with_role(self, role: Role) -> Member {
        match self.standing {
            Standing::In { since, .. } => Member { standing: Standing::In { role, since }, ..self },
            _ => self,
        }
    }
}

/// A group as last accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which.
    pub gid: GroupId,
    /// The settings that its owner and administrators choose.
    pub settings: GroupSettings,
    /// Counts the changes; 1 after the making.
    pub version: u64,
    /// Everyone who was ever in or is banned, by uid.
    pub members: Vec<Member>,
}

/// A change of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStep {
    /// It was made with these people in it.
    Created {
        /// Its name.
        name: String,
        /// Its first members, by uid.
        members: Vec<Uid>,
    },
    /// Somebody was added.
    Added(Uid, MembershipEpoch),
    /// Somebody came in by an invitation. The step is done by the invitation's maker.
    Joined(Uid, MembershipEpoch),
    /// Somebody was put out; the membership epoch that ended.
    Removed(Uid, MembershipEpoch),
    /// Somebody left by themselves; the membership epoch that ended.
    Left(Uid, MembershipEpoch),
    /// A setting is another one.
    Set(GroupSetting),
    /// A member has another role. Where that is the owner's, the owner so far is an administrator.
    Role(Uid, Role),
    /// Somebody was banned, and put out if they were in.
    Banned(Uid),
    /// The ban was lifted.
    Unbanned(Uid),
    /// Somebody's messages to it are refused from now on.
    Muted(Uid, Mute),
    /// They are taken again.
    Unmuted(Uid),
}

impl GroupStep {
    /// The word in a `membership` body.
    pub fn word(&self) -> &'static str {
        match self {
            GroupStep::Created { .. } => "created",
            GroupStep::Added(..) => "added",
            GroupStep::Joined(..) => "joined",
            GroupStep::Removed(..) => "removed",
            GroupStep::Left(..) => "left",
            GroupStep::Set(setting) => setting.word(),
            GroupStep::Role(..) => "role",
            GroupStep::Banned(_) => "banned",
            GroupStep::Unbanned(_) => "unbanned",
            GroupStep::Muted(..) => "muted",
            GroupStep::Unmuted(_) => "unmuted",
        }
    }

    /// The person that it concerns, if it is done to one.
    pub fn concerns(&self) -> Option<Uid> {
        match *self {
            GroupStep::Created { .. } | GroupStep::Set(_) => None,
            GroupStep::Added(uid, _)
            | GroupStep::Joined(uid, _)
            | GroupStep::Removed(uid, _)
            | GroupStep::Left(uid, _)
            | GroupStep::Role(uid, _)
            | GroupStep::Banned(uid)
            | GroupStep::Unbanned(uid)
            | GroupStep::Muted(uid, _)
            | GroupStep::Unmuted(uid) => Some(uid),
        }
    }
}

/// The changes of a step, and the version that it starts from (0 for the making).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    /// Which group.
    pub gid: GroupId,
    /// The version that the change was decided on.
    pub from_version: u64,
    /// The setting that is another one from now on. A making sets the name.
    pub setting: Option<GroupSetting>,
    /// The changed members as they stand from now on, by uid.
    pub members: Vec<Member>,
    /// The membership epoch that ends.
    pub ends: Option<(Uid, MembershipEpoch)>,
}

impl GroupChange {
    /// The direct changes of a making, joining, removal or leaving, decided on `from_version` by `by` at `at`. They name no heir of
    /// an owner: [`Group::change`] does.
    pub fn of_step(gid: GroupId, from_version: u64, by: Uid, at: Timestamp, step: &GroupStep) -> GroupChange {
        let mut change = GroupChange { gid, from_version, setting: None, members: Vec::new(), ends: None };
        let member = |uid, epoch, standing| vec![Member { uid, epoch, standing }];
        let since = from_version + 1;
        match step {
            GroupStep::Created { name, members } => {
                change.setting = Some(GroupSetting::Name(name.clone()));
                let role = |uid| if uid == by { Role::Owner } else { Role::Member };
                let first = |uid| Standing::In { role: role(uid), since };
                let epoch = MembershipEpoch(1);
                change.members =
                    members.iter().map(|&uid| Member { uid, epoch, standing: first(uid) }).collect();
                change.members.sort_by_key(|member| member.uid);
                change.members.dedup_by_key(|member| member.uid);
            }
            &(GroupStep::Added(uid, epoch) | GroupStep::Joined(uid, epoch)) => {
                change.members = member(uid, epoch, Standing::In { role: Role::Member, since });
            }
            &GroupStep::Removed(uid, epoch) => {
                change.members = member(uid, epoch, Standing::Removed { at });
                change.ends = Some((uid, epoch));
            }
            &GroupStep::Left(uid, epoch) => {
                change.members = member(uid, epoch, Standing::Left);
                change.ends = Some((uid, epoch));
            }
            GroupStep::Set(setting) => change.setting = Some(setting.clone()),
            GroupStep::Role(..)
            | GroupStep::Banned(_)
            | GroupStep::Unbanned(_)
            | GroupStep::Muted(..)
            | GroupStep::Unmuted(_) => {}
        }
        change
    }

    /// Whether it makes the group.
    pub fn is_making(&self) -> bool {
        self.from_version == 0
    }

    /// Whether it can be made: no group is made without a name.
    pub fn is_whole(&self) -> bool {
        !self.is_making() || matches!(self.setting, Some(GroupSetting::Name(_)))
    }
}

impl Group {
    /// The group that `change` makes, if it is a making.
    pub fn create(change: &GroupChange) -> Option<Group> {
        let Some(GroupSetting::Name(name)) = change.setting.clone().filter(|_| change.is_making()) else {
            return None;
        };
        let settings = GroupSettings::new(name);
        let mut group = Group { gid: change.gid, settings, version: 1, members: Vec::new() };
        change.members.iter().for_each(|member| group.set(*member));
        Some(group)
    }

    /// The next state, or `None` when the change was decided on another version.
    pub fn apply(&self, change: &GroupChange) -> Option<Group> {
        if change.gid != self.gid || change.from_version != self.version || change.is_making() {
            return None;
        }
        let mut next = self.clone();
        next.version += 1;
        if let Some(setting) = &change.setting {
            next.settings = self.settings.with(setting);
        }
        change.members.iter().for_each(|member| next.set(*member));
        Some(next)
    }

    /// The changes of `step` here, done by `by` at `at`. Where the owner goes, or there is none, the [heir](Self::owner) is the owner
    /// from then on.
    pub fn change(&self, by: Uid, at: Timestamp, step: &GroupStep) -> GroupChange {
        let mut change = GroupChange::of_step(self.gid, self.version, by, at, step);
        // Of an imported group in which nobody is called the owner.
        let unnamed = self.owner().and_then(|uid| self.member(uid));
        let unnamed = unnamed.filter(|member| member.role() != Some(Role::Owner));
        change.members.splice(..0, unnamed.map(|member| member.with_role(Role::Owner)));
        let known = |uid| {
            let never = Member { uid, epoch: MembershipEpoch(0), standing: Standing::Left };
            self.member(uid).copied().unwrap_or(never)
        };
        match *step {
            GroupStep::Role(uid, Role::Owner) => {
                let owners = self.active().filter(|member| member.role() == Some(Role::Owner));
                change.members.extend(owners.map(|member| member.with_role(Role::Administrator)));
                change.members.extend(self.owner().map(|uid| known(uid).with_role(Role::Administrator)));
                change.members.push(known(uid).with_role(Role::Owner));
            }
            GroupStep::Role(uid, role) => change.members.push(known(uid).with_role(role)),
            GroupStep::Banned(uid) => {
                let member = known(uid);
                change.ends = member.is_active().then_some((uid, member.epoch));
                change.members.push(Member { standing: Standing::Banned { at }, ..member });
            }
            GroupStep::Unbanned(uid) => {
                let member = known(uid);
                if let Standing::Banned { at } = member.standing {
                    change.members.push(Member { standing: Standing::Removed { at }, ..member });
                }
            }
            GroupStep::Muted(uid, mute) => change.setting = Some(self.muted(uid, Some(mute), at)),
            GroupStep::Unmuted(uid) => change.setting = Some(self.muted(uid, None, at)),
            _ => {}
        }
        if let Some(next) = self.apply(&change)
            && let Some(owner) = next.owner().and_then(|uid| next.member(uid))
            && owner.role() != Some(Role::Owner)
        {
            change.members.push(owner.with_role(Role::Owner));
        }
        // The last word on each member counts.
        change.members.reverse();
        change.members.sort_by_key(|member| member.uid);
        change.members.dedup_by_key(|member| member.uid);
        change
    }

    /// All who are muted after `uid` is, or no longer, at `at`. Mutes that have ended go, and where too many are left, those of people who
    /// are not in the group.
    fn muted(&self, uid: Uid, mute: Option<Mute>, at: Timestamp) -> GroupSetting {
        let mut muted = self.settings.muted.clone();
        muted.retain(|muted| muted.uid != uid.0 && muted.until.holds(at));
        if muted.len() >= MOST_MUTED {
            muted.retain(|muted| self.epoch_of(Uid(muted.uid)).is_some());
        }
        muted.extend(mute.map(|until| Muted { uid: uid.0, until }));
        GroupSetting::Muted(muted)
    }

    fn set(&mut self, member: Member) {
        match self.members.binary_search_by_key(&member.uid, |m| m.uid) {
            Ok(at) => self.members[at] = member,
            Err(at) => self.members.insert(at, member),
        }
    }

    /// The entry of `uid`, a current or former member or a banned person.
    pub fn member(&self, uid: Uid) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&uid, |m| m.uid).ok()?;
        Some(&self.members[at])
    }

    /// The membership epoch of `uid`, if it goes on.
    pub fn epoch_of(&self, uid: Uid) -> Option<MembershipEpoch> {
        self.member(uid).filter(|member| member.is_active()).map(|member| member.epoch)
    }

    /// The epoch that a (re)joining of `uid` would start.
    pub fn next_epoch(&self, uid: Uid) -> MembershipEpoch {
        MembershipEpoch(self.member(uid).map_or(0, |member| member.epoch.0) + 1)
    }

    /// The current members, by uid.
    pub fn active(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().copied().filter(Member::is_active)
    }

    /// The owner. Where nobody in it is called so (an import may say nothing of roles), it is the longest-standing administrator, or
    /// else member. `None`: it is empty.
    pub fn owner(&self) -> Option<Uid> {
        let oldest = |member: &Member| match member.standing {
            Standing::In { role, since } => (std::cmp::Reverse(role), since, member.epoch, member.uid),
            _ => (std::cmp::Reverse(Role::Member), u64::MAX, member.epoch, member.uid),
        };
        self.active().min_by_key(oldest).map(|member| member.uid)
    }

    /// The owner after `uid` goes, if `uid` is the owner now.
    pub fn heir_of(&self, uid: Uid) -> Option<Uid> {
        let epoch = self.epoch_of(uid).filter(|_| self.owner() == Some(uid))?;
        let change = self.change(uid, Timestamp(0), &GroupStep::Left(uid, epoch));
        self.apply(&change)?.owner()
    }

    /// The time between two messages of `uid`, if the group is in slow mode and `uid` a plain member of it.
    pub fn slow_for(&self, uid: Uid) -> Option<Duration> {
        let slow = Duration::from_secs(self.settings.slow_seconds.into());
        (!slow.is_zero() && self.role_of(uid) == Some(Role::Member)).then_some(slow)
    }

    /// The role of `uid`, if in it.
    pub fn role_of(&self, uid: Uid) -> Option<Role> {
        self.role_under(self.owner(), self.member(uid)?)
    }

    /// The same for a member that was found already, under the given owner.
    pub fn role_under(&self, owner: Option<Uid>, member: &Member) -> Option<Role> {
        let role = member.role()?;
        Some(if owner == Some(member.uid) { Role::Owner } else { role.min(Role::Administrator) })
    }
}

#[cfg(test)]
mod tests;
