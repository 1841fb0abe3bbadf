//! Read markers and how far messages have come; also who may pin and star one more message.

use super::{NoWrite, Planner, unnumbered};
use crate::domain::{
    Body, Conversation, Digest, GroupId, IdempotencyKey, Kind, MOST_PINS, MembershipEpoch, MessageId,
    Progress, ReadCount, Uid, grown,
};
use crate::queue::{SendAck, SendError};
use crate::store::{Accept, Recipient};

impl Planner {
    pub(super) fn read(
        &mut self,
        who: Uid,
        conversation: Conversation,
        message_id: MessageId,
    ) -> Result<Accept, NoWrite> {
        let row = self.facts.rows.get(&(who, message_id));
        if row.is_none_or(|row| row.conversation(who) != conversation) {
            Err(SendError::NotInConversation)?;
        }
        let marker = self.facts.read_to.entry((who, conversation)).or_default();
        if message_id <= *marker {
            let known = SendAck { message_id: *marker, sent_at: self.now, repeated: true };
            return Err(NoWrite::Answer(Ok(known)));
        }
        *marker = message_id;
        let content = self.content(Kind::ReadMarker, who, conversation, None, Body::read_marker(message_id));
        let recipients = vec![Recipient { uid: who, epoch: MembershipEpoch(0) }];
        let digest = Digest::of(conversation, content.body.as_json());
        Ok(unnumbered(content, digest, recipients))
    }

    /// Tells `of` how far the messages up to that row have come; who takes nothing from `who` is not told.
    pub(super) fn seen(
        &mut self,
        who: Uid,
        of: Uid,
        message_id: MessageId,
        progress: Progress,
    ) -> Result<Accept, NoWrite> {
        let message = self.row_in(who, Conversation::User(of), message_id)?;
        let key = message.key().filter(|(sender, _)| *sender == of && of != who);
        let key = key.ok_or(SendError::NoMessage)?;
        if self.facts.deleted.contains(&of) || self.pass(who, Conversation::User(of)).is_err() {
            return Err(self.unsaid());
        }
        // A device that was slow reports what is known already: ticks never go back.
        let id = |key: &IdempotencyKey| self.facts.own.get(key).copied();
        let known = self.facts.told.get(&(of, who, progress)).and_then(id);
        if known.is_some() && known >= id(&key) {
            return Err(self.unsaid());
        }
        self.facts.told.insert((of, who, progress), key);
        let target = Conversation::User(of);
        let content = self.content(Kind::Seen, who, target, None, Body::seen(progress, key));
        let recipients = vec![Recipient { uid: of, epoch: MembershipEpoch(0) }];
        let digest = Digest::of(target, content.body.as_json());
        Ok(unnumbered(content, digest, recipients))
    }

    /// Tells an author how many have read, if that is news.
    pub(super) fn read_counts(
        &mut self,
        who: Uid,
        gid: GroupId,
        counts: &[ReadCount],
    ) -> Result<Accept, NoWrite> {
        let group = self.facts.groups.get(&gid).ok_or(SendError::UnknownGroup)?;
        group.epoch_of(who).ok_or(SendError::UnknownGroup)?;
        let known = self.facts.counted.entry((who, gid)).or_default();
        let Some(grown) = grown(known, counts) else { return Err(self.unsaid()) };
        known.clone_from(&grown);
        let body = Body::read_counts(who, &grown).ok_or(SendError::NoMessage)?;
        let target = Conversation::Group(gid);
        let digest = Digest::of(target, body.as_json());
        let content = self.content(Kind::Seen, who, target, None, body);
        let recipients = vec![Recipient { uid: who, epoch: MembershipEpoch(0) }];
        Ok(unnumbered(content, digest, recipients))
    }

    /// Whether `who` may pin the message, or take its pin away: either of two people, the owner and administrators of a group.
    pub(super) fn may_pin(
        &mut self,
        who: Uid,
        conversation: Conversation,
        of: IdempotencyKey,
        pinned: bool,
    ) -> Result<(), SendError> {
        if matches!(conversation, Conversation::Group(_)) && !self.governs(who, conversation) {
            return Err(SendError::AdministratorsOnly);
        }
        let pins = self.facts.pins.entry((who, conversation)).or_default();
        if pinned && pins.len() >= MOST_PINS && !pins.contains(&of) {
            return Err(SendError::TooManyPins(MOST_PINS));
        }
        pins.retain(|pin| *pin != of);
        if pinned {
            pins.push(of);
        }
        Ok(())
    }

    /// Whether `who` may star one more message. A star can always be taken away.
    pub(super) fn may_star(&mut self, who: Uid, of: IdempotencyKey, starred: bool) -> Result<(), SendError> {
        let stars = self.facts.stars.entry(who).or_default();
        if starred && stars.len() >= self.limits.stars && !stars.contains(&of) {
            return Err(SendError::TooManyStars(self.limits.stars));
        }
        stars.retain(|star| *star != of);
        if starred {
            stars.push(of);
        }
        Ok(())
    }

    /// The answer where nothing is to be written.
    pub(super) fn unsaid(&self) -> NoWrite {
        NoWrite::Answer(Ok(SendAck { message_id: MessageId::ZERO, sent_at: self.now, repeated: true }))
    }
}
