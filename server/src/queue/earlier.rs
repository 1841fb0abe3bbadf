//! Reads the earlier messages that a joiner of a group gets, where the group's history is visible.
//!
//! The inbox of the longest-standing member gives the messages and their order. The sender's own copy gives the text of a message, so a
//! member's deletion of the own copy neither loses the message nor decides for others. An edited message has its newest text, and a
//! recalled one is left out. Owns nothing; asked by `joining` for each copy that it writes.
//!
//! With several queues only members whose inboxes this queue writes are looked at. A message that is still on its way
//! to them at the joining may be missing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::domain::{
    Content, Conversation, Entry, Group, IdempotencyKey, Kind, MOST_PINS, MessageId, RangeQuery, Standing,
    Uid, amendment_key, pins,
};
use crate::store::marked::{self, marked};
use crate::store::{KeyState, MessageStore, Recipient, StoreError};

/// Rows that are read at once.
const PAGE: usize = 200;
/// Rows that are looked at for messages and reactions.
const MOST_ROWS: usize = 2_000;
/// Members who are asked whether they have the row of the joining.
const MOST_ASKED: usize = 16;
/// The weight of a row beside its body.
const ROW: usize = 256;

/// One look.
pub(super) struct LookBack<'a> {
    pub(super) store: &'a dyn MessageStore,
    /// Messages at most, and reactions.
    pub(super) rows: usize,
    /// Bytes of all of it.
    pub(super) bytes: usize,
    /// Members whose inboxes this queue writes: all that was accepted before the joining is in them.
    pub(super) is_near: &'a (dyn Fn(Uid) -> bool + Sync),
}

/// The messages and reactions among the rows of one member.
#[derive(Default)]
struct EarlierRows {
    /// Messages, the newest first; also such as that member has deleted.
    messages: Vec<Arc<Content>>,
    /// The newest first.
    reactions: Vec<Arc<Content>>,
    /// Where each of them stands among that member's rows.
    order: HashMap<IdempotencyKey, MessageId>,
}

