//! Decides what a request leads to: an answer, or a write. Pure: facts in, decisions out.
//!
//! Called by the writer for each batch, in the order of acceptance. It sees its own earlier decisions of the batch
//! (a group that was just changed, a read marker that was just moved, a `client_id` that was just used).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::domain::message::Person;
use crate::domain::{
    Amendment, Attached, Body, ClientId, Content, Conversation, Digest, Group, GroupId, IdempotencyKey, Keep,
    Kind, MembershipEpoch, Mentions, MessageId, Progress, ReadCount, ShownFile, Timestamp, Uid, check_emoji,
};
use crate::store::{Accept, IdempotencyRecord, KeyState, Recipient, Unused};

use super::permissions::{Pair, WritePermission};
use super::request::RequestAnswer;
use super::{Amend, OutgoingMessage, Post, Publish, Request, SendAck, SendError};

/// The limits that decisions keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanLimits {
    /// Characters of a text.
    pub(super) text_characters: usize,
    /// Members of a group.
    pub(super) members: usize,
    /// For how long a message may be edited.
    pub(super) edit: Duration,
    /// For how long it may be taken back.
    pub(super) recall: Duration,
    /// Whether those who join a group whose history is visible get any of it.
    pub(super) history: bool,
    /// Starred messages of one account.
    pub(super) stars: usize,
}

/// The facts on which the decisions of a batch rest, read before it.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The states of the idempotency keys of the batch.
    pub(super) keys: HashMap<IdempotencyKey, KeyState>,
    /// Names of the people whom the batch mentions, where they exist.
    pub(super) people: HashMap<Uid, String>,
    /// Those of them whose accounts are deleted.
    pub(super) deleted: HashSet<Uid>,
    /// Groups that the batch mentions, where they exist.
    pub(super) groups: HashMap<GroupId, Arc<Group>>,
    /// The rows that requests name, where those exist and are no read markers.
    pub(super) rows: HashMap<(Uid, MessageId), Arc<Content>>,
    /// Whether receivers let the writers write.
    pub(super) permissions: HashMap<Pair, WritePermission>,
    /// Whether people want to be others' friends.
    pub(super) wishes: HashMap<Pair, bool>,
    /// For how long messages with another person are kept.
    pub(super) keeps: HashMap<Pair, Keep>,
    /// Read markers as they stand.
    pub(super) read_to: HashMap<(Uid, Conversation), MessageId>,
    /// The last message of the first that the second has told about, as far as any.
    pub(super) told: HashMap<(Uid, Uid, Progress), IdempotencyKey>,
    /// The own copies of those messages and of such as are told about now: by them it is known which is the later one.
    pub(super) own: HashMap<IdempotencyKey, MessageId>,
    /// The messages that are pinned in a conversation, as its members have it.
    pub(super) pins: HashMap<(Uid, Conversation), Vec<IdempotencyKey>>,
    /// The messages that people have starred.
    pub(super) stars: HashMap<Uid, Vec<IdempotencyKey>>,
    /// When members of slow groups last said something there.
    pub(super) spoke: HashMap<(Uid, GroupId), Timestamp>,
    /// The read counts of groups that authors know.
    pub(super) counted: HashMap<(Uid, GroupId), Vec<ReadCount>>,
}

impl Facts {
    /// Refuses what is for somebody who does not exist, or whose account is deleted.
    pub(super) fn receiving(&self, uid: Uid) -> Result<(), SendError> {
        match self.people.contains_key(&uid) {
            false => Err(SendError::UnknownUser(uid.0)),
            true if self.deleted.contains(&uid) => Err(SendError::AccountDeleted(uid.0)),
            true => Ok(()),
        }
    }
}

/// Why a request leads to no write.
#[derive(Debug)]
pub(super) enum NoWrite {
    /// Its answer is known.
    Answer(RequestAnswer),
    /// It is the same as the request at this place of the batch, and gets its answer.
    SameAs(usize),
}

