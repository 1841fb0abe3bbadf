//! Random histories: writes as queues would make them, and some that they should not.
//!
//! A history keeps what the writers of a real server know: the last number of each line, the groups, the copies owed.

use std::collections::{HashMap, HashSet};

use super::compare::Universe;
use super::*;
use crate::domain::{GroupSetting, GroupStep, Role};

/// How many users, groups and names there are: few, so that they meet.
const USERS: u32 = 5;
const GROUPS: u64 = 2;
const NAMES: u128 = 200;

/// Something to do, chosen by chance; the numbers pick among what there is at that moment.
#[derive(Clone, Debug)]
pub enum Move {
    /// A message to a person; the receiver's copy at once or later.
    Tell(u8, u8, bool),
    /// A message to a group.
    Speak(u8, u8),
    /// The group is made, somebody is added or put out, or something else changes: roles, bans, what it is called.
    Change(u8, u8, u8, u8),
    /// The copies of some acceptance are delivered, to so many of those who are owed one.
    Deliver(u8, u8),
    /// A read marker.
    ReadMarker(u8, u8, u8),
    /// The sender of some message edits it or takes it back, or somebody in its conversation reacts to it, or deletes it for oneself;
    /// other copies come later.
    Amend(u8, u8, u8),
    /// The same message once more, under new numbers.
    Repeat(u8),
    /// A message whose number is not larger.
    Backwards(u8),
}

/// The step that `by` takes with `who` in a group.
fn step(group: &Group, by: Uid, who: Uid, how: u8) -> Option<GroupStep> {
    let roles = [Role::Member, Role::Administrator, Role::Owner];
    Some(match (how % 10, group.epoch_of(who)) {
        (0..4, Some(epoch)) if who == by => GroupStep::Left(who, epoch),
        (0..4, Some(epoch)) => GroupStep::Removed(who, epoch),
        (0..4, None) => GroupStep::Added(who, group.next_epoch(who)),
        (4, _) => GroupStep::Set(GroupSetting::Name(format!("walkers {how}"))),
        (5, _) => GroupStep::Set(GroupSetting::Topic(format!("Sundays {how}"))),
        (6 | 7, Some(_)) => GroupStep::Role(who, roles[usize::from(how) / 10 % 3]),
        (8, _) if who != by => GroupStep::Banned(who),
        (9, _) => GroupStep::Unbanned(who),
        _ => return None,
    })
}

/// The state that the writers know.
pub struct MoveHistory {
    last: Vec<u64>,
    named: u128,
    groups: Vec<Option<Group>>,
    owed: Vec<(AcceptanceId, Arc<Content>, Vec<Recipient>)>,
    sent: Vec<Arc<Content>>,
    recalled: HashSet<IdempotencyKey>,
    deleted: HashSet<(Uid, IdempotencyKey)>,
    read_to: HashMap<(Uid, Uid), u64>,
    /// Messages with an edit that is not settled yet.
    editing: HashSet<IdempotencyKey>,
    /// Rows that were sent before it may have expired.
    expired: Timestamp,
}

impl Default for MoveHistory {
    fn default() -> MoveHistory {
        MoveHistory {
            last: vec![0; USERS as usize],
            named: 0,
            groups: vec![None; GROUPS as usize],
            owed: Vec::new(),
            sent: Vec::new(),
            recalled: HashSet::new(),
            deleted: HashSet::new(),
            read_to: HashMap::new(),
            editing: HashSet::new(),
            expired: Timestamp(0),
        }
    }
}

impl MoveHistory {
    /// Everything that can be asked about the history.
    pub fn universe(&self) -> Universe {
        Universe {
            uids: (0..USERS).map(user).collect(),
            gids: (0..GROUPS).map(group).collect(),
            names: (0..self.named).map(client_id).collect(),
            latest: self.last.iter().copied().max().unwrap_or(0) + 1,
        }
    }

    /// Chooses how much may expire now, of 255 parts of what was sent: nothing that is owed, and nothing that is changed or repeated later.
    pub fn expire(&mut self, share: u8) -> Timestamp {
        let Timestamp(first) = text_message(user(0), Conversation::User(user(0)), 0, "first").sent_at;
        let wanted = Timestamp(first + self.named as i64 * i64::from(share) / 255);
        let owed = self.owed.iter().map(|(_, content, _)| content.sent_at);
        self.expired = owed.chain([wanted]).min().unwrap_or(wanted).max(self.expired);
        self.expired
    }

