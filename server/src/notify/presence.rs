//! Which users are connected, which devices watch them, and the notices for each connection.
//!
//! Nothing here is stored or journalled, and all of it is bounded by the connections and by the people that each of them
//! watches. A person is online while a connection exists, here or at another server. An absence shorter than [`GRACE`]
//! does not count. Other servers tell again and again which users are connected to them. A server has no connected users
//! after [`LIFETIME`] of silence, or the grace after it said that it stops. Called by the sessions; `app::ephemeral` runs it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Hints;
use super::hints::ephemeral::{Ephemeral, Typing};
use super::hints::text::ServerNumber;
use crate::domain::{Conversation, Uid};

mod ear;
#[cfg(test)]
mod tests;

pub use ear::Ear;

/// How long somebody may be away who reloads the page, or whose connection broke.
pub const GRACE: Duration = Duration::from_secs(10);
/// For how long it counts that another server has said who is connected to it.
pub const LIFETIME: Duration = Duration::from_secs(60);
/// How often a server says so.
pub const REFRESH: Duration = Duration::from_secs(20);

const SHARDS: usize = 64;

/// The table. Cheap to clone.
#[derive(Clone)]
pub struct Presence(Arc<PresenceTable>);

struct PresenceTable {
    shards: Vec<Mutex<HashMap<Uid, PersonPresence>>>,
    /// The people whose last connection here has ended, and when, in this order.
    leaving: Mutex<VecDeque<(Instant, Uid)>>,
    /// The people whose last connection here has ended since they were [taken](Presence::take_left).
    left: Mutex<HashSet<Uid>>,
    next: AtomicU64,
    others: Option<Arc<dyn Hints>>,
}

/// Somebody who is connected, or watched.
#[derive(Default)]
struct PersonPresence {
    connections: Vec<Arc<Ear>>,
    /// When the last connection here ended, if that is not longer ago than the grace.
    left: Option<Instant>,
    /// Whether an entry of `leaving` names the person.
    is_leaving: bool,
    /// The other servers that have a connection, and until when that counts.
    elsewhere: Vec<(ServerNumber, Instant)>,
    watchers: HashMap<u64, Arc<Ear>>,
}

impl PersonPresence {
    fn is_here(&self) -> bool {
        !self.connections.is_empty() || self.left.is_some()
    }

    fn is_online(&self) -> bool {
        self.is_here() || !self.elsewhere.is_empty()
    }

    fn is_nobody(&self) -> bool {
        !self.is_online() && !self.is_leaving && self.watchers.is_empty()
    }
}

/// A connection that is counted until this is dropped.
pub struct Connected {
    presence: Presence,
    /// The notices for it.
    pub ear: Arc<Ear>,
}

impl Connected {
    /// Watches these people from now on, and nobody else.
    pub fn watch(&self, people: HashSet<Uid>) {
        let before = self.ear.watch(people.clone());
        self.presence.forget_watcher(&self.ear, before.difference(&people));
        for uid in people.difference(&before) {
            let mut shard = self.presence.shard(*uid);
            shard.entry(*uid).or_default().watchers.insert(self.ear.id(), Arc::clone(&self.ear));
        }
    }

    /// Looks at all again whom the device watches.
    pub fn look_again(&self) {
        self.ear.look_again();
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let watched = self.ear.watch(HashSet::new());
        self.presence.forget_watcher(&self.ear, watched.iter());
        self.presence.leave(&self.ear);
    }
}

impl Presence {
    /// A table in which nobody is. `others`: the other servers of the same database, if there may be any.
    pub fn new(others: Option<Arc<dyn Hints>>) -> Presence {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Presence(Arc::new(PresenceTable {
            shards,
            leaving: Mutex::default(),
            left: Mutex::default(),
            next: AtomicU64::new(0),
            others,
        }))
    }

    /// The hints to and from other servers, if there may be any.
    pub fn others(&self) -> Option<&Arc<dyn Hints>> {
        self.0.others.as_ref()
    }

    /// A connection of `uid` begins.
    pub fn join(&self, uid: Uid) -> Connected {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let ear = Arc::new(Ear::new(id, uid));
        let is_new = self.with(uid, |person| {
            let is_new = !person.is_here();
            person.left = None;
            person.connections.push(Arc::clone(&ear));
            is_new
        });
        if is_new {
            self.tell(Ephemeral::Came(vec![uid]));
        }
        Connected { presence: self.clone(), ear }
    }

    fn leave(&self, ear: &Arc<Ear>) {
        let now = Instant::now();
        let (was_last, is_to_leave) = self.with(ear.uid, |person| {
            person.connections.retain(|other| !Arc::ptr_eq(other, ear));
            if !person.connections.is_empty() {
                return (false, false);
            }
            person.left = Some(now);
            (true, !std::mem::replace(&mut person.is_leaving, true))
        });
        if was_last {
            self.left().insert(ear.uid);
        }
        if is_to_leave {
            self.leaving().push_back((now, ear.uid));
        }
    }

    /// The people whose last connection here has ended since this was asked last.
    pub fn take_left(&self) -> Vec<Uid> {
        std::mem::take(&mut *self.left()).into_iter().collect()
    }