impl From<SendError> for NoWrite {
    fn from(refusal: SendError) -> NoWrite {
        NoWrite::Answer(Err(refusal))
    }
}

/// A write that only lacks its numbers. The first recipient is the one whose copy answers the request.
fn unnumbered(content: Arc<Content>, digest: Digest, recipients: Vec<Recipient>) -> Accept {
    let rows = recipients.into_iter().map(|to| to.row(MessageId::ZERO)).collect();
    let (rest, change, group_version, unused) = (Vec::new(), None, None, None);
    Accept { content, digest, rows, rest, change, group_version, unused }
}

/// The joiner that gets earlier messages before this content, if there is one.
pub(super) fn joiner(content: &Content) -> Option<Uid> {
    if content.kind == Kind::Membership { content.body.joins_with_history() } else { None }
}

/// Decides a batch, request by request.
pub(super) struct Planner {
    facts: Facts,
    limits: PlanLimits,
    now: Timestamp,
    /// Where in the batch a key was first used, and for what.
    used: HashMap<IdempotencyKey, (usize, Digest)>,
}

impl Planner {
    pub(super) fn new(facts: Facts, limits: PlanLimits, now: Timestamp) -> Planner {
        Planner { facts, limits, now, used: HashMap::new() }
    }

    /// Decides the request at place `at` of the batch.
    pub(super) fn decide(&mut self, at: usize, who: Uid, request: &Request) -> Result<Accept, NoWrite> {
        if self.facts.deleted.contains(&who) && !request.takes_back(who) {
            Err(SendError::AccountDeleted(who.0))?;
        }
        match request {
            Request::Message(message) => self.message(at, who, message),
            Request::Post(post) => self.post(at, who, post),
            Request::Amend(amend) => self.amend(at, who, amend),
            Request::Publish(publish) => self.publish(at, who, publish),
            Request::Read { conversation, message_id } => self.read(who, *conversation, *message_id),
            Request::Seen { of, message_id, progress } => self.seen(who, *of, *message_id, *progress),
            Request::ReadCounts { gid, counts } => self.read_counts(who, *gid, counts),
            Request::Group { client_id, gid, action } => self.group(at, who, *client_id, *gid, action),
        }
    }

    fn message(&mut self, at: usize, who: Uid, message: &OutgoingMessage) -> Result<Accept, NoWrite> {
        let OutgoingMessage { client_id, to, ref text, reply_to, forward, ref files, ref mentions } =
            *message;
        let (key, digest) = ((who, client_id), message.digest());
        let unused = self.unused(key, digest)?;
        let (recipients, group_version) = self.recipients(who, to)?;
        self.pass(who, to)?;
        self.may_speak(who, to)?;
        self.may_say_now(who, to)?;
        let body = match files.is_empty() {
            true => Body::text(text, self.limits.text_characters),
            false => Body::caption(text, self.limits.text_characters),
        };
        let mut body = body.map_err(SendError::from)?.with_mentions(&self.members_among(to, mentions));
        if let Some(row) = reply_to {
            body = body.replying(self.message_in(who, to, row)?);
        }
        body = match forward {
            Some(row) => body.forwarding(self.forwarded(who, row, message)?),
            None => body.with_files(known(files)?),
        };
        self.used.insert(key, (at, digest));
        self.spoken(who, to);
        let content = self.content(Kind::Message, who, to, Some(client_id), body);
        Ok(Accept { group_version, unused, ..unnumbered(content, digest, recipients) })
    }

    /// The row of the caller's inbox, if it is a message with the text and the files of `message`, in whatever conversation.
    fn forwarded(&self, who: Uid, row: MessageId, message: &OutgoingMessage) -> Result<&Content, SendError> {
        let content = self.facts.rows.get(&(who, row)).ok_or(SendError::NotInConversation)?;
        match content.kind {
            Kind::Recalled => Err(SendError::Recalled),
            Kind::Message if content.body.said().as_deref() == Some(&*message.text) => {
                let known = known(&message.files)?;
                let is_kept = |file: &ShownFile| known.iter().any(|kept| kept.id == file.id());
                content.files().iter().all(is_kept).then_some(&**content).ok_or(SendError::UnknownFile)
            }
            Kind::Message => Err(SendError::OtherText),
            _ => Err(SendError::NoMessage),
        }
    }

