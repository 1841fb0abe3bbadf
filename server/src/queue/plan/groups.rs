//! Whether a change of a group may be made, and what happens then. Pure.

use std::sync::Arc;

use super::super::{GroupAction, SendError};
use super::{Facts, NoWrite, Planner, members, moderation, unnumbered};
use crate::domain::message::Person;
use crate::domain::{
    Body, ClientId, Conversation, Group, GroupChange, GroupId, GroupSetting, GroupStep, History, Keep, Kind,
    MembershipEpoch, Role, Standing, Timestamp, Uid, is_visible, normal_name,
};
use crate::store::Accept;

/// Characters of a group's name.
const LONGEST_NAME: usize = 80;
/// Characters of a group's topic.
const LONGEST_TOPIC: usize = 300;
/// People who are banned from one group.
const MOST_BANNED: usize = 1_000;

/// The step that `action` is, done by `who` at `now` to the group as it is; `None`: it is so already. `most`: members of a group.
pub(super) fn step(
    who: Uid,
    action: &GroupAction,
    group: Option<&Group>,
    (most, now): (usize, Timestamp),
    facts: &Facts,
) -> Result<Option<GroupStep>, SendError> {
    let person = |uid: Uid| match facts.people.contains_key(&uid) {
        true => Ok(()),
        false => Err(SendError::UnknownUser(uid.0)),
    };
    if let GroupAction::Create { name, members } = action {
        let name = checked_name(name)?;
        let mut all = members.clone();
        all.push(who);
        all.sort_unstable();
        all.dedup();
        if all.len() > most {
            return Err(SendError::GroupFull(most));
        }
        all.iter().try_for_each(|uid| facts.receiving(*uid))?;
        return Ok(Some(GroupStep::Created { name, members: all }));
    }
    let group = group.ok_or(SendError::UnknownGroup)?;
    let own = group.role_of(who).ok_or(SendError::UnknownGroup)?;
    action.concerns().map_or(Ok(()), person)?;
    if let GroupAction::Add(uid) | GroupAction::Admit { guest: uid, .. } | GroupAction::Role(uid, _) = action
    {
        facts.receiving(*uid)?;
    }
    match *action {
        GroupAction::Create { .. } => Ok(None),
        GroupAction::Add(uid) => joining(uid, group, most).map(|epoch| Some(GroupStep::Added(uid, epoch))),
        GroupAction::Admit { guest, made_at } => {
            let epoch = joining(guest, group, most)?;
            match group.member(guest).map(|member| member.standing) {
                Some(Standing::Removed { at }) if at >= made_at => Err(SendError::RemovedSince),
                _ => Ok(Some(GroupStep::Joined(guest, epoch))),
            }
        }
        GroupAction::Remove(uid) => leaving(who, own, uid, group).map(Some),
        GroupAction::Set(ref setting) => {
            administrator(own)?;
            let setting = match setting {
                GroupSetting::Keep(wanted) if wanted.seconds == group.settings.keep.seconds => {
                    return Ok(None);
                }
                GroupSetting::Keep(wanted) => {
                    GroupSetting::Keep(group.settings.keep.changed(wanted.seconds, now))
                }
                setting => checked(setting)?,
            };
            Ok((group.settings.with(&setting) != group.settings).then_some(GroupStep::Set(setting)))
        }
        GroupAction::Role(uid, role) => {
            if own != Role::Owner {
                return Err(SendError::OwnerOnly);
            }
            let before = group.role_of(uid).ok_or(SendError::NotMember)?;
            if before != role && before == Role::Owner {
                return Err(SendError::OwnerStays);
            }
            Ok((before != role).then_some(GroupStep::Role(uid, role)))
        }
        GroupAction::Ban(uid) => {
            administrator(own)?;
            may_put_out(own, group.role_of(uid))?;
            let is_banned = |standing| matches!(standing, Standing::Banned { .. });
            if group.member(uid).is_some_and(|member| is_banned(member.standing)) {
                return Ok(None);
            }
            if group.members.iter().filter(|member| is_banned(member.standing)).count() >= MOST_BANNED {
                return Err(SendError::TooManyBans(MOST_BANNED));
            }
            Ok(Some(GroupStep::Banned(uid)))
        }
        GroupAction::Unban(uid) => {
            administrator(own)?;
            let standing = group.member(uid).map(|member| member.standing);
            Ok(matches!(standing, Some(Standing::Banned { .. })).then_some(GroupStep::Unbanned(uid)))
        }
        GroupAction::Mute(uid, time) => {
            administrator(own)?;
            may_put_out(own, Some(group.role_of(uid).ok_or(SendError::NotMember)?))?;
            moderation::muting(uid, time, group, now)
        }
        GroupAction::Unmute(uid) => {
            administrator(own)?;
            may_put_out(own, group.role_of(uid))?;
            Ok(group.settings.mute_of(uid, now).map(|_| GroupStep::Unmuted(uid)))
        }
    }
}