    /// The people that have a connection here.
    pub fn here(&self) -> Vec<Uid> {
        let mut here = Vec::new();
        for shard in &self.0.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let connected = shard.iter().filter(|(_, person)| !person.connections.is_empty());
            here.extend(connected.map(|(uid, _)| *uid));
        }
        here
    }

    /// Those go whose last connection ended longer ago than the grace.
    pub fn settle(&self) {
        let now = Instant::now();
        let is_due = |since: Instant| now.duration_since(since) >= GRACE;
        loop {
            let next = self.leaving().pop_front();
            let uid = match next {
                Some((since, uid)) if is_due(since) => uid,
                Some(early) => return self.leaving().push_front(early),
                None => return,
            };
            let (again, went) = self.with(uid, |person| {
                person.is_leaving = false;
                match person.left {
                    Some(left) if is_due(left) => {
                        person.left = None;
                        (None, true)
                    }
                    // Came back, and left again.
                    Some(left) => {
                        person.is_leaving = true;
                        (Some(left), false)
                    }
                    None => (None, false),
                }
            });
            if let Some(left) = again {
                self.leaving().push_back((left, uid));
            }
            if went {
                self.tell(Ephemeral::Went(vec![uid]));
            }
        }
    }

    /// Whether `uid` is online, wherever that is.
    pub fn is_online(&self, uid: Uid) -> bool {
        self.shard(uid).get(&uid).is_some_and(PersonPresence::is_online)
    }

    /// Whether `uid` has a connection here.
    pub fn is_here(&self, uid: Uid) -> bool {
        self.shard(uid).get(&uid).is_some_and(|person| !person.connections.is_empty())
    }

    /// Whether `uid` has a connection to another server.
    pub fn is_elsewhere(&self, uid: Uid) -> bool {
        self.shard(uid).get(&uid).is_some_and(|person| !person.elsewhere.is_empty())
    }

    /// The connections of `uid` here are told that `sender` is typing.
    pub fn hear_typing(&self, uid: Uid, conversation: Conversation, sender: Uid) {
        if let Some(person) = self.shard(uid).get(&uid) {
            person.connections.iter().for_each(|ear| ear.hear_typing(conversation, sender));
        }
    }

    /// Tells the other servers.
    pub fn tell(&self, said: Ephemeral) {
        if let Some(others) = self.others() {
            others.tell_ephemeral(said);
        }
    }

    /// The visibility of `uid` may have changed: the watchers look again, also at other servers.
    pub fn changed(&self, uid: Uid) {
        self.changed_here(uid);
        self.tell(Ephemeral::Changed(vec![uid]));
    }

    fn changed_here(&self, uid: Uid) {
        if let Some(person) = self.shard(uid).get(&uid) {
            person.watchers.values().for_each(|ear| ear.change(uid));
        }
    }

    /// The name of `uid` has changed: the connections here that watch the person are told, and the person's own.
    pub fn renamed(&self, uid: Uid) {
        if let Some(person) = self.shard(uid).get(&uid) {
            person.watchers.values().chain(&person.connections).for_each(|ear| ear.hear_renamed(uid));
        }
    }

    /// Takes in a notice of another server. Typing is returned to the caller, which knows the users that may be shown it.
    pub fn hear(&self, server: ServerNumber, said: Ephemeral) -> Option<Typing> {
        match said {
            Ephemeral::Typing(typing) => return Some(typing),
            Ephemeral::Came(people) => {
                let until = Instant::now() + LIFETIME;
                for uid in people {
                    self.with(uid, |person| {
                        person.elsewhere.retain(|(other, _)| *other != server);
                        person.elsewhere.push((server, until));
                    });
                }
            }
            Ephemeral::Went(people) => {
                for uid in people {
                    self.with(uid, |person| person.elsewhere.retain(|(other, _)| *other != server));
                }
            }
            Ephemeral::Changed(people) => people.into_iter().for_each(|uid| self.changed_here(uid)),
            Ephemeral::Stops => self.soon_gone(server),
        }
        None
    }

    /// The users of a server that stops have the grace to connect to another one.
    fn soon_gone(&self, server: ServerNumber) {
        let until = Instant::now() + GRACE;
        for shard in &self.0.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let there = shard.values_mut().flat_map(|person| &mut person.elsewhere);
            there.filter(|(other, _)| *other == server).for_each(|(_, counts)| *counts = until.min(*counts));
        }
    }

    /// Forgets connections that other servers have not repeated for too long.
    pub fn expire(&self) {
        let now = Instant::now();
        for shard in &self.0.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|uid, person| {
                person.update(*uid, |person| person.elsewhere.retain(|(_, until)| *until > now));
                !person.is_nobody()
            });
        }
    }

    /// Tells the other servers who is here.
    pub fn refresh(&self) {
        for shard in &self.0.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let here = shard.iter().filter(|(_, person)| person.is_here()).map(|(uid, _)| *uid).collect();
            drop(shard);
            self.tell(Ephemeral::Came(here));
        }
    }

    fn forget_watcher<'a>(&self, ear: &Ear, people: impl Iterator<Item = &'a Uid>) {
        for uid in people {
            self.with(*uid, |person| person.watchers.remove(&ear.id()));
        }
    }

    /// Changes what is known of a person, and tells who watches if that came or went by it.
    fn with<T>(&self, uid: Uid, change: impl FnOnce(&mut PersonPresence) -> T) -> T {
        let mut shard = self.shard(uid);
        let person = shard.entry(uid).or_default();
        let answer = person.update(uid, change);
        if person.is_nobody() {
            shard.remove(&uid);
        }
        answer
    }

    fn shard(&self, uid: Uid) -> MutexGuard<'_, HashMap<Uid, PersonPresence>> {
        // The table is consistent after every single operation, so a panic elsewhere leaves nothing half done.
        self.0.shards[uid.0 as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, HashSet<Uid>> {
        self.0.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaving(&self) -> MutexGuard<'_, VecDeque<(Instant, Uid)>> {
        self.0.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PersonPresence {
    fn update<T>(&mut self, uid: Uid, change: impl FnOnce(&mut PersonPresence) -> T) -> T {
        let before = self.is_online();
        let answer = change(self);
        if self.is_online() != before {
            self.watchers.values().for_each(|ear| ear.change(uid));
        }
        answer
    }
}
