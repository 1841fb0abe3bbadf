//! Reads the facts on which the decisions of a batch rest, for all its requests at once.
//!
//! Owns nothing; the writer calls it first. A fact that cannot be read refuses the requests that need it, and no others.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tracing::{error, warn};

use super::permissions::{Pair, WritePermission};
use super::plan::Facts;
use super::request::Queued;
use super::shard::QueueWriter;
use super::{Amend, GroupAction, OutgoingMessage, Request, SendError};
use crate::domain::{
    Amendment, Conversation, GroupId, IdempotencyKey, Keep, Kind, MessageId, Progress, Uid, friend_key,
    keep_key, read_counts_key, seen_key,
};
use crate::store::{KeyState, MessageStore, StoreError, Unused};

mod marks;
mod slow;

/// Accounts whose limits are asked for at once.
const ASKED_AT_ONCE: usize = 8;

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    Key(IdempotencyKey),
    Person(Uid),
    Group(GroupId),
    Row(Uid, MessageId),
    ReadMarker(Uid, Conversation),
    MayWrite(Pair),
    /// Whether the first wants to be a friend of the second, as last said.
    Wish(Pair),
    /// How far the first one's messages have come, as the second has told last.
    Told(Uid, Uid, Progress),
    /// The read counts of a group that an author knows.
    Counted(Uid, GroupId),
    /// When a member of a slow group last said something there.
    Spoke(Uid, GroupId),
    /// The messages pinned in a conversation, as one user has it.
    Pins(Uid, Conversation),
    /// The messages that a user has starred.
    Stars(Uid),
    /// For how long messages with another person are kept, as the first has it.
    Keep(Pair),
}

/// Why requests of a batch are refused before they are decided.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// Facts that could not be read, with the refusal of a request that needs one.
    facts: HashMap<Fact, SendError>,
    /// Refusals by the limits of a day, one place for each request.
    limits: Vec<Option<SendError>>,
}

impl Unread {
    /// Why the request cannot be decided, if it cannot.
    pub(super) fn fact(&self, queued: &Queued) -> Option<SendError> {
        match self.facts.is_empty() {
            true => None,
            false => needs(queued).find_map(|fact| self.facts.get(&fact).cloned()),
        }
    }

    /// Why the request at this place of the batch is not decided any more today, if it is not.
    pub(super) fn limit(&self, at: usize) -> Option<SendError> {
        self.limits.get(at).cloned().flatten()
    }
}

/// The facts that a request needs.
fn needs(queued: &Queued) -> impl Iterator<Item = Fact> + '_ {
    let who = queued.who;
    let (mut facts, mut people): (Vec<Fact>, &[Uid]) = (Vec::with_capacity(4), &[]);
    facts.push(Fact::Person(who));
    match &queued.request {
        Request::Message(OutgoingMessage { client_id, to, reply_to, forward, .. }) => {
            facts.extend([Fact::Key((who, *client_id)), receivers(*to)]);
            facts.extend(permission(who, *to));
            facts.extend([*reply_to, *forward].into_iter().flatten().map(|row| Fact::Row(who, row)));
            if let Conversation::Group(gid) = to {
                facts.push(Fact::Spoke(who, *gid));
            }
        }
        Request::Amend(Amend { client_id, conversation, message_id, amendment }) => {
            facts.extend([
                Fact::Key((who, *client_id)),
                receivers(*conversation),
                Fact::Row(who, *message_id),
            ]);
            if let Amendment::Pin(_) = amendment {
                facts.push(Fact::Pins(who, *conversation));
            }
            if let Amendment::Star { starred: true, .. } = amendment {
                facts.push(Fact::Stars(who));
            }
            if amendment.must_be_taken() {
                facts.extend(permission(who, *conversation));
            }
        }
        Request::Publish(publish) => {
            facts.push(Fact::Key((who, publish.client_id)));
            if publish.target != Conversation::MOMENTS {
                facts.push(receivers(publish.target));
            }
            if let (Kind::Friend, Conversation::User(other)) = (publish.kind, publish.target) {
                facts.push(Fact::Wish((who, other)));
            }
            if let (Kind::Keep, Conversation::User(other)) = (publish.kind, publish.target) {
                facts.push(Fact::Keep((who, other)));
                facts.extend(permission(who, publish.target));
            }
        }
        Request::Seen { of, message_id, progress } => {
            facts.extend([Fact::Row(who, *message_id), Fact::MayWrite((*of, who))]);
            facts.extend([Fact::Person(*of), Fact::Told(*of, who, *progress)]);
        }
        Request::ReadCounts { gid, .. } => facts.extend([Fact::Group(*gid), Fact::Counted(who, *gid)]),
        Request::Post(post) => {
            facts.extend(post.client_id.map(|client_id| Fact::Key((who, client_id))));
            facts.push(Fact::Person(post.receiver));
            facts.extend(permission(who, post.target));
            if let Conversation::Group(gid) = post.target {
                facts.push(Fact::Group(gid));
            }
        }
        Request::Read { conversation, message_id } => {
            facts.extend([Fact::Row(who, *message_id), Fact::ReadMarker(who, *conversation)]);
        }
        Request::Group { client_id, gid, action } => {
            facts.extend([Fact::Key((who, *client_id)), Fact::Group(*gid)]);
            facts.extend(action.concerns().map(Fact::Person));
            if let GroupAction::Create { members, .. } = action {
                people = members;
            }
        }
    }
    facts.into_iter().chain(people.iter().map(|uid| Fact::Person(*uid)))
}

