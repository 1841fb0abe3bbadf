//! Decides what a request leads to: an answer, or a write. Pure: facts in, decisions out.
//!
//! Called by the writer for each batch, in the order of acceptance. It sees its own earlier decisions of the batch
//! (a group that was just changed, a read marker that was just moved, a `client_id` that was just used).

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::message::Person;
use crate::domain::{
    Body, ClientId, Content, Conversation, Digest, Group, GroupChange, GroupId, GroupStep, IdempotencyKey,
    Kind, MembershipEpoch, MessageId, Timestamp, Uid,
};
use crate::store::{IdempotencyRecord, KeyState, Recipient, Unused};

use super::request::Answer;
use super::{Draft, GroupAction, Post, Request, SendAck, SendError};

/// The limits that decisions keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Characters of a text.
    pub(super) text: usize,
    /// Members of a group.
    pub(super) members: usize,
}

/// What the decisions of a batch rest on, read before it.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What there is under the idempotency keys of the batch.
    pub(super) keys: HashMap<IdempotencyKey, KeyState>,
    /// Names of the people whom the batch mentions, where they exist.
    pub(super) people: HashMap<Uid, String>,
    /// Groups that the batch mentions, where they exist.
    pub(super) groups: HashMap<GroupId, Arc<Group>>,
    /// Conversations of the rows that read markers name, where those exist and may be marked.
    pub(super) rows: HashMap<(Uid, MessageId), Conversation>,
    /// Read markers as they stand.
    pub(super) read_to: HashMap<(Uid, Conversation), MessageId>,
}

/// A write that only lacks its numbers.
#[derive(Debug)]
pub(super) struct Plan {
    /// The place of its request in the batch.
    pub(super) at: usize,
    pub(super) content: Arc<Content>,
    pub(super) digest: Digest,
    /// First the one whose copy answers the request: the sender, or the receiver of a post.
    pub(super) recipients: Vec<Recipient>,
    pub(super) change: Option<GroupChange>,
    /// The version of the group on which it rests.
    pub(super) group_version: Option<u64>,
    /// That its key has no record.
    pub(super) unused: Option<Unused>,
}

/// What a request leads to.
#[derive(Debug)]
pub(super) enum Decision {
    /// Nothing to write.
    Answer(Answer),
    /// To be written.
    Write(Plan),
    /// The same as the request at this place of the batch: gets its answer.
    SameAs(usize),
}

/// What there is under the key of a request.
enum Under {
    /// An acceptance, of earlier or of this batch.
    Answered(Decision),
    /// Nothing; the proof, if the store was asked.
    Nothing(Option<Unused>),
}

/// Decides a batch, request by request.
pub(super) struct Planner {
    facts: Facts,
    limits: Limits,
    now: Timestamp,
    /// Where in the batch a key was first used, and for what.
    used: HashMap<IdempotencyKey, (usize, Digest)>,
}

impl Planner {
    pub(super) fn new(facts: Facts, limits: Limits, now: Timestamp) -> Planner {
        Planner { facts, limits, now, used: HashMap::new() }
    }

    /// Decides the request at place `at` of the batch.
    pub(super) fn decide(&mut self, at: usize, who: Uid, request: &Request) -> Decision {
        let decided = match request {
            Request::Message(draft) => self.message(at, who, draft),
            Request::Post(post) => self.post(at, who, post),
            Request::Read { conversation, message_id } => self.read(at, who, *conversation, *message_id),
            Request::Group { client_id, gid, action } => self.group(at, who, *client_id, *gid, action),
        };
        decided.unwrap_or_else(|refusal| Decision::Answer(Err(refusal)))
    }

    fn message(&mut self, at: usize, who: Uid, draft: &Draft) -> Result<Decision, SendError> {
        let Draft { client_id, to, ref text } = *draft;
        let (key, digest) = ((who, client_id), Digest::of(to, text));
        let unused = match self.under(key, digest)? {
            Under::Answered(decision) => return Ok(decision),
            Under::Nothing(unused) => unused,
        };
        let (recipients, group_version) = match to {
            Conversation::User(other) => {
                if !self.facts.people.contains_key(&other) {
                    return Err(SendError::UnknownUser(other.0));
                }
                let pair = [who, other];
                let copies = if who == other { 1 } else { 2 };
                let pair = pair[..copies].iter().map(|&uid| Recipient { uid, epoch: MembershipEpoch(0) });
                (pair.collect(), None)
            }
            Conversation::Group(gid) => {
                let group = self.facts.groups.get(&gid).ok_or(SendError::UnknownGroup)?;
                (members(group, who)?, Some(group.version))
            }
        };
        let body = Body::text(text, self.limits.text)?;
        self.used.insert(key, (at, digest));
        let content = self.content(Kind::Message, who, to, Some(client_id), body);
        Ok(Decision::Write(Plan { at, content, digest, recipients, change: None, group_version, unused }))
    }