impl LookBack<'_> {
    /// The rows before the row `joined` in the inbox of `to`, the oldest first.
    pub(super) async fn run(&self, joined: &Content, to: Recipient) -> Result<Vec<Arc<Content>>, StoreError> {
        let (Conversation::Group(gid), Some(key)) = (joined.target, joined.key()) else {
            return Ok(Vec::new());
        };
        let Some(group) = self.store.group(gid).await?.filter(|_| self.rows > 0) else {
            return Ok(Vec::new());
        };
        let Some((member, before)) = self.member(&group, key, to.uid).await? else { return Ok(Vec::new()) };
        let mut seen = self.rows_before(member, joined.target, before).await?;
        if to.epoch.0 > 1 {
            self.leave_out_known(&mut seen.messages, to.uid).await?;
        }
        let mut messages = self.as_said(&group, &seen.order, seen.messages, to.uid).await?;
        self.amend(&mut messages, to.uid).await?;
        let mut room = self.bytes;
        let fits = |content: &Arc<Content>, room: &mut usize| {
            let left = room.checked_sub(content.body.as_json().len() + ROW);
            *room = left.unwrap_or(*room);
            left.is_some()
        };
        let full = messages.iter().position(|message| !fits(message, &mut room));
        messages.truncate(full.unwrap_or(messages.len()));
        let shown: HashSet<IdempotencyKey> = messages.iter().filter_map(|message| message.key()).collect();
        let mut reactions = seen.reactions;
        reactions.retain(|row| row.of().is_some_and(|of| shown.contains(&of)));
        // Those of an earlier membership came without their messages, where the group did not show its history then.
        if to.epoch.0 > 1 {
            self.leave_out_known(&mut reactions, to.uid).await?;
        }
        let full = reactions.iter().take(self.rows).position(|row| !fits(row, &mut room));
        reactions.truncate(full.unwrap_or(self.rows));

        let mut all = messages;
        all.extend(reactions);
        all.sort_by_key(|content| content.key().and_then(|key| seen.order.get(&key).copied()));
        all.extend(self.pins(member, joined.target, to, &shown).await?);
        Ok(all)
    }

    /// The near member that has been in the group for longest and has the row of the joining, and the id of that row.
    async fn member(
        &self,
        group: &Group,
        joining: IdempotencyKey,
        joiner: Uid,
    ) -> Result<Option<(Uid, MessageId)>, StoreError> {
        let mut members: Vec<(u64, Uid)> = Vec::new();
        for member in group.active().filter(|member| member.uid != joiner && (self.is_near)(member.uid)) {
            if let Standing::In { since, .. } = member.standing {
                members.push((since, member.uid));
            }
        }
        members.sort_unstable();
        let uids: Vec<Uid> = members.into_iter().map(|(_, uid)| uid).take(MOST_ASKED).collect();
        let rows = self.store.copies(joining, &uids).await?;
        Ok(uids.into_iter().zip(rows).find_map(|(uid, row)| Some((uid, row?))))
    }

    async fn rows_before(
        &self,
        member: Uid,
        conversation: Conversation,
        before: MessageId,
    ) -> Result<EarlierRows, StoreError> {
        let (mut seen, mut before, mut looked) = (EarlierRows::default(), before, 0);
        loop {
            let query = RangeQuery::before(Some(before), PAGE);
            let page = self.store.conversation(member, conversation, query).await?;
            looked += page.rows.len();
            for row in page.rows {
                before = row.message_id;
                let Some(key) = row.content.key() else { continue };
                match row.content.kind {
                    Kind::Message | Kind::Deleted if seen.messages.len() == self.rows => return Ok(seen),
                    Kind::Message | Kind::Deleted => seen.messages.push(row.content),
                    Kind::Reaction if row.content.body.has_emoji() => seen.reactions.push(row.content),
                    _ => continue,
                }
                seen.order.insert(key, before);
            }
            if !page.more || looked >= MOST_ROWS {
                return Ok(seen);
            }
        }
    }

    /// Leaves out the rows that `to` has: a member that comes back gets nothing twice.
    async fn leave_out_known(&self, rows: &mut Vec<Arc<Content>>, to: Uid) -> Result<(), StoreError> {
        let mut unknown = Vec::with_capacity(rows.len());
        for row in rows.drain(..) {
            let Some(key) = row.key() else { continue };
            if self.store.copies(key, &[to]).await? == [None] {
                unknown.push(row);
            }
        }
        *rows = unknown;
        Ok(())
    }

    /// The messages as they stand, in the same order. A message that only one member has is left out: a program put it into that inbox.
    async fn as_said(
        &self,
        group: &Group,
        order: &HashMap<IdempotencyKey, MessageId>,
        messages: Vec<Arc<Content>>,
        to: Uid,
    ) -> Result<Vec<Arc<Content>>, StoreError> {
        let keys: Vec<IdempotencyKey> = messages.iter().filter_map(|message| message.key()).collect();
        let records = self.store.keys(&keys).await?.into_iter().map(KeyState::record);
        let records: HashMap<IdempotencyKey, MessageId> = keys
            .into_iter()
            .zip(records)
            .filter_map(|(key, record)| Some((key, record?.message_id)))
            .collect();
        let rows: Vec<(Uid, MessageId)> = records.iter().map(|((sender, _), id)| (*sender, *id)).collect();
        let own = self.store.entries(&rows).await?.into_iter().flatten();
        let own: HashMap<IdempotencyKey, Arc<Content>> =
            own.filter_map(|row| Some((row.content.key()?, row.content))).collect();
        let mut said = Vec::with_capacity(messages.len());
        for message in messages {
            let Some(key) = message.key() else { continue };
            match own.get(&key).map(|own| own.kind) {
                Some(Kind::Message) => said.push(Arc::clone(&own[&key])),
                Some(Kind::Deleted) if message.kind == Kind::Message => said.push(message),
                Some(Kind::Recalled) => {}
                // The sender's account is deleted. A row that a program puts into one inbox is recorded under its id there.
                None if message.kind == Kind::Message
                    && records.get(&key).is_some_and(|id| order.get(&key) != Some(id)) =>
                {
                    said.push(message);
                }
                _ => said.extend(self.elsewhere(group, key, &message, to).await?),
            }
        }
        Ok(said)
    }

    /// A message of which the sender has no copy any more, or an empty one: as another member has it, if somebody beside the first has it at all.
    async fn elsewhere(
        &self,
        group: &Group,
        key: IdempotencyKey,
        message: &Arc<Content>,
        to: Uid,
    ) -> Result<Option<Arc<Content>>, StoreError> {
        let members = group.active().map(|member| member.uid).filter(|uid| *uid != to);
        let members: Vec<Uid> = members.collect();
        let copies = self.store.copies(key, &members).await?;
        let copies = members.into_iter().zip(copies).filter_map(|(uid, id)| Some((uid, id?)));
        let copies: Vec<(Uid, MessageId)> = copies.take(MOST_ASKED).collect();
        if copies.len() < 2 {
            return Ok(None);
        }
        if message.kind == Kind::Message {
            return Ok(Some(Arc::clone(message)));
        }
        let rows = self.store.entries(&copies).await?;
        let mut rows = rows.into_iter().flatten().map(|row| row.content);
        Ok(rows.find(|content| content.kind == Kind::Message))
    }

    /// An edit or a recall may have come to the joiner before the message.
    async fn amend(&self, messages: &mut Vec<Arc<Content>>, to: Uid) -> Result<(), StoreError> {
        let keys = messages.iter().filter_map(|message| Some((to, amendment_key(message.key()?))));
        let keys: Vec<(Uid, String)> = keys.collect();
        let rows = self.store.newest(&keys).await?;
        let amended = |(message, row): (Arc<Content>, Option<crate::domain::Entry>)| match row {
            None => Some(message),
            Some(row) if row.content.kind == Kind::Edit => {
                Some(message.amended(&row.content).map_or(message, Arc::new))
            }
            Some(_) => None,
        };
        *messages = messages.drain(..).zip(rows).filter_map(amended).collect();
        Ok(())
    }

    /// The pins of messages that the joiner has or gets; for a joiner that comes back, also the pins that have ended.
    async fn pins(
        &self,
        member: Uid,
        conversation: Conversation,
        to: Recipient,
        shown: &HashSet<IdempotencyKey>,
    ) -> Result<Vec<Arc<Content>>, StoreError> {
        let prefix = pins(conversation);
        let comes_back = to.epoch.0 > 1;
        let is_needed = |content: &Content| comes_back || content.body.pinned();
        let rows = marked(self.store, member, &prefix, marked::MOST_ROWS, is_needed).await?;
        let known: HashMap<IdempotencyKey, bool> = match comes_back {
            false => HashMap::new(),
            true => {
                let rows = marked(self.store, to.uid, &prefix, marked::MOST_ROWS, |_| true).await?;
                let pin = |row: &Entry| Some((row.content.of()?, row.content.body.pinned()));
                rows.iter().filter_map(pin).collect()
            }
        };
        let mut pinned = Vec::new();
        for row in rows {
            let Some(of) = row.content.of() else { continue };
            let is_pinned = row.content.body.pinned();
            let is_new = known.get(&of).copied().unwrap_or_default() != is_pinned;
            let is_told = is_new
                && (shown.contains(&of) || (comes_back && self.store.copies(of, &[to.uid]).await? != [None]));
            if is_told {
                pinned.push((row.message_id, row.content));
            }
            // All that was pinned before may be pinned no longer, and all that is pinned may be new.
            if pinned.len() == 2 * MOST_PINS {
                break;
            }
        }
        pinned.sort_by_key(|(id, _)| *id);
        Ok(pinned.into_iter().map(|(_, content)| content).collect())
    }
}