    fn next(&mut self, uid: Uid) -> u64 {
        let last = &mut self.last[(uid.0 - user(0).0) as usize];
        // Gaps mean nothing.
        *last += 1 + (*last % 3) / 2;
        *last
    }

    fn name(&mut self) -> u128 {
        self.named = (self.named + 1).min(NAMES);
        self.named - 1
    }

    /// The write that a move comes to now, if there is one.
    pub fn write(&mut self, step: &Move) -> Option<Write> {
        match *step {
            Move::Tell(from, to, later) => {
                let (from, to) = (user(u32::from(from)), user(u32::from(to)));
                let content = text_message(from, Conversation::User(to), self.name(), "hello");
                self.sent.push(content.clone());
                let mut rows = vec![row(from, self.next(from))];
                let mut rest = Vec::new();
                match later {
                    _ if from == to => {}
                    true => rest.push(Recipient { uid: to, epoch: MembershipEpoch(0) }),
                    false => rows.push(row(to, self.next(to))),
                }
                Some(Write::Accept(accept(content, rows, rest)))
            }
            Move::Speak(from, gid) => {
                let from = user(u32::from(from));
                let group = self.groups[usize::from(gid) % GROUPS as usize].clone()?;
                let epoch = group.epoch_of(from)?;
                let content = text_message(from, Conversation::Group(group.gid), self.name(), "all");
                self.sent.push(content.clone());
                Some(Write::Accept(self.accept_for(content, epoch, &group, None)))
            }
            Move::Change(by, gid, who, how) => {
                self.change(user(u32::from(by)), gid, user(u32::from(who)), how)
            }
            Move::Deliver(at, count) => {
                let at = usize::from(at) % self.owed.len().max(1);
                let (acceptance, content, owed) = self.owed.get(at)?.clone();
                let some = owed.into_iter().take(1 + usize::from(count) % 3);
                let rows = some.map(|to| member_row(to.uid, self.next(to.uid), to.epoch.0)).collect();
                Some(Write::Deliver(Deliver { acceptance, content, rows, earlier: Vec::new() }))
            }
            Move::ReadMarker(owner, other, read_to) => {
                let (owner, other) = (user(u32::from(owner)), user(u32::from(other)));
                // The queues let it move forward alone.
                let marker = self.read_to.entry((owner, other)).or_default();
                *marker = (*marker + 1).max(u64::from(read_to));
                let content = read_marker(owner, Conversation::User(other), *marker);
                let row = row(owner, self.next(owner));
                Some(Write::Accept(accept(content, vec![row], vec![])))
            }
            Move::Amend(at, by, what) => self.amend(at, user(u32::from(by)), what),
            Move::Repeat(at) => {
                let content = self.sent.get(usize::from(at) % self.sent.len().max(1))?.clone();
                if content.sent_at < self.expired {
                    return None;
                }
                let row = row(content.sender, self.next(content.sender));
                Some(Write::Accept(accept(content, vec![row], vec![])))
            }
            Move::Backwards(from) => {
                let from = user(u32::from(from));
                let content = text_message(from, Conversation::User(from), self.name(), "back");
                let last = self.last[(from.0 - user(0).0) as usize].max(1);
                Some(Write::Accept(accept(content, vec![row(from, last)], vec![])))
            }
        }
    }

    /// The same, where the copies of each sender come to each receiver in order: what is owed first is delivered first, and nobody who is
    /// owed a copy gets a later one at once.
    pub fn write_in_order(&mut self, step: &Move) -> Option<Write> {
        let owes = |owed: &[(AcceptanceId, Arc<Content>, Vec<Recipient>)], from: Uid, to: Uid| {
            owed.iter().any(|(_, content, to_whom)| {
                content.sender == from && to_whom.iter().any(|one| one.uid == to)
            })
        };
        match *step {
            Move::Tell(from, to, false) if owes(&self.owed, user(u32::from(from)), user(u32::from(to))) => {
                self.write(&Move::Tell(from, to, true))
            }
            // Its number would be the caller's.
            Move::Backwards(_) => None,
            Move::Deliver(at, count) => {
                let at = usize::from(at) % self.owed.len().max(1);
                let (acceptance, content, owed) = self.owed.get(at)?.clone();
                let is_next = |to: &Recipient| !owes(&self.owed[..at], content.sender, to.uid);
                let some: Vec<Recipient> =
                    owed.into_iter().filter(is_next).take(1 + usize::from(count) % 3).collect();
                let rows = some.iter().map(|to| member_row(to.uid, self.next(to.uid), to.epoch.0)).collect();
                (!some.is_empty()).then_some(Write::Deliver(Deliver {
                    acceptance,
                    content,
                    rows,
                    earlier: Vec::new(),
                }))
            }
            _ => self.write(step),
        }
    }

