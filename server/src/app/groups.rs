//! Making and changing groups. Each change is a row in every member's inbox, so devices learn of it by sync (I13).

use std::sync::Arc;

use uuid::Uuid;

use crate::domain::message::Person;
use crate::domain::{ClientId, GroupId, Uid};
use crate::queue::{GroupAction, Queues, Request, SendError};
use crate::seq::Ids;
use crate::store::{Directory, KeyState, MessageStore, StoreError};

/// How often a change is decided again when others change the group at the same moment.
const TRIES: usize = 5;

/// A group as its members see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Which.
    pub gid: GroupId,
    /// What people call it.
    pub name: String,
    /// Who is in it.
    pub members: Vec<Person>,
}

/// Groups.
#[derive(Clone)]
pub struct Groups {
    store: Arc<dyn MessageStore>,
    directory: Arc<dyn Directory>,
    queues: Queues,
    ids: Ids,
    new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Groups {
    /// Use cases over the groups of `store`. `ids` numbers new ones, `new_uuid` names the rows that changes make.
    pub fn new(
        store: Arc<dyn MessageStore>,
        directory: Arc<dyn Directory>,
        queues: Queues,
        ids: Ids,
        new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    ) -> Groups {
        Groups { store, directory, queues, ids, new_uuid }
    }

    /// Makes a group of `by` and `members`.
    pub async fn create(&self, by: Uid, name: String, members: Vec<Uid>) -> Result<GroupId, SendError> {
        let gid = self.ids.gid().await.map_err(|_| SendError::Unavailable)?;
        self.change(self.new_name(), by, gid, GroupAction::Create { name, members }).await?;
        Ok(gid)
    }

    /// The group, for one who is in it.
    pub async fn get(&self, by: Uid, gid: GroupId) -> Result<GroupView, SendError> {
        let group = self.store.group(gid).await.map_err(|_| SendError::Unavailable)?;
        let group = group.filter(|group| group.epoch_of(by).is_some()).ok_or(SendError::UnknownGroup)?;
        let uids: Vec<Uid> = group.active().map(|member| member.uid).collect();
        let names = self.directory.names(&uids).await.map_err(|_| SendError::Unavailable)?;
        let members = uids
            .into_iter()
            .zip(names)
            .map(|(uid, name)| Person { uid, name: name.unwrap_or_else(|| uid.to_string()) })
            .collect();
        Ok(GroupView { gid, name: group.name.clone(), members })
    }

    /// Takes `uid` in. Any member may.
    pub async fn add(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<(), SendError> {
        self.add_as(self.new_name(), by, gid, uid).await
    }

    /// The same, under a name by which it can be [found](Self::was_made) afterwards.
    pub(super) async fn add_as(
        &self,
        name: ClientId,
        by: Uid,
        gid: GroupId,
        uid: Uid,
    ) -> Result<(), SendError> {
        self.change(name, by, gid, GroupAction::Add(uid)).await
    }

    /// A name for a change of a group.
    pub(super) fn new_name(&self) -> ClientId {
        ClientId((self.new_uuid)())
    }

    /// Whether `uid` is in it.
    pub(super) async fn has(&self, gid: GroupId, uid: Uid) -> Result<bool, StoreError> {
        Ok(self.store.group(gid).await?.is_some_and(|group| group.epoch_of(uid).is_some()))
    }

    /// Whether `by` has made the change called `name`.
    pub(super) async fn was_made(&self, by: Uid, name: ClientId) -> Result<bool, StoreError> {
        Ok(self.store.keys(&[(by, name)]).await?.pop().and_then(KeyState::record).is_some())
    }

    /// Puts `uid` out, or lets `by` leave where both are the same. Any member may.
    pub async fn remove(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<(), SendError> {
        self.change(self.new_name(), by, gid, GroupAction::Remove(uid)).await
    }

    async fn change(
        &self,
        client_id: ClientId,
        by: Uid,
        gid: GroupId,
        action: GroupAction,
    ) -> Result<(), SendError> {
        for _ in 0..TRIES {
            let request = Request::Group { client_id, gid, action: action.clone() };
            match self.queues.submit(by, request).await {
                Err(SendError::GroupChanged) => {}
                outcome => return outcome.map(drop),
            }
        }
        Err(SendError::GroupChanged)
    }
}