impl Planner {
    /// Decides about the change of a group.
    pub(super) fn group(
        &mut self,
        at: usize,
        who: Uid,
        client_id: ClientId,
        gid: GroupId,
        action: &GroupAction,
    ) -> Result<Accept, NoWrite> {
        let (key, digest) = ((who, client_id), action.digest(gid));
        let unused = self.unused(key, digest)?;
        let before = self.facts.groups.get(&gid).cloned();
        let step = step(who, action, before.as_deref(), (self.limits.members, self.now), &self.facts)?;
        // It may be so already.
        let step = step.ok_or_else(|| self.unsaid())?;
        let from_version = before.as_ref().map_or(0, |group| group.version);
        let change = match &before {
            None => GroupChange::of_step(gid, 0, who, self.now, &step),
            Some(group) => group.change(who, self.now, &step),
        };
        let after = match &before {
            None => Group::create(&change),
            Some(group) => group.apply(&change),
        };
        let after = Arc::new(after.ok_or(SendError::GroupChanged)?);

        // A member that leaves still gets the row that says so; a new member gets it as the first.
        let notified = if change.ends.is_some() { before.as_ref() } else { Some(&after) };
        let recipients = members(notified.ok_or(SendError::UnknownGroup)?, who)?;
        let heir = match step {
            GroupStep::Left(uid, _) => before.as_ref().and_then(|group| group.heir_of(uid)),
            _ => None,
        };
        let named = |uid: Uid| self.person(uid).unwrap_or_else(|_| Person { uid, name: uid.to_string() });
        let concerned = self.person(step.concerns().unwrap_or(who))?;
        let heir = heir.map(named);
        let mut body =
            Body::membership(gid, &after.settings.name, &step, &concerned, &self.person(who)?, heir.as_ref());
        let is_joining = matches!(step, GroupStep::Added(..) | GroupStep::Joined(..));
        if is_joining && self.limits.history && after.settings.history == History::Visible {
            body = body.with_history();
        }
        if is_joining && after.settings.keep != Keep::default() {
            body = body.with_keep(after.settings.keep);
        }
        self.facts.groups.insert(gid, after);
        self.used.insert(key, (at, digest));
        let content = self.content(Kind::Membership, who, Conversation::Group(gid), Some(client_id), body);
        let (change, group_version) = (Some(change), Some(from_version));
        Ok(Accept { change, group_version, unused, ..unnumbered(content, digest, recipients) })
    }
}

/// The setting as it is stored.
fn checked(setting: &GroupSetting) -> Result<GroupSetting, SendError> {
    Ok(match setting {
        GroupSetting::Name(name) => GroupSetting::Name(checked_name(name)?),
        GroupSetting::Topic(topic) => {
            let topic = topic.trim();
            if topic.chars().count() > LONGEST_TOPIC || !is_visible(topic) {
                return Err(SendError::GroupTopic);
            }
            GroupSetting::Topic(topic.to_owned())
        }
        GroupSetting::History(_)
        | GroupSetting::SlowSeconds(_)
        | GroupSetting::Keep(_)
        | GroupSetting::Picture(_)
        | GroupSetting::Muted(_) => setting.clone(),
    })
}

fn checked_name(name: &str) -> Result<String, SendError> {
    let name = normal_name(name);
    if name.is_empty() || name.chars().count() > LONGEST_NAME || !is_visible(&name) {
        return Err(SendError::GroupName);
    }
    Ok(name)
}

fn administrator(own: Role) -> Result<(), SendError> {
    if own >= Role::Administrator { Ok(()) } else { Err(SendError::AdministratorsOnly) }
}

/// Whether somebody with the role `own` may put out somebody with the role `other`.
fn may_put_out(own: Role, other: Option<Role>) -> Result<(), SendError> {
    match other {
        Some(Role::Owner) => Err(SendError::OwnerStays),
        Some(Role::Administrator) if own != Role::Owner => Err(SendError::OwnerOnly),
        _ => Ok(()),
    }
}

fn joining(uid: Uid, group: &Group, most: usize) -> Result<MembershipEpoch, SendError> {
    if group.epoch_of(uid).is_some() {
        return Err(SendError::AlreadyMember);
    }
    if matches!(group.member(uid).map(|member| member.standing), Some(Standing::Banned { .. })) {
        return Err(SendError::Banned);
    }
    if group.active().count() >= most {
        return Err(SendError::GroupFull(most));
    }
    Ok(group.next_epoch(uid))
}

fn leaving(who: Uid, own: Role, uid: Uid, group: &Group) -> Result<GroupStep, SendError> {
    let epoch = group.epoch_of(uid).ok_or(SendError::NotMember)?;
    if uid == who {
        return Ok(GroupStep::Left(uid, epoch));
    }
    administrator(own)?;
    may_put_out(own, group.role_of(uid))?;
    Ok(GroupStep::Removed(uid, epoch))
}

#[cfg(test)]
mod tests;
