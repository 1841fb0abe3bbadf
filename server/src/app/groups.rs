//! Making and changing groups. Each change is a row in every member's inbox, so devices learn of it by sync (I13).

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::consent::Consent;
use crate::domain::message::Person;
use crate::domain::{
    ClientId, Conversation, FileId, GroupId, GroupSetting, GroupSettings, Member, Role, Standing, Timestamp,
    Uid,
};
use crate::queue::{Counted, GroupAction, Queues, Request, SendAck, SendError};
use crate::seq::Ids;
use crate::store::{Directory, KeyState, MessageStore, ShownName, StoreError};

/// How often a change is decided again when others change the group at the same moment.
const TRIES: usize = 5;

/// A group as its members see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Which.
    pub gid: GroupId,
    /// The settings that its owner and administrators choose.
    pub settings: GroupSettings,
    /// The caller's role.
    pub role: Role,
    /// Its members and their roles.
    pub members: Vec<(Person, Role)>,
}

/// Groups.
#[derive(Clone)]
pub struct Groups {
    store: Arc<dyn MessageStore>,
    directory: Arc<Directory>,
    queues: Queues,
    ids: Ids,
    consent: Consent,
    new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Groups {
    /// Use cases over the groups of `store`. `ids` numbers new ones, `consent` checks people's settings, `new_uuid` names changes' rows.
    pub fn new(
        store: Arc<dyn MessageStore>,
        directory: Arc<Directory>,
        queues: Queues,
        ids: Ids,
        consent: Consent,
        new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    ) -> Groups {
        Groups { store, directory, queues, ids, consent, new_uuid }
    }

    /// Makes a group of `by` and `members`. A repetition under the same `key` makes no second one and gets the number of the first.
    pub async fn create(
        &self,
        by: Uid,
        name: String,
        members: Vec<Uid>,
        key: Option<ClientId>,
    ) -> Result<GroupId, SendError> {
        let client_id = key.unwrap_or_else(|| self.new_name());
        let (gid, asked): (_, &[Uid]) = match self.is_repeated(by, key).await? {
            true => (GroupId(0), &[]),
            false => (self.ids.gid().await.map_err(|_| SendError::Unavailable)?, &members),
        };
        self.receive(asked).await?;
        let counted = self.consent.ask(by, asked).await?;
        let action = GroupAction::Create { name, members };
        let ack = self.made(counted, self.change(client_id, by, gid, action).await).await?;
        if !ack.repeated {
            return Ok(gid);
        }
        let row = self.store.entries(&[(by, ack.message_id)]).await.map_err(|_| SendError::Unavailable)?;
        match row.into_iter().flatten().next().map(|row| row.content.target) {
            Some(Conversation::Group(gid)) => Ok(gid),
            _ => Err(SendError::ClientIdReused),
        }
    }

    /// The group, for a member.
    pub async fn get(&self, by: Uid, gid: GroupId) -> Result<GroupView, SendError> {
        let group = self.store.group(gid).await.map_err(|_| SendError::Unavailable)?;
        let group = group.ok_or(SendError::UnknownGroup)?;
        let role = group.role_of(by).ok_or(SendError::UnknownGroup)?;
        let owner = group.owner();
        let roles: Vec<Role> = group.active().filter_map(|member| group.role_under(owner, &member)).collect();
        let people = self.people(group.active().map(|member| member.uid)).await?;
        let members = people.into_iter().zip(roles).collect();
        Ok(GroupView { gid, settings: group.settings.clone(), role, members })
    }

    /// The role of `by` in it.
    pub(super) async fn role(&self, by: Uid, gid: GroupId) -> Result<Role, SendError> {
        let group = self.store.group(gid).await.map_err(|_| SendError::Unavailable)?;
        group.and_then(|group| group.role_of(by)).ok_or(SendError::UnknownGroup)
    }

    /// Its picture, for a member.
    pub(super) async fn picture(&self, by: Uid, gid: GroupId) -> Result<Option<FileId>, StoreError> {
        let group = self.store.group(gid).await?;
        Ok(group.filter(|group| group.role_of(by).is_some()).and_then(|group| group.settings.picture))
    }

    /// Refuses whoever may not describe it.
    pub(super) async fn governs(&self, by: Uid, gid: GroupId) -> Result<(), SendError> {
        match self.role(by, gid).await? {
            Role::Member => Err(SendError::AdministratorsOnly),
            Role::Administrator | Role::Owner => Ok(()),
        }
    }

    /// The people banned from it, for its owner and administrators.
    pub async fn banned(&self, by: Uid, gid: GroupId) -> Result<Vec<Person>, SendError> {
        let group = self.store.group(gid).await.map_err(|_| SendError::Unavailable)?;
        let group = group.ok_or(SendError::UnknownGroup)?;
        match group.role_of(by) {
            None => Err(SendError::UnknownGroup),
            Some(Role::Member) => Err(SendError::AdministratorsOnly),
            Some(Role::Administrator | Role::Owner) => {
                let banned = |member: &&Member| matches!(member.standing, Standing::Banned { .. });
                self.people(group.members.iter().filter(banned).map(|member| member.uid)).await
            }
        }
    }

    async fn people(&self, uids: impl Iterator<Item = Uid>) -> Result<Vec<Person>, SendError> {
        let uids: Vec<Uid> = uids.collect();
        let names = self.directory.names(&uids).await.map_err(|_| SendError::Unavailable)?;
        let person = |(uid, name): (Uid, Option<String>)| {
            let name = name.unwrap_or_else(|| uid.to_string());
            Person { uid, name }
        };
        Ok(uids.into_iter().zip(names).map(person).collect())
    }

    /// Takes `uid` in. Any member may. A repetition under the same `key` changes nothing.
    pub async fn add(&self, by: Uid, gid: GroupId, uid: Uid, key: Option<ClientId>) -> Result<(), SendError> {
        let client_id = key.unwrap_or_else(|| self.new_name());
        let asked: &[Uid] = if self.is_repeated(by, key).await? { &[] } else { &[uid] };
        // A caller outside the group learns nothing about other people.
        self.role(by, gid)
            .await
            .or_else(|refusal| if asked.is_empty() { Ok(Role::Member) } else { Err(refusal) })?;
        self.receive(asked).await?;
        let counted = self.consent.ask(by, asked).await?;
        let outcome = self.change(client_id, by, gid, GroupAction::Add(uid)).await;
        self.made(counted, outcome).await.map(drop)
    }

    /// Refuses deleted accounts, before anything that their rows may still say.
    async fn receive(&self, people: &[Uid]) -> Result<(), SendError> {
        let names = self.directory.shown_names(people).await.map_err(|_| SendError::Unavailable)?;
        let deleted =
            people.iter().zip(names).find(|(_, name)| name.as_ref().is_some_and(ShownName::is_deleted));
        deleted.map_or(Ok(()), |(uid, _)| Err(SendError::AccountDeleted(uid.0)))
    }

    async fn is_repeated(&self, by: Uid, key: Option<ClientId>) -> Result<bool, SendError> {
        match key {
            Some(key) => self.was_made(by, key).await.map_err(|_| SendError::Unavailable),
            None => Ok(false),
        }
    }

    /// Strangers who were not put into a group are not counted.
    async fn made(
        &self,
        counted: Counted,
        outcome: Result<SendAck, SendError>,
    ) -> Result<SendAck, SendError> {
        let is_for_nothing = match &outcome {
            Ok(ack) => ack.repeated,
            // One that may pass may have come in all the same.
            Err(refusal) => !refusal.is_retryable(),
        };
        if is_for_nothing {
            self.consent.give_back(counted).await;
        }
        outcome
    }

    /// Takes `guest` in by an invitation that `by` made then, under a name by which it can be [found](Self::was_made) afterwards.
    pub(super) async fn admit(
        &self,
        name: ClientId,
        by: Uid,
        gid: GroupId,
        guest: Uid,
        made_at: Timestamp,
    ) -> Result<(), SendError> {
        self.change(name, by, gid, GroupAction::Admit { guest, made_at }).await.map(drop)
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

    /// Puts `uid` out, which the owner and administrators may, or lets `by` leave where both are the same.
    pub async fn remove(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<(), SendError> {
        self.change(self.new_name(), by, gid, GroupAction::Remove(uid)).await.map(drop)
    }

    /// Sets these settings, one after the other. The owner and administrators may.
    pub async fn describe(
        &self,
        by: Uid,
        gid: GroupId,
        settings: impl IntoIterator<Item = GroupSetting>,
    ) -> Result<(), SendError> {
        for setting in settings {
            self.set(by, gid, self.new_name(), setting).await?;
        }
        Ok(())
    }

    /// Sets one of them, by a row that is called `name`.
    pub(super) async fn set(
        &self,
        by: Uid,
        gid: GroupId,
        name: ClientId,
        setting: GroupSetting,
    ) -> Result<(), SendError> {
        self.change(name, by, gid, GroupAction::Set(setting)).await.map(drop)
    }

    /// Gives `uid` another role; the owner's: hands the group over. The owner may. `false`: it was so already.
    pub async fn set_role(&self, by: Uid, gid: GroupId, uid: Uid, role: Role) -> Result<bool, SendError> {
        self.changed(by, gid, GroupAction::Role(uid, role)).await
    }

    /// Bans `uid` from now on, and removes a member. The owner and administrators may. `false`: it was so already.
    pub async fn ban(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<bool, SendError> {
        self.changed(by, gid, GroupAction::Ban(uid)).await
    }

    /// Lets `uid` come in again. The owner and administrators may. `false`: it was so already.
    pub async fn unban(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<bool, SendError> {
        self.changed(by, gid, GroupAction::Unban(uid)).await
    }

    /// Refuses the messages of `uid` to the group, for this time or for good, which the owner and administrators may. `false`: it was so
    /// already.
    pub async fn mute(
        &self,
        by: Uid,
        gid: GroupId,
        uid: Uid,
        time: Option<Duration>,
    ) -> Result<bool, SendError> {
        self.changed(by, gid, GroupAction::Mute(uid, time)).await
    }

    /// Takes the messages of `uid` again. The owner and administrators may. `false`: it was so already.
    pub async fn unmute(&self, by: Uid, gid: GroupId, uid: Uid) -> Result<bool, SendError> {
        self.changed(by, gid, GroupAction::Unmute(uid)).await
    }

    /// Makes a change under a name of its own. `false`: it was so already.
    async fn changed(&self, by: Uid, gid: GroupId, action: GroupAction) -> Result<bool, SendError> {
        Ok(!self.change(self.new_name(), by, gid, action).await?.repeated)
    }

    async fn change(
        &self,
        client_id: ClientId,
        by: Uid,
        gid: GroupId,
        action: GroupAction,
    ) -> Result<SendAck, SendError> {
        for _ in 0..TRIES {
            let request = Request::Group { client_id, gid, action: action.clone() };
            match self.queues.submit(by, request).await {
                Err(SendError::GroupChanged) => {}
                outcome => return outcome,
            }
        }
        Err(SendError::GroupChanged)
    }
}