/// Where it is looked up.
fn wish_key((who, other): Pair) -> (Uid, String) {
    (who, friend_key(Conversation::User(other), who))
}

/// Whether `who` may write there, which is asked of a person alone.
fn permission(who: Uid, conversation: Conversation) -> Option<Fact> {
    match conversation {
        Conversation::User(other) if other != who => Some(Fact::MayWrite((other, who))),
        Conversation::User(_) | Conversation::Group(_) => None,
    }
}

/// The fact that says which users receive messages there.
fn receivers(conversation: Conversation) -> Fact {
    match conversation {
        Conversation::User(other) => Fact::Person(other),
        Conversation::Group(gid) => Fact::Group(gid),
    }
}

impl QueueWriter<'_> {
    /// Reads the facts on which the decisions of a batch rest. `unasked`: the keys of messages are taken for unused.
    pub(super) async fn facts(&self, requests: &[Queued], unasked: Option<Unused>) -> (Facts, Unread) {
        let (mut keys, mut people, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rows, mut markers) = (Vec::new(), Vec::new());
        let (mut permissions, mut wishes, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let (mut pinned, mut starred, mut spoke) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = Vec::new();
        let (mut facts, mut unread) = (Facts::default(), Unread::default());
        let needed = requests.iter().flat_map(|queued| needs(queued).map(move |fact| (queued, fact)));
        for (queued, fact) in needed {
            match fact {
                Fact::Key(key) => match unasked.filter(|_| queued.request.is_message()) {
                    Some(unused) => _ = facts.keys.insert(key, KeyState::Unused(unused)),
                    None => keys.push(key),
                },
                Fact::Person(uid) => people.push(uid),
                Fact::Group(gid) => groups.push(gid),
                Fact::Row(who, id) => rows.push((who, id)),
                Fact::ReadMarker(who, conversation) => markers.push((who, conversation)),
                Fact::MayWrite(pair) => permissions.push(pair),
                Fact::Wish(pair) => wishes.push((pair, wish_key(pair))),
                Fact::Told(of, by, progress) => told.push((fact, (of, seen_key(progress, by)))),
                Fact::Counted(who, gid) => told.push((fact, (who, read_counts_key(gid)))),
                Fact::Pins(who, conversation) => pinned.push((who, conversation)),
                Fact::Stars(who) => starred.push(who),
                Fact::Spoke(who, gid) => spoke.push((who, gid)),
                Fact::Keep(pair) => kept.push(pair),
            }
        }
        permissions.sort_unstable();
        permissions.dedup();
        groups.sort_unstable();
        groups.dedup();

        let (store, directory) = (&self.parts.store, &self.parts.directory);
        let read = all_or_each(&groups, |gids| store.groups(gids)).await;
        for (&gid, group) in groups.iter().zip(read) {
            match group {
                Ok(group) => facts.groups.extend(group.map(|group| (gid, group))),
                Err(error) => self.unread(&mut unread, Fact::Group(gid), &error),
            }
        }
        people.extend(heirs(requests, &facts));
        people.sort_unstable();
        people.dedup();
        let read = all_or_each(&people, |uids| Box::pin(directory.shown_names(uids))).await;
        for (&uid, name) in people.iter().zip(read) {
            match name {
                Ok(Some(name)) => {
                    facts.deleted.extend(name.is_deleted().then_some(uid));
                    facts.people.insert(uid, name.into_text());
                }
                Ok(None) => {}
                Err(error) => self.unread(&mut unread, Fact::Person(uid), &error),
            }
        }
        let read = all_or_each(&keys, |keys| store.keys(keys)).await;
        for (&key, state) in keys.iter().zip(read) {
            match state {
                Ok(state) => _ = facts.keys.insert(key, state),
                Err(error) => self.unread(&mut unread, Fact::Key(key), &error),
            }
        }
        let read = all_or_each(&rows, |rows| store.entries(rows)).await;
        for (&(who, id), row) in rows.iter().zip(read) {
            match row {
                Ok(row) => {
                    let row = row.filter(|entry| entry.content.kind != Kind::ReadMarker);
                    facts.rows.extend(row.map(|entry| ((who, id), entry.content)));
                }
                Err(error) => self.unread(&mut unread, Fact::Row(who, id), &error),
            }
        }
        let read = all_or_each(&permissions, |pairs| Box::pin(self.permissions.look(&**store, pairs))).await;
        for (&pair, permission) in permissions.iter().zip(read) {
            match permission {
                Ok(permission) => _ = facts.permissions.insert(pair, permission),
                Err(error) => self.unread(&mut unread, Fact::MayWrite(pair), &error),
            }
        }
        let keys: Vec<_> = wishes.iter().map(|(_, key)| key.clone()).collect();
        let read = all_or_each(&keys, |keys| store.newest(keys)).await;
        for (&(pair, _), row) in wishes.iter().zip(read) {
            match row {
                Ok(row) => _ = facts.wishes.insert(pair, row.is_some_and(|row| row.content.body.wanted())),
                Err(error) => self.unread(&mut unread, Fact::Wish(pair), &error),
            }
        }
        let keys: Vec<_> = told.iter().map(|(_, key)| key.clone()).collect();
        let read = all_or_each(&keys, |keys| store.newest(keys)).await;
        for (&(fact, _), row) in told.iter().zip(read) {
            match (fact, row) {
                (_, Err(error)) => self.unread(&mut unread, fact, &error),
                (Fact::Told(of, by, progress), Ok(row)) => {
                    let key = row.and_then(|row| row.content.of());
                    facts.told.extend(key.map(|key| ((of, by, progress), key)));
                }
                (Fact::Counted(who, gid), Ok(row)) => {
                    facts.counted.extend(row.map(|row| ((who, gid), row.content.body.counts())));
                }
                _ => {}
            }
        }
        pinned.sort_unstable();
        pinned.dedup();
        for (who, conversation) in pinned {
            match marks::pinned(&**store, who, conversation).await {
                Ok(pinned) => _ = facts.pins.insert((who, conversation), pinned),
                Err(error) => self.unread(&mut unread, Fact::Pins(who, conversation), &error),
            }
        }
        starred.sort_unstable();
        starred.dedup();
        for who in starred {
            match marks::starred(&**store, who, self.options.stars).await {
                Ok(starred) => _ = facts.stars.insert(who, starred),
                Err(error) => self.unread(&mut unread, Fact::Stars(who), &error),
            }
        }
        spoke.sort_unstable();
        spoke.dedup();
        for (who, gid) in spoke {
            let Some(slow) = facts.groups.get(&gid).and_then(|group| group.slow_for(who)) else { continue };
            match slow::spoke(&**store, who, gid, slow, self.parts.clock.now()).await {
                Ok(then) => facts.spoke.extend(then.map(|then| ((who, gid), then))),
                Err(error) => self.unread(&mut unread, Fact::Spoke(who, gid), &error),
            }
        }
        for (who, other) in kept {
            match keeps(&**store, who, other).await {
                Ok(keep) => _ = facts.keeps.insert((who, other), keep),
                Err(error) => self.unread(&mut unread, Fact::Keep((who, other)), &error),
            }
        }
        self.own_copies(requests, &mut facts, &mut unread).await;
        let read = all_or_each(&markers, |markers| store.read_markers(markers)).await;
        for (&(who, conversation), marker) in markers.iter().zip(read) {
            match marker {
                Ok(marker) => _ = facts.read_to.insert((who, conversation), marker),
                Err(error) => self.unread(&mut unread, Fact::ReadMarker(who, conversation), &error),
            }
        }
        unread.limits = self.limits(requests, &facts).await;
        (facts, unread)
    }

    /// The refusals by the limits of a day, one place for each of these requests. A repetition is answered as it was before.
    async fn limits(&self, requests: &[Queued], facts: &Facts) -> Vec<Option<SendError>> {
        let is_new = |queued: &Queued| {
            let key = queued.request.client_id().map(|client_id| (queued.who, client_id));
            key.and_then(|key| facts.keys.get(&key)).is_none_or(|state| state.record().is_none())
        };
        let first_to = |queued: &Queued| {
            let Request::Message(OutgoingMessage { to: Conversation::User(other), .. }) = queued.request
            else {
                return None;
            };
            let pair = (other, queued.who);
            let is_let = facts.permissions.get(&pair) == Some(&WritePermission::Given);
            (is_let && is_new(queued) && facts.receiving(other).is_ok()).then_some(pair)
        };
        let stores = |queued: &&Queued| queued.request.needs_room(queued.who) && is_new(queued);
        let people: HashSet<Uid> = requests.iter().filter(stores).map(|queued| queued.who).collect();
        let looks =
            people.into_iter().map(|who| async move { (who, self.fan_out.quota.look(who).await.err()) });
        let full: HashMap<Uid, SendError> = stream::iter(looks)
            .buffer_unordered(ASKED_AT_ONCE)
            .filter_map(|(who, refusal)| async move { Some((who, refusal?)) })
            .collect()
            .await;
        let pairs: HashSet<Pair> = requests.iter().filter_map(first_to).collect();
        let pairs: Vec<Pair> = pairs.into_iter().filter(|(_, who)| !full.contains_key(who)).collect();
        let strangers: HashMap<Pair, SendError> =
            match self.first_messages.refused(&self.parts.store, &pairs).await {
                Ok(refused) => refused.into_iter().collect(),
                Err(error) => {
                    let refusal = self.refusal("conversations with strangers", &error);
                    pairs.into_iter().map(|pair| (pair, refusal.clone())).collect()
                }
            };
        let limit = |queued: &Queued| {
            let full = Some(queued).filter(stores).and_then(|queued| full.get(&queued.who));
            full.or_else(|| strangers.get(&first_to(queued)?)).cloned()
        };
        requests.iter().map(limit).collect()
    }

    /// By which it is known whether what somebody tells of is later than what was told before: the senders' own copies of both.
    async fn own_copies(&self, requests: &[Queued], facts: &mut Facts, unread: &mut Unread) {
        let (mut keys, mut of) = (Vec::new(), Vec::new());
        for queued in requests {
            let Request::Seen { of: sender, message_id, progress } = queued.request else { continue };
            let said = facts.rows.get(&(queued.who, message_id)).and_then(|row| row.key());
            let known = facts.told.get(&(sender, queued.who, progress)).copied();
            for key in said.into_iter().chain(known) {
                keys.push(key);
                of.push(Fact::Told(sender, queued.who, progress));
            }
        }
        let read = all_or_each(&keys, |keys| self.parts.store.keys(keys)).await;
        for ((key, fact), state) in keys.iter().zip(of).zip(read) {
            match state {
                Ok(state) => facts.own.extend(state.record().map(|record| (*key, record.message_id))),
                Err(error) => self.unread(unread, fact, &error),
            }
        }
    }

    fn unread(&self, unread: &mut Unread, fact: Fact, error: &StoreError) {
        unread.facts.insert(fact, self.refusal(fact, error));
    }

    /// The refusal of requests for which `what` cannot be read.
    fn refusal(&self, what: impl Debug, error: &StoreError) -> SendError {
        if error.is_retryable() {
            if let Some(left_out) = self.shard.log.pass() {
                warn!(%error, left_out, "requests are refused: storage does not answer");
            }
            SendError::Unavailable
        } else {
            error!(%error, ?what, "requests are refused: the stored facts that they need are unreadable");
            SendError::Rejected
        }
    }
}

