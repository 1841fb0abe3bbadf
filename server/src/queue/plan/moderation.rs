//! What a group refuses: messages and edits of people who are muted, and messages that come too soon after another one. Pure.

use std::time::Duration;

use super::super::SendError;
use super::Planner;
use crate::domain::{Conversation, Group, GroupStep, MOST_MUTED, Mute, Role, Timestamp, Uid};

impl Planner {
    /// Whether `who` owns or administrates this group.
    pub(super) fn governs(&self, who: Uid, conversation: Conversation) -> bool {
        let Conversation::Group(gid) = conversation else { return false };
        let role = self.facts.groups.get(&gid).and_then(|group| group.role_of(who));
        role.is_some_and(|role| role >= Role::Administrator)
    }

    /// Refuses a text of a member who is muted. The owner always has a say.
    pub(super) fn may_speak(&self, who: Uid, conversation: Conversation) -> Result<(), SendError> {
        let Conversation::Group(gid) = conversation else { return Ok(()) };
        let Some(group) = self.facts.groups.get(&gid) else { return Ok(()) };
        match group.settings.mute_of(who, self.now).filter(|_| group.role_of(who) != Some(Role::Owner)) {
            Some(Mute::Until(end)) => Err(SendError::Muted { end, wait: until(self.now, end) }),
            Some(Mute::ForGood) => Err(SendError::MutedForGood),
            None => Ok(()),
        }
    }

    /// Refuses a message that comes too soon after the one before it of the same member, where the group is in slow mode.
    pub(super) fn may_say_now(&self, who: Uid, conversation: Conversation) -> Result<(), SendError> {
        let Conversation::Group(gid) = conversation else { return Ok(()) };
        let Some(slow) = self.facts.groups.get(&gid).and_then(|group| group.slow_for(who)) else {
            return Ok(());
        };
        let before = self.facts.spoke.get(&(who, gid));
        let wait = before.map_or(Duration::ZERO, |before| until(self.now, after(*before, slow)));
        // A clock that was set back lets nobody wait for longer.
        let wait = wait.min(slow);
        if wait.is_zero() { Ok(()) } else { Err(SendError::SlowMode { slow, wait }) }
    }

    /// A message was accepted: later ones of the batch come after it.
    pub(super) fn spoken(&mut self, who: Uid, conversation: Conversation) {
        if let Conversation::Group(gid) = conversation {
            self.facts.spoke.insert((who, gid), self.now);
        }
    }
}

/// The muting of a member; `None`: that holds already.
pub(super) fn muting(
    uid: Uid,
    time: Option<Duration>,
    group: &Group,
    now: Timestamp,
) -> Result<Option<GroupStep>, SendError> {
    let mute = time.map_or(Mute::ForGood, |time| Mute::Until(after(now, time)));
    if group.settings.mute_of(uid, now) == Some(mute) {
        return Ok(None);
    }
    let others = group.active().filter(|member| member.uid != uid);
    if others.filter(|member| group.settings.mute_of(member.uid, now).is_some()).count() >= MOST_MUTED {
        return Err(SendError::TooManyMutes(MOST_MUTED));
    }
    Ok(Some(GroupStep::Muted(uid, mute)))
}

fn after(then: Timestamp, time: Duration) -> Timestamp {
    Timestamp(then.0.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_millis(then.0.saturating_sub(now.0).max(0).cast_unsigned())
}