    /// The mentioned users that are members. A message must not fail because somebody has left while it waited to be sent.
    fn members_among(&self, to: Conversation, mentions: &Mentions) -> Mentions {
        let Conversation::Group(gid) = to else { return Mentions::default() };
        let group = self.facts.groups.get(&gid).filter(|_| !mentions.is_empty());
        group.map_or_else(Mentions::default, |group| mentions.only(|uid| group.epoch_of(uid).is_some()))
    }

    /// The receivers of rows that `who` sends there, `who` first, and the version of the group that names them.
    fn recipients(&self, who: Uid, to: Conversation) -> Result<(Vec<Recipient>, Option<u64>), SendError> {
        match to {
            Conversation::User(other) => {
                self.facts.receiving(other)?;
                let pair = [who, other];
                let copies = if who == other { 1 } else { 2 };
                let pair = pair[..copies].iter().map(|&uid| Recipient { uid, epoch: MembershipEpoch(0) });
                Ok((pair.collect(), None))
            }
            Conversation::Group(gid) => {
                let group = self.facts.groups.get(&gid).ok_or(SendError::UnknownGroup)?;
                Ok((members(group, who)?, Some(group.version)))
            }
        }
    }

    /// Whether the other person of this conversation takes what `who` writes.
    fn pass(&self, who: Uid, to: Conversation) -> Result<(), SendError> {
        let Conversation::User(other) = to else { return Ok(()) };
        match self.facts.permissions.get(&(other, who)) {
            Some(WritePermission::Blocked) => Err(SendError::Blocked),
            Some(WritePermission::Blocks) => Err(SendError::Blocks),
            Some(WritePermission::FriendsOnly) => Err(SendError::FriendsOnly),
            Some(WritePermission::Given | WritePermission::ToFriend) | None => Ok(()),
        }
    }

    /// The row of the caller's inbox, if it is a message of that conversation which others can be told of.
    fn message_in(
        &self,
        who: Uid,
        conversation: Conversation,
        row: MessageId,
    ) -> Result<&Content, SendError> {
        let content = self.row_in(who, conversation, row)?;
        match content.kind {
            Kind::Recalled => Err(SendError::Recalled),
            Kind::Message if content.client_id.is_some() => Ok(content),
            _ => Err(SendError::NoMessage),
        }
    }

    /// The row of the caller's inbox, if it is one of that conversation.
    fn row_in(&self, who: Uid, conversation: Conversation, row: MessageId) -> Result<&Content, SendError> {
        let content = self.facts.rows.get(&(who, row)).filter(|row| row.conversation(who) == conversation);
        content.map(|content| &**content).ok_or(SendError::NotInConversation)
    }

    fn publish(&mut self, at: usize, who: Uid, publish: &Publish) -> Result<Accept, NoWrite> {
        let Publish { client_id, kind, target, ref body, ref files, ref others } = *publish;
        let (key, digest) = ((who, client_id), publish.digest());
        let unused = self.unused(key, digest)?;
        match target {
            Conversation::MOMENTS => {}
            Conversation::User(other) if kind == Kind::Friend && body.wanted() => {
                self.facts.receiving(other)?
            }
            Conversation::User(other) if kind == Kind::Keep => {
                self.facts.receiving(other)?;
                self.pass(who, target)?;
            }
            Conversation::User(other) => drop(self.person(other)?),
            // Also one who is not in it any more chooses what becomes of it on the own devices.
            Conversation::Group(gid) => {
                let group = self.facts.groups.get(&gid);
                let member = group.and_then(|group| group.members.iter().find(|member| member.uid == who));
                member.ok_or(SendError::UnknownGroup)?;
            }
        }
        let body = self.keep(who, publish).unwrap_or_else(|| body.clone());
        self.used.insert(key, (at, digest));
        let is_told = self.is_told(who, publish);
        let is_there = |uid: &Uid| *uid != who && !self.facts.deleted.contains(uid);
        let others = others.iter().copied().filter(|uid| is_there(uid) && is_told);
        let everybody = std::iter::once(who).chain(others);
        let recipients = everybody.map(|uid| Recipient { uid, epoch: MembershipEpoch(0) }).collect();
        let body = body.with_files(known(files)?);
        let content = self.content(kind, who, target, Some(client_id), body);
        Ok(Accept { unused, ..unnumbered(content, digest, recipients) })
    }