    fn amend(&mut self, at: u8, by: Uid, what: u8) -> Option<Write> {
        let message = self.sent.get(usize::from(at) % self.sent.len().max(1))?.clone();
        if message.sent_at < self.expired {
            return None;
        }
        let (who, amendment) = match what % 4 {
            0 => (message.sender, Amendment::Edit(format!("edit {what}"))),
            1 => (message.sender, Amendment::Recall),
            2 if what % 8 == 2 => return self.delete(&message, by),
            _ => (by, Amendment::React(vec!["👍".to_owned(); usize::from(what % 3)])),
        };
        // Nobody edits a message that was taken back, and what one sender said of it comes to each receiver in order.
        let is_owed = |owed: &Content| owed.kind == Kind::Edit && owed.of() == message.key();
        if what % 4 < 2 && self.recalled.contains(&message.key()?) {
            return None;
        }
        // In SQLite the text of such an edit goes with the next flush alone.
        if what.is_multiple_of(4) && self.deleted.iter().any(|(_, of)| Some(*of) == message.key()) {
            return None;
        }
        if amendment == Amendment::Recall {
            let is_under_way = self.editing.contains(&message.key()?);
            if is_under_way || self.owed.iter().any(|(_, content, _)| is_owed(content)) {
                return None;
            }
            self.recalled.insert(message.key()?);
        }
        if amendment.kind() == Kind::Edit {
            self.editing.insert(message.key()?);
        }
        let body = Body::amendment(&amendment, message.key()?, &message, usize::MAX).expect("a text");
        let amending = |target, name| {
            let said = text_message(who, target, name, "replaced");
            Arc::new(Content { kind: amendment.kind(), body, ..Content::clone(&said) })
        };
        match message.target {
            Conversation::Group(gid) => {
                let group = self.groups[(gid.0 - group(0).0) as usize].clone()?;
                let epoch = group.epoch_of(who)?;
                let content = amending(message.target, self.name());
                Some(Write::Accept(self.accept_for(content, epoch, &group, None)))
            }
            Conversation::User(to) => {
                let other = if who == to { message.sender } else { to };
                let content = amending(Conversation::User(other), self.name());
                let rows = vec![row(who, self.next(who))];
                let later = (other != who).then_some(Recipient { uid: other, epoch: MembershipEpoch(0) });
                Some(Write::Accept(accept(content, rows, later.into_iter().collect())))
            }
        }
    }

    /// `by` deletes a copy that is there.
    fn delete(&mut self, message: &Content, by: Uid) -> Option<Write> {
        let is_owed = self.owed.iter().any(|(_, content, to)| {
            content.key() == message.key() && to.iter().any(|recipient| recipient.uid == by)
        });
        let is_edit = |content: &Content| content.kind == Kind::Edit && content.of() == message.key();
        let is_edited = self.editing.contains(&message.key()?)
            || self.owed.iter().any(|(_, content, _)| is_edit(content));
        let has_it = message.sender == by || message.target == Conversation::User(by);
        if is_owed || is_edited || !has_it || !self.deleted.insert((by, message.key()?)) {
            return None;
        }
        let body = Body::amendment(&Amendment::Delete, message.key()?, message, usize::MAX).expect("short");
        let said = text_message(by, message.conversation(by), self.name(), "replaced");
        let content = Arc::new(Content { kind: Kind::Delete, body, ..Content::clone(&said) });
        Some(Write::Accept(accept(content, vec![row(by, self.next(by))], vec![])))
    }

