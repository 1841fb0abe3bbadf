//! Typing and presence, and that somebody has another name: notices for the users that may know them, never stored.
//!
//! The sender's server decides on the sender's side (whether it is shown at all, and to which members of the group) and
//! hands the notice to the servers of the receivers, each of which reads the settings of its receivers. Any notice may be
//! lost, and is dropped where it would have to wait. Owns nothing but the places for its reads, which are few, so that
//! rows need not wait for them. When people were online last is kept (`last_seen`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::domain::{
    Clock, Content, Conversation, Entry, Kind, Privacy, Relation, Setting, Uid, setting_key,
};
use crate::notify::hints::ephemeral::{Ephemeral, MOST_RECEIVERS, Typing};
use crate::notify::hints::text::ServerNumber;
use crate::notify::presence::{LIFETIME, REFRESH};
use crate::notify::{Connected, Ear, Presence};
use crate::store::{Directory, MessageStore, StoreError};

mod last_seen;

/// Notices of typing that are looked into at the same time; more of them are dropped.
const TYPING_AT_ONCE: usize = 16;
/// Devices for which it is looked at the same time who is online; the others wait.
const WATCHING_AT_ONCE: usize = 2;
/// Between a change and the word of it, so that changes that come together are told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// After a look that storage did not answer, before the next.
const RETRY: Duration = Duration::from_secs(5);
/// How often those go who have left.
const TICK: Duration = Duration::from_secs(1);
/// How often it is looked for what has not been said again.
const EXPIRE: Duration = Duration::from_secs(5);
/// Servers that are known at the same time.
const MOST_SERVERS: usize = 1_000;

/// Which notices are shown, and in groups of which size.
#[derive(Clone, Copy, Debug)]
pub struct EphemeralOptions {
    /// Whether it is shown who is typing.
    pub typing: bool,
    /// Whether it is shown who is online.
    pub presence: bool,
    /// Members of the largest group in which typing is shown, at most [`MOST_RECEIVERS`].
    pub group_members: usize,
}

/// Typing and presence. Cheap to clone.
#[derive(Clone)]
pub struct Ephemerals {
    store: Arc<dyn MessageStore>,
    directory: Arc<Directory>,
    presence: Presence,
    options: EphemeralOptions,
    clock: Clock,
    typing: Arc<Semaphore>,
    watching: Arc<Semaphore>,
}

impl Ephemerals {
    /// Shows the users connected in `presence` the typing and presence of others, as far as the rows of `store` allow it. Keeps in
    /// `directory` when they were online last.
    pub fn new(
        store: Arc<dyn MessageStore>,
        directory: Arc<Directory>,
        presence: Presence,
        options: EphemeralOptions,
        clock: Clock,
    ) -> Ephemerals {
        let (typing, watching) = (Semaphore::new(TYPING_AT_ONCE), Semaphore::new(WATCHING_AT_ONCE));
        let (typing, watching) = (Arc::new(typing), Arc::new(watching));
        Ephemerals { store, directory, presence, options, clock, typing, watching }
    }

    /// A connection of `uid` begins.
    pub fn join(&self, uid: Uid) -> Connected {
        self.presence.join(uid)
    }

    /// `who` is typing in `conversation`. Tells the connected users that may know it. Never fails.
    pub async fn typing(&self, who: Uid, conversation: Conversation) {
        if !self.options.typing {
            return;
        }
        let Ok(_place) = self.typing.try_acquire() else { return };
        let Ok(Some(typing)) = self.receivers(who, conversation).await else { return };
        self.show(&typing).await;
        let elsewhere = typing.receivers.iter().copied().filter(|uid| self.presence.is_elsewhere(*uid));
        let receivers: Vec<Uid> = elsewhere.take(MOST_RECEIVERS).collect();
        if !receivers.is_empty() {
            self.presence.tell(Ephemeral::Typing(Typing { receivers, ..typing }));
        }
    }

    /// The online users that may be told that `who` is typing there, before their own settings are asked.
    async fn receivers(&self, who: Uid, conversation: Conversation) -> Result<Option<Typing>, StoreError> {
        let is_other = |uid: &Uid| *uid != who && self.presence.is_online(*uid);
        let (group, receivers, is_shown) = match conversation {
            Conversation::User(other) => {
                if !is_other(&other) {
                    return Ok(None);
                }
                let rows = self.store.newest(&Relation::keys(who, other)).await?;
                let own = Relation::read(who, contents(&rows));
                (None, vec![other], own.privacy.typing && !own.is_blocked)
            }
            Conversation::Group(gid) => {
                let Some(group) = self.store.group(gid).await? else { return Ok(None) };
                let is_in = group.role_of(who).is_some();
                if !is_in || group.active().count() > self.options.group_members {
                    return Ok(None);
                }
                let receivers: Vec<Uid> = group.active().map(|member| member.uid).filter(is_other).collect();
                if receivers.is_empty() {
                    return Ok(None);
                }
                (Some(gid), receivers, self.own_privacy(who).await?.typing)
            }
        };
        Ok(is_shown.then_some(Typing { sender: who, group, receivers }))
    }