    /// The body that says for how long messages with somebody are kept from now on, if that is published.
    fn keep(&mut self, who: Uid, publish: &Publish) -> Option<Body> {
        let (Kind::Keep, Conversation::User(other)) = (publish.kind, publish.target) else { return None };
        let Keep { seconds, .. } = publish.body.keep().unwrap_or_default();
        let before = self.facts.keeps.get(&(who, other)).copied().unwrap_or_default();
        let keep = before.changed(seconds, self.now);
        self.facts.keeps.extend([((who, other), keep), ((other, who), keep)]);
        Some(Body::of_keep(keep))
    }

    /// Whether others are told. Declining changes nothing for the other person, so only the decliner gets a row.
    fn is_told(&mut self, who: Uid, publish: &Publish) -> bool {
        let (Kind::Friend, Conversation::User(other)) = (publish.kind, publish.target) else { return true };
        let wanted = publish.body.wanted();
        let before = self.facts.wishes.insert((who, other), wanted).unwrap_or_default();
        wanted || before
    }

    fn amend(&mut self, at: usize, who: Uid, amend: &Amend) -> Result<Accept, NoWrite> {
        let Amend { client_id, conversation, message_id, ref amendment } = *amend;
        let (key, digest) = ((who, client_id), amend.digest());
        let unused = self.unused(key, digest)?;
        let (recipients, group_version) = match amendment.is_private() {
            true => (vec![Recipient { uid: who, epoch: MembershipEpoch(0) }], None),
            false => self.recipients(who, conversation)?,
        };
        if amendment.must_be_taken() {
            self.pass(who, conversation)?;
        }
        let row = self.row_in(who, conversation, message_id)?;
        // Marks are taken from what is gone, too.
        let is_unmarked = amendment.kind().is_state() && !amendment.adds();
        let is_deleted_now = row.kind.is_deletable() && *amendment == Amendment::Delete;
        let is_fine = row.kind.is_gone() && (is_unmarked || is_deleted_now);
        let message = if is_fine { row } else { self.message_in(who, conversation, message_id)? };
        let age = Duration::from_millis(self.now.0.saturating_sub(message.sent_at.0).max(0).cast_unsigned());
        match amendment {
            // They take back whatever stands in their group, and at any time.
            Amendment::Recall if self.governs(who, conversation) => {}
            Amendment::Edit(_) | Amendment::Recall if message.sender != who => {
                return Err(SendError::NotYours.into());
            }
            Amendment::Edit(_) if age >= self.limits.edit => {
                return Err(SendError::TooLate(self.limits.edit).into());
            }
            Amendment::Edit(_) => self.may_speak(who, conversation)?,
            Amendment::Recall if age >= self.limits.recall => {
                return Err(SendError::TooLate(self.limits.recall).into());
            }
            Amendment::React(emoji) => check_emoji(emoji).map_err(SendError::from)?,
            _ => {}
        }
        let of = message.key().ok_or(SendError::NoMessage)?;
        if let Amendment::Pin(pinned) = *amendment {
            self.may_pin(who, conversation, of, pinned)?;
        }
        if let Amendment::Star { starred, .. } = *amendment {
            self.may_star(who, of, starred)?;
        }
        let message = self.row_in(who, conversation, message_id)?;
        let body =
            Body::amendment(amendment, of, message, self.limits.text_characters).map_err(SendError::from)?;
        let content = self.content(amendment.kind(), who, conversation, Some(client_id), body);
        // Later requests of the batch find the amended message.
        if let Some(amended) = message.amended(&content) {
            self.facts.rows.insert((who, message_id), Arc::new(amended));
        }
        self.used.insert(key, (at, digest));
        Ok(Accept { group_version, unused, ..unnumbered(content, digest, recipients) })
    }