    fn change(&mut self, by: Uid, at: u8, who: Uid, how: u8) -> Option<Write> {
        let at = usize::from(at) % GROUPS as usize;
        let gid = group(at as u64);
        let now = Timestamp(i64::from(how));
        let (change, heard) = match &self.groups[at] {
            None => {
                let step = GroupStep::Created { name: "walkers".to_owned(), members: vec![by, who] };
                let change = GroupChange::of_step(gid, 0, by, now, &step);
                let group = Group::create(&change)?;
                (change, group)
            }
            Some(group) => {
                group.epoch_of(by)?;
                let change = group.change(by, now, &step(group, by, who, how)?);
                let after = group.apply(&change)?;
                (change, after)
            }
        };
        let before = self.groups[at].as_ref().unwrap_or(&heard);
        let epoch = before.epoch_of(by)?;
        let content = Content {
            kind: Kind::Membership,
            ..(*text_message(by, Conversation::Group(gid), self.name(), "changed")).clone()
        };
        Some(Write::Accept(self.accept_for(Arc::new(content), epoch, &heard, Some(change))))
    }

    /// Owed to everyone who is in after the change, and to the one who is put out by it.
    fn accept_for(
        &mut self,
        content: Arc<Content>,
        epoch: MembershipEpoch,
        group: &Group,
        change: Option<GroupChange>,
    ) -> Accept {
        let sender = content.sender;
        let ends = change.as_ref().and_then(|change| change.ends);
        let mut rest: Vec<Recipient> = group
            .active()
            .map(|member| Recipient { uid: member.uid, epoch: member.epoch })
            .chain(ends.map(|(uid, epoch)| Recipient { uid, epoch }))
            .filter(|to| to.uid != sender)
            .collect();
        // Not in the order of their uids, so that the order of the acceptance is seen to be kept.
        rest.reverse();
        let own = member_row(sender, self.next(sender), epoch.0);
        Accept { change, ..accept(content, vec![own], rest) }
    }

    /// Takes note of what became of a write.
    pub fn settle(&mut self, write: &Write, done: &Outcome) {
        match (write, done) {
            (Write::Accept(accept), Outcome::Accepted(acceptance, _)) => {
                if let Some(of) = accept.content.changes_message() {
                    self.editing.remove(&of);
                }
                if let Some(change) = &accept.change {
                    let group = &mut self.groups[(change.gid.0 - group(0).0) as usize];
                    *group = match group.take() {
                        None => Group::create(change),
                        Some(group) => group.apply(change),
                    };
                }
                if !accept.rest.is_empty() {
                    self.owed.push((*acceptance, accept.content.clone(), accept.rest.clone()));
                }
            }
            (Write::Deliver(deliver), Outcome::Delivered(_)) => {
                for (acceptance, _, owed) in &mut self.owed {
                    // One delivery in four stays on the list and is made once more.
                    if *acceptance == deliver.acceptance && deliver.rows[0].message_id.get() % 4 > 0 {
                        owed.retain(|to| deliver.rows.iter().all(|row| row.receiver != to.uid));
                    }
                }
                self.owed.retain(|(_, _, owed)| !owed.is_empty());
            }
            _ => {}
        }
    }
}

/// Some moves of one commit.
#[cfg(test)]
pub(crate) fn moves() -> impl proptest::strategy::Strategy<Value = Vec<Move>> {
    use proptest::prelude::*;
    let byte = || any::<u8>();
    let one = prop_oneof![
        6 => (byte(), byte(), any::<bool>()).prop_map(|(from, to, later)| Move::Tell(from, to, later)),
        6 => (byte(), byte()).prop_map(|(from, gid)| Move::Speak(from, gid)),
        4 => (byte(), byte(), byte(), byte()).prop_map(|(by, gid, who, how)| Move::Change(by, gid, who, how)),
        9 => (byte(), byte()).prop_map(|(at, count)| Move::Deliver(at, count)),
        3 => (byte(), byte(), 0..20u8).prop_map(|(owner, other, to)| Move::ReadMarker(owner, other, to)),
        5 => (byte(), byte(), byte()).prop_map(|(at, by, what)| Move::Amend(at, by, what)),
        1 => byte().prop_map(Move::Repeat),
        1 => byte().prop_map(Move::Backwards),
    ];
    prop::collection::vec(one, 1..12)
}

fn user(n: u32) -> Uid {
    Uid(10_001 + n % USERS)
}

fn group(n: u64) -> GroupId {
    GroupId(1 + n)
}
