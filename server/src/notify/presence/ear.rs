//! The notices for one connection: which users are typing, online, or have another name. Shared by the table, which fills it, and
//! by the session, which empties it. Bounded by the people that the device watches.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::{Conversation, Uid};

/// A notice of typing of this age is no longer told.
pub(super) const STALE: Duration = Duration::from_secs(3);
/// Notices of typing that wait for one connection; more of them are dropped.
pub(super) const MOST_TYPING: usize = 32;

/// The notices for one connection.
pub struct Ear {
    id: u64,
    /// The connection's user.
    pub uid: Uid,
    some: Notify,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    typing: Vec<(Instant, Conversation, Uid)>,
    /// The people that the device watches.
    watched: HashSet<Uid>,
    /// The watched people of whom it may have to be told something else.
    changed: HashSet<Uid>,
    /// Watched people, and the connection's user, whose names have changed.
    renamed: BTreeSet<Uid>,
    /// The people that it was told last are online; `None`: it was told nothing.
    told: Option<BTreeSet<Uid>>,
}

impl Ear {
    pub(super) fn new(id: u64, uid: Uid) -> Ear {
        Ear { id, uid, some: Notify::new(), heard: Mutex::default() }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once there may be something to tell.
    pub async fn notified(&self) {
        self.some.notified().await;
    }

    /// In which conversations somebody is typing, and who.
    pub fn take_typing(&self) -> Vec<(Conversation, Uid)> {
        let typing = std::mem::take(&mut self.heard().typing);
        let fresh = typing.into_iter().filter(|(at, ..)| at.elapsed() < STALE);
        fresh.map(|(_, conversation, sender)| (conversation, sender)).collect()
    }

    /// The people whose names have changed.
    pub fn take_renamed(&self) -> BTreeSet<Uid> {
        std::mem::take(&mut self.heard().renamed)
    }

    /// Whether there are people of whom the device may have to be told something else.
    pub fn has_changes(&self) -> bool {
        !self.heard().changed.is_empty()
    }

    /// Those people.
    pub fn take_changes(&self) -> HashSet<Uid> {
        std::mem::take(&mut self.heard().changed)
    }

    /// They could not be looked at; the next look takes them again.
    pub fn put_back(&self, changes: HashSet<Uid>) {
        let mut heard = self.heard();
        let Heard { watched, changed, .. } = &mut *heard;
        changed.extend(changes.into_iter().filter(|uid| watched.contains(uid)));
    }

    /// Of `looked_at` only `online` are shown as such. Returns all that are, if the device was told something else.
    pub fn settle(&self, looked_at: &HashSet<Uid>, online: &HashSet<Uid>) -> Option<Vec<Uid>> {
        let mut heard = self.heard();
        let Heard { watched, told, .. } = &mut *heard;
        let mut now = told.clone().unwrap_or_default();
        for uid in looked_at {
            match online.contains(uid) && watched.contains(uid) {
                true => now.insert(*uid),
                false => now.remove(uid),
            };
        }
        if told.as_ref() == Some(&now) {
            return None;
        }
        let all = now.iter().copied().collect();
        *told = Some(now);
        Some(all)
    }

    /// Watches these people from now on; the next look takes all of them. Returns the people that it watched before.
    pub(super) fn watch(&self, people: HashSet<Uid>) -> HashSet<Uid> {
        let mut heard = self.heard();
        heard.changed.clone_from(&people);
        heard.told = None;
        heard.renamed.retain(|uid| *uid == self.uid || people.contains(uid));
        std::mem::replace(&mut heard.watched, people)
    }

    pub(super) fn look_again(&self) {
        let mut heard = self.heard();
        let Heard { watched, changed, .. } = &mut *heard;
        if !watched.is_empty() {
            changed.clone_from(watched);
            self.some.notify_one();
        }
    }

    pub(super) fn change(&self, uid: Uid) {
        self.heard().changed.insert(uid);
        self.some.notify_one();
    }

    pub(super) fn hear_renamed(&self, uid: Uid) {
        self.heard().renamed.insert(uid);
        self.some.notify_one();
    }

    pub(super) fn hear_typing(&self, conversation: Conversation, sender: Uid) {
        let mut heard = self.heard();
        heard.typing.retain(|(at, of, who)| at.elapsed() < STALE && (*of, *who) != (conversation, sender));
        if heard.typing.len() < MOST_TYPING {
            heard.typing.push((Instant::now(), conversation, sender));
            self.some.notify_one();
        }
    }
}