    fn post(&mut self, at: usize, who: Uid, post: &Post) -> Result<Accept, NoWrite> {
        let Post { client_id, receiver, target, kind, ref body } = *post;
        let (key, digest) = (client_id.map(|client_id| (who, client_id)), post.digest());
        let unused = key.map(|key| self.unused(key, digest)).transpose()?.flatten();
        self.facts.receiving(receiver)?;
        self.pass(who, target)?;
        let (epoch, group_version) = match target {
            Conversation::User(_) => (MembershipEpoch(0), None),
            Conversation::Group(gid) => {
                let group = self.facts.groups.get(&gid).ok_or(SendError::UnknownGroup)?;
                group.epoch_of(who).ok_or(SendError::UnknownGroup)?;
                (group.epoch_of(receiver).ok_or(SendError::NotMember)?, Some(group.version))
            }
        };
        self.used.extend(key.map(|key| (key, (at, digest))));
        let content = self.content(kind, who, target, client_id, body.clone());
        let recipients = vec![Recipient { uid: receiver, epoch }];
        Ok(Accept { group_version, unused, ..unnumbered(content, digest, recipients) })
    }

    /// That nothing was accepted under the key; the proof, if the store was asked. The first answer comes before any check: a sender since
    /// removed from the group still gets it (I4).
    fn unused(&self, key: IdempotencyKey, digest: Digest) -> Result<Option<Unused>, NoWrite> {
        let unused = match self.facts.keys.get(&key) {
            Some(KeyState::Used(record)) if record.digest != digest => Err(SendError::ClientIdReused)?,
            Some(&KeyState::Used(IdempotencyRecord { message_id, sent_at, .. })) => {
                return Err(NoWrite::Answer(Ok(SendAck { message_id, sent_at, repeated: true })));
            }
            Some(KeyState::Unused(unused)) => Some(*unused),
            None => None,
        };
        match self.used.get(&key) {
            Some((first, same)) if *same == digest => Err(NoWrite::SameAs(*first)),
            Some(_) => Err(SendError::ClientIdReused)?,
            None => Ok(unused),
        }
    }

    fn person(&self, uid: Uid) -> Result<Person, SendError> {
        let name = self.facts.people.get(&uid).ok_or(SendError::UnknownUser(uid.0))?;
        Ok(Person { uid, name: name.clone() })
    }

    fn content(
        &self,
        kind: Kind,
        sender: Uid,
        target: Conversation,
        client_id: Option<ClientId>,
        body: Body,
    ) -> Arc<Content> {
        Arc::new(Content { kind, sender, target, client_id, body, sent_at: self.now })
    }
}

/// These files, if the server knows each.
fn known(files: &[Attached]) -> Result<&[Attached], SendError> {
    files.iter().all(|file| file.facts.is_some()).then_some(files).ok_or(SendError::UnknownFile)
}

/// The members of `group`, `who` first; refused unless `who` is one.
fn members(group: &Group, who: Uid) -> Result<Vec<Recipient>, SendError> {
    let own = group.epoch_of(who).ok_or(SendError::UnknownGroup)?;
    let others = group.active().filter(|member| member.uid != who);
    let others = others.map(|member| Recipient { uid: member.uid, epoch: member.epoch });
    Ok(std::iter::once(Recipient { uid: who, epoch: own }).chain(others).collect())
}

mod groups;
mod marks;
mod moderation;
#[cfg(test)]
mod tests;
