//! Whether one person may write to another: what the receiver has set, and whether the two are friends.
//!
//! Asked for each message to a person, so the answers are remembered: of some pairs, until one of the rows that they
//! rest on changes here. Where other servers write, too, no answer is older than [`LIFETIME`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::friend_lists::{FriendLists, LIFETIME};
use crate::domain::{Content, Conversation, Kind, Relation, Setting, Uid};
use crate::store::{MessageStore, StoreError, Write};

/// Pairs that are remembered.
const KNOWN: usize = 100_000;

/// Whether a person lets another one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritePermission {
    /// Messages come through.
    Given,
    /// They come through, and the two are friends.
    ToFriend,
    /// None come from that person.
    Blocked,
    /// None go from that person to one whom that person has blocked.
    Blocks,
    /// Friends' messages come through, and that person is none.
    FriendsOnly,
}

/// The receiver, and the writer.
pub(super) type Pair = (Uid, Uid);

/// The permissions that were asked for lately.
pub(super) struct WritePermissions {
    known: Cache<Pair, (Instant, WritePermission)>,
    lifetime: Option<Duration>,
    /// Counts the changes. Locked while answers are remembered or forgotten, so that none read before a change is known after it.
    changes: Mutex<u64>,
    /// They rest on some of the same rows.
    friends: Arc<FriendLists>,
}

/// The permissions that a commit changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pairs: Vec<Pair>,
    all: bool,
}

impl WritePermissions {
    /// `others_write`: whether other servers write to the same store.
    pub(super) fn new(others_write: bool, friends: Arc<FriendLists>) -> WritePermissions {
        let lifetime = others_write.then_some(LIFETIME);
        WritePermissions { known: Cache::new(KNOWN), lifetime, changes: Mutex::default(), friends }
    }

    /// The permissions of these pairs, in order.
    pub(super) async fn look(
        &self,
        store: &dyn MessageStore,
        pairs: &[Pair],
    ) -> Result<Vec<WritePermission>, StoreError> {
        let now = Instant::now();
        let is_fresh =
            |read_at: Instant| self.lifetime.is_none_or(|lifetime| now.duration_since(read_at) < lifetime);
        let known = |pair| self.known.get(pair).filter(|(read_at, _)| is_fresh(*read_at));
        let mut permissions: Vec<Option<WritePermission>> =
            pairs.iter().map(|pair| known(pair).map(|(_, permission)| permission)).collect();
        let missing: Vec<Pair> = pairs
            .iter()
            .zip(&permissions)
            .filter(|(_, permission)| permission.is_none())
            .map(|(pair, _)| *pair)
            .collect();
        if !missing.is_empty() {
            let before = *self.changes();
            let keys: Vec<_> =
                missing.iter().flat_map(|(owner, other)| Relation::keys(*owner, *other)).collect();
            let rows = store.newest(&keys).await?;
            let mut read = Vec::with_capacity(missing.len());
            let empty = permissions.iter_mut().filter(|permission| permission.is_none());
            for ((place, pair), rows) in empty.zip(&missing).zip(rows.chunks(Relation::ROWS)) {
                let rows = rows.iter().map(|row| row.as_ref().map(|row| &*row.content));
                let permission = permission(&Relation::read(pair.0, rows));
                *place = Some(permission);
                read.push((*pair, permission));
            }
            let changes = self.changes();
            if *changes == before {
                read.into_iter().for_each(|(pair, permission)| self.known.insert(pair, (now, permission)));
            }
        }
        Ok(permissions.into_iter().flatten().collect())
    }

    fn changes(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the answers that rest on changed rows.
    pub(super) fn forget(&self, changes: &Changes) {
        self.friends.forget(&changes.pairs);
        if !changes.all && changes.pairs.is_empty() {
            return;
        }
        let mut count = self.changes();
        *count += 1;
        if changes.all {
            self.known.clear();
        }
        for pair in &changes.pairs {
            self.known.remove(pair);
        }
    }
}

impl Changes {
    /// The permissions that these writes change.
    pub(super) fn of(writes: &[Write]) -> Changes {
        let mut changes = Changes::default();
        for write in writes {
            let content = match write {
                Write::Accept(accept) => &accept.content,
                Write::Deliver(deliver) => &deliver.content,
            };
            let is_friend = content.kind == Kind::Friend;
            match (content.kind == Kind::Setting).then(|| content.body.setting()).flatten() {
                Some(Setting::Privacy) => changes.all = true,
                Some(Setting::Block) => changes.add_both(content),
                _ if is_friend => write.rows().iter().for_each(|row| changes.add(content, row.receiver)),
                _ => {}
            }
        }
        changes
    }

    fn add_both(&mut self, content: &Content) {
        if let Conversation::User(other) = content.target {
            self.pairs.extend([(content.sender, other), (other, content.sender)]);
        }
    }

    fn add(&mut self, content: &Content, owner: Uid) {
        if let Conversation::User(other) = content.conversation(owner) {
            self.pairs.push((owner, other));
        }
    }
}

fn permission(relation: &Relation) -> WritePermission {
    match (relation.is_blocked, relation.has_blocked) {
        (true, _) => WritePermission::Blocked,
        (false, true) => WritePermission::Blocks,
        (false, false) if relation.friendship.is_mutual() => WritePermission::ToFriend,
        (false, false) if relation.may_write() => WritePermission::Given,
        (false, false) => WritePermission::FriendsOnly,
    }
}