    /// Tells the receivers that are connected here and whose settings show it to them.
    async fn show(&self, typing: &Typing) {
        let sender = typing.sender;
        let conversation = typing.group.map_or(Conversation::User(sender), Conversation::Group);
        let here = typing.receivers.iter().copied().filter(|uid| self.presence.is_here(*uid));
        let here: Vec<Uid> = here.collect();
        if here.is_empty() {
            return;
        }
        let keys: Vec<_> = here.iter().flat_map(|uid| Relation::keys(*uid, sender)).collect();
        let Ok(rows) = self.store.newest(&keys).await else { return };
        for (uid, rows) in here.into_iter().zip(rows.chunks(Relation::ROWS)) {
            let relation = Relation::read(uid, contents(rows));
            let may_reach = if typing.group.is_some() { !relation.is_blocked } else { relation.may_write() };
            if may_reach && relation.privacy.typing {
                self.presence.hear_typing(uid, conversation, sender);
            }
        }
    }

    /// The watched users that are online, if the device was told something else. `at_once`: the device has asked.
    pub async fn news(&self, ear: &Ear, at_once: bool) -> Option<Vec<Uid>> {
        if !at_once {
            sleep(TOGETHER).await;
        }
        let place = self.watching.acquire().await.ok()?;
        let changed = ear.take_changes();
        let shown = self.shown(ear.uid, &changed).await;
        drop(place);
        match shown {
            Ok(online) => ear.settle(&changed, &online),
            Err(_) => {
                ear.put_back(changed);
                sleep(RETRY).await;
                None
            }
        }
    }

    /// The users of `people` that are online and let `who` see it.
    async fn shown(&self, who: Uid, people: &HashSet<Uid>) -> Result<HashSet<Uid>, StoreError> {
        let is_online = |uid: &Uid| *uid != who && self.presence.is_online(*uid);
        let online: Vec<Uid> = people.iter().copied().filter(is_online).collect();
        if online.is_empty() || !self.options.presence || !self.own_privacy(who).await?.presence {
            return Ok(HashSet::new());
        }
        let keys: Vec<_> = online.iter().flat_map(|uid| Relation::keys(*uid, who)).collect();
        let rows = self.store.newest(&keys).await?;
        let shown = online.into_iter().zip(rows.chunks(Relation::ROWS)).filter(|(uid, rows)| {
            let relation = Relation::read(*uid, contents(rows));
            relation.may_write() && relation.privacy.presence
        });
        Ok(shown.map(|(uid, _)| uid).collect())
    }

    async fn own_privacy(&self, who: Uid) -> Result<Privacy, StoreError> {
        let key = (who, setting_key(Setting::Privacy, Conversation::User(who)));
        let rows = self.store.newest(&[key]).await?;
        Ok(Privacy::read(contents(&rows).flatten().next()))
    }

    /// The name of `uid` has changed: devices here that watch the person ask for it anew, and the person's own.
    pub fn renamed(&self, uid: Uid) {
        self.presence.renamed(uid);
    }

    /// Rows have come to the inbox of `connected`. If they change the person's privacy, the affected devices look again.
    pub fn rows_came(&self, connected: &Connected, rows: &[Entry]) {
        if self.options.presence && rows.iter().any(|row| is_about_showing(&row.content)) {
            self.presence.changed(connected.ear.uid);
            connected.look_again();
        }
    }

    /// Keeps the table until `stopping`: removes users that left, and talks to the other servers.
    pub async fn run(self, stopping: CancellationToken) {
        let every = |period| {
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut tick, mut expire, mut refresh) = (every(TICK), every(EXPIRE), every(REFRESH));
        let mut servers: HashMap<ServerNumber, Instant> = HashMap::new();
        let forever = async {
            loop {
                tokio::select! {
                    (server, said) = self.hear() => {
                        if servers.len() < MOST_SERVERS && servers.insert(server, Instant::now()).is_none() {
                            // It has just started, and knows nobody.
                            self.presence.refresh();
                        }
                        if let Some(typing) = self.presence.hear(server, said) {
                            self.show(&typing).await;
                        }
                    }
                    _ = tick.tick() => {
                        self.presence.settle();
                        self.keep_last_seen(&self.presence.take_left()).await;
                    }
                    _ = expire.tick() => {
                        self.presence.expire();
                        servers.retain(|_, heard| heard.elapsed() < LIFETIME);
                    }
                    _ = refresh.tick() => self.presence.refresh(),
                }
            }
        };
        stopping.run_until_cancelled(forever).await;
        self.presence.tell(Ephemeral::Stops);
        let until_now = [self.presence.take_left(), self.presence.here()].concat();
        self.keep_last_seen(&until_now).await;
    }

    async fn hear(&self) -> (ServerNumber, Ephemeral) {
        match self.presence.others() {
            Some(others) => others.hear_ephemeral().await,
            None => std::future::pending().await,
        }
    }
}

fn contents(rows: &[Option<Entry>]) -> impl Iterator<Item = Option<&Content>> {
    rows.iter().map(|row| row.as_ref().map(|row| &*row.content))
}

/// Whether a row changes which users may write to its owner or see the owner's typing and presence.
fn is_about_showing(content: &Content) -> bool {
    match content.kind {
        Kind::Friend => true,
        Kind::Setting => matches!(content.body.setting(), Some(Setting::Privacy | Setting::Block)),
        _ => false,
    }
}