/// For how long messages with `other` are kept, as both have said in the inbox of `who`.
async fn keeps(store: &dyn MessageStore, who: Uid, other: Uid) -> Result<Keep, StoreError> {
    let keys = [who, other].map(|by| (who, keep_key(Conversation::User(other), by)));
    let rows = store.newest(&keys).await?;
    Ok(Keep::of(rows.iter().flatten().map(|row| &*row.content)))
}

/// The next owners of groups that their owners leave: the row of the leaving names them.
fn heirs<'a>(requests: &'a [Queued], facts: &'a Facts) -> impl Iterator<Item = Uid> + 'a {
    requests.iter().filter_map(|queued| match &queued.request {
        Request::Group { gid, action: GroupAction::Remove(uid), .. } if *uid == queued.who => {
            facts.groups.get(gid)?.heir_of(*uid)
        }
        _ => None,
    })
}

/// Asks for all keys at once; where something among them is unreadable, for each by itself.
async fn all_or_each<'k, K, V>(
    keys: &'k [K],
    ask: impl Fn(&'k [K]) -> BoxFuture<'k, Result<Vec<V>, StoreError>>,
) -> Vec<Result<V, StoreError>> {
    if keys.is_empty() {
        return Vec::new();
    }
    match ask(keys).await {
        Ok(values) => values.into_iter().map(Ok).collect(),
        Err(error) if error.is_retryable() || keys.len() == 1 => {
            keys.iter().map(|_| Err(error.clone())).collect()
        }
        Err(_) => {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                let value = ask(std::slice::from_ref(key)).await;
                values.push(value.map(|mut value| value.pop().expect("one for each key")));
            }
            values
        }
    }
}