    fn post(&mut self, at: usize, who: Uid, post: &Post) -> Result<Decision, SendError> {
        let Post { client_id, receiver, target, kind, ref body } = *post;
        let (key, digest) = (client_id.map(|client_id| (who, client_id)), post.digest());
        let unused = match key.map(|key| self.under(key, digest)).transpose()? {
            Some(Under::Answered(decision)) => return Ok(decision),
            Some(Under::Nothing(unused)) => unused,
            None => None,
        };
        self.person(receiver)?;
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
        Ok(Decision::Write(Plan { at, content, digest, recipients, change: None, group_version, unused }))
    }

    /// What there is under a key. The first answer comes before any check: a sender since removed from the group still gets it (I4).
    fn under(&self, key: IdempotencyKey, digest: Digest) -> Result<Under, SendError> {
        let unused = match self.facts.keys.get(&key) {
            Some(KeyState::Used(record)) if record.digest != digest => return Err(SendError::ClientIdReused),
            Some(&KeyState::Used(IdempotencyRecord { message_id, sent_at, .. })) => {
                let known = SendAck { message_id, sent_at, repeated: true };
                return Ok(Under::Answered(Decision::Answer(Ok(known))));
            }
            Some(KeyState::Unused(unused)) => Some(*unused),
            None => None,
        };
        match self.used.get(&key) {
            Some((first, same)) if *same == digest => Ok(Under::Answered(Decision::SameAs(*first))),
            Some(_) => Err(SendError::ClientIdReused),
            None => Ok(Under::Nothing(unused)),
        }
    }

    fn read(
        &mut self,
        at: usize,
        who: Uid,
        conversation: Conversation,
        message_id: MessageId,
    ) -> Result<Decision, SendError> {
        if self.facts.rows.get(&(who, message_id)) != Some(&conversation) {
            return Err(SendError::NotInConversation);
        }
        let marker = self.facts.read_to.entry((who, conversation)).or_default();
        if message_id <= *marker {
            let known = SendAck { message_id: *marker, sent_at: self.now, repeated: true };
            return Ok(Decision::Answer(Ok(known)));
        }
        *marker = message_id;
        let content = self.content(Kind::ReadMarker, who, conversation, None, Body::read_marker(message_id));
        let recipients = vec![Recipient { uid: who, epoch: MembershipEpoch(0) }];
        let digest = Digest::of(conversation, content.body.as_json());
        let (change, group_version, unused) = (None, None, None);
        Ok(Decision::Write(Plan { at, content, digest, recipients, change, group_version, unused }))
    }

    fn group(
        &mut self,
        at: usize,
        who: Uid,
        client_id: ClientId,
        gid: GroupId,
        action: &GroupAction,
    ) -> Result<Decision, SendError> {
        let before = self.facts.groups.get(&gid).cloned();
        let (step, concerned) = match action {
            GroupAction::Create { name, members } => (self.creation(who, name, members)?, who),
            GroupAction::Add(uid) => (self.joining(who, *uid, before.as_deref())?, *uid),
            GroupAction::Remove(uid) => (leaving(who, *uid, before.as_deref())?, *uid),
        };
        let from_version = before.as_ref().map_or(0, |group| group.version);
        let change = GroupChange { gid, from_version, step };
        let after = match &before {
            None => Group::create(&change),
            Some(group) => group.apply(&change),
        };
        let after = Arc::new(after.ok_or(SendError::GroupChanged)?);

        // Whoever leaves still gets the row that says so; whoever joins gets it as the first.
        let notified = if change.step.ends().is_some() { before.as_ref() } else { Some(&after) };
        let notified = notified.ok_or(SendError::UnknownGroup)?;
        let recipients = members(notified, who)?;
        let body =
            Body::membership(gid, &after.name, &change.step, &self.person(concerned)?, &self.person(who)?);
        let target = Conversation::Group(gid);
        let digest = Digest::of(target, body.as_json());
        self.facts.groups.insert(gid, after);
        let content = self.content(Kind::Membership, who, target, Some(client_id), body);
        let (change, group_version, unused) = (Some(change), Some(from_version), None);
        Ok(Decision::Write(Plan { at, content, digest, recipients, change, group_version, unused }))
    }

    fn creation(&self, who: Uid, name: &str, members: &[Uid]) -> Result<GroupStep, SendError> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
            return Err(SendError::GroupName);
        }
        let mut all = members.to_vec();
        all.push(who);
        all.sort_unstable();
        all.dedup();
        if all.len() > self.limits.members {
            return Err(SendError::GroupFull(self.limits.members));
        }
        for uid in &all {
            self.person(*uid)?;
        }
        Ok(GroupStep::Created { name: name.to_owned(), members: all })
    }

    fn joining(&self, who: Uid, uid: Uid, group: Option<&Group>) -> Result<GroupStep, SendError> {
        let group = group.filter(|group| group.epoch_of(who).is_some()).ok_or(SendError::UnknownGroup)?;
        self.person(uid)?;
        if group.epoch_of(uid).is_some() {
            return Err(SendError::AlreadyMember);
        }
        if group.active().count() >= self.limits.members {
            return Err(SendError::GroupFull(self.limits.members));
        }
        Ok(GroupStep::Added(uid, group.next_epoch(uid)))
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

fn leaving(who: Uid, uid: Uid, group: Option<&Group>) -> Result<GroupStep, SendError> {
    let group = group.filter(|group| group.epoch_of(who).is_some()).ok_or(SendError::UnknownGroup)?;
    let epoch = group.epoch_of(uid).ok_or(SendError::NotMember)?;
    Ok(if uid == who { GroupStep::Left(uid, epoch) } else { GroupStep::Removed(uid, epoch) })
}

/// The members of `group`, `who` first; refused unless `who` is one.
fn members(group: &Group, who: Uid) -> Result<Vec<Recipient>, SendError> {
    let own = group.epoch_of(who).ok_or(SendError::UnknownGroup)?;
    let others = group.active().filter(|member| member.uid != who);
    let others = others.map(|member| Recipient { uid: member.uid, epoch: member.epoch });
    Ok(std::iter::once(Recipient { uid: who, epoch: own }).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ANN: Uid = Uid(1);
    const BOB: Uid = Uid(2);
    const CAT: Uid = Uid(3);
    const WALKERS: GroupId = GroupId(7);

    fn facts() -> Facts {
        let people = [(ANN, "ann"), (BOB, "bob"), (CAT, "cat")];
        let step = GroupStep::Created { name: "walkers".into(), members: vec![ANN, BOB] };
        let group = Group::create(&GroupChange { gid: WALKERS, from_version: 0, step }).expect("a making");
        Facts {
            people: people.into_iter().map(|(uid, name)| (uid, name.to_owned())).collect(),
            groups: HashMap::from([(WALKERS, Arc::new(group))]),
            ..Facts::default()
        }
    }

    fn planner(facts: Facts) -> Planner {
        Planner::new(facts, Limits { text: 10, members: 3 }, Timestamp(5))
    }

    fn say(id: u128, to: Conversation, text: &str) -> Request {
        Request::Message(Draft { client_id: ClientId(Uuid::from_u128(id)), to, text: text.into() })
    }

    fn refusal(decision: Decision) -> Option<SendError> {
        match decision {
            Decision::Answer(answer) => answer.err(),
            Decision::Write(_) | Decision::SameAs(_) => None,
        }
    }

    #[test]
    fn a_repetition_within_the_batch_shares_the_first_ones_answer() {
        let mut planner = planner(facts());
        let to = Conversation::User(BOB);
        assert!(matches!(planner.decide(0, ANN, &say(1, to, "hi")), Decision::Write(_)));
        assert!(matches!(planner.decide(1, ANN, &say(1, to, "hi")), Decision::SameAs(0)));
        let other = planner.decide(2, ANN, &say(1, to, "ho"));
        assert_eq!(refusal(other), Some(SendError::ClientIdReused));
        // The same id of another sender is another message.
        assert!(matches!(planner.decide(3, BOB, &say(1, to, "hi")), Decision::Write(_)));
    }

    #[test]
    fn the_first_answer_outlives_membership_and_limits() {
        let mut facts = facts();
        let to = Conversation::Group(WALKERS);
        let text = "far longer than the limit of ten";
        let record = IdempotencyRecord {
            message_id: MessageId::MAX,
            sent_at: Timestamp(1),
            digest: Digest::of(to, text),
        };
        facts.keys.insert((CAT, ClientId(Uuid::from_u128(1))), KeyState::Used(record));
        let mut planner = planner(facts);
        let Decision::Answer(Ok(ack)) = planner.decide(0, CAT, &say(1, to, text)) else {
            panic!("the record answers");
        };
        assert_eq!((ack.message_id, ack.repeated), (MessageId::MAX, true));
        assert_eq!(refusal(planner.decide(1, CAT, &say(2, to, "hi"))), Some(SendError::UnknownGroup));
    }

    fn post(n: u128, target: Conversation) -> Request {
        let client_id = (n > 0).then(|| ClientId(Uuid::from_u128(n)));
        let body = Body::text("hi", 10).expect("short");
        Request::Post(Post { client_id, receiver: BOB, target, kind: Kind::Message, body })
    }

    #[test]
    fn a_post_is_for_its_receiver_alone_and_known_again() {
        let mut planner = planner(facts());
        for (n, target, epoch, version) in [
            (1, Conversation::User(BOB), MembershipEpoch(0), None),
            (2, Conversation::Group(WALKERS), MembershipEpoch(1), Some(1)),
            (0, Conversation::User(BOB), MembershipEpoch(0), None),
        ] {
            let Decision::Write(plan) = planner.decide(n as usize, ANN, &post(n, target)) else {
                panic!("a write")
            };
            assert_eq!(plan.recipients, [Recipient { uid: BOB, epoch }]);
            assert_eq!((plan.group_version, plan.content.client_id.is_some()), (version, n > 0));
        }
        let again = planner.decide(3, ANN, &post(1, Conversation::User(BOB)));
        assert!(matches!(again, Decision::SameAs(1)), "{again:?}");
        let other = planner.decide(4, ANN, &post(1, Conversation::Group(WALKERS)));
        assert_eq!(refusal(other), Some(SendError::ClientIdReused));
        let said = planner.decide(5, ANN, &say(1, Conversation::User(BOB), "hi"));
        assert_eq!(refusal(said), Some(SendError::ClientIdReused), "a message is something else");
        let outside = planner.decide(6, CAT, &post(6, Conversation::Group(WALKERS)));
        assert_eq!(refusal(outside), Some(SendError::UnknownGroup));
        let nobody = Post {
            receiver: Uid(9),
            ..match post(7, Conversation::User(Uid(9))) {
                Request::Post(post) => post,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refusal(planner.decide(7, ANN, &Request::Post(nobody))), Some(SendError::UnknownUser(9)));
    }

    #[test]
    fn a_note_to_oneself_is_one_copy() {
        let mut planner = planner(facts());
        let Decision::Write(plan) = planner.decide(0, ANN, &say(1, Conversation::User(ANN), "hi")) else {
            panic!("a write");
        };
        assert_eq!(plan.recipients.len(), 1);
    }

    #[test]
    fn a_read_marker_only_grows_and_names_a_row_of_its_conversation() {
        let mut facts = facts();
        let id = |n| MessageId::new(n).expect("small");
        let with_bob = Conversation::User(BOB);
        facts.rows.extend([((ANN, id(4)), with_bob), ((ANN, id(9)), with_bob)]);
        let mut planner = planner(facts);
        let read = |n| Request::Read { conversation: with_bob, message_id: id(n) };
        assert!(matches!(planner.decide(0, ANN, &read(9)), Decision::Write(_)));
        assert!(matches!(planner.decide(1, ANN, &read(4)), Decision::Answer(Ok(_))));
        assert_eq!(refusal(planner.decide(2, ANN, &read(5))), Some(SendError::NotInConversation));
        let elsewhere = Request::Read { conversation: Conversation::User(CAT), message_id: id(9) };
        assert_eq!(refusal(planner.decide(3, ANN, &elsewhere)), Some(SendError::NotInConversation));
    }

    #[test]
    fn changes_of_one_batch_build_on_each_other() {
        let mut planner = planner(facts());
        let change =
            |action| Request::Group { client_id: ClientId(Uuid::from_u128(9)), gid: WALKERS, action };
        let Decision::Write(added) = planner.decide(0, ANN, &change(GroupAction::Add(CAT))) else {
            panic!("a write");
        };
        assert_eq!(added.recipients.len(), 3);
        let Decision::Write(left) = planner.decide(1, BOB, &change(GroupAction::Remove(BOB))) else {
            panic!("a write");
        };
        assert_eq!(left.recipients[0].uid, BOB, "who leaves gets the row that says so");
        assert_eq!(left.change.map(|change| change.from_version), Some(2));
        let again = planner.decide(2, BOB, &change(GroupAction::Add(BOB)));
        assert_eq!(refusal(again), Some(SendError::UnknownGroup));
    }
}
