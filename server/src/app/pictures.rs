//! Pictures of people and groups: choosing one among the files that one has uploaded, and reading it.
//!
//! A person's picture is the newest row of the setting `picture`, a group's is one of its settings; both name a file, as a message does,
//! and the walk over files looks there. Others get a small square of it alone, which is made when it is chosen. Whoever is shown a name
//! may see the picture: every account that of a person, members that of a group. Owns nothing.

use hyper::body::Bytes;
use serde_json::value::RawValue;

use super::{Accounts, Ephemerals, FileError, Files, Groups, People};
use crate::domain::{Body, ClientId, Conversation, FileId, GroupId, GroupSetting, Setting, Uid};
use crate::queue::{SendAck, SendError};
use crate::store::FileUse;

/// Why a picture is not taken, or not given.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PictureRefusal {
    /// The file is not what it has to be.
    #[error(transparent)]
    File(#[from] FileError),
    /// The row is refused.
    #[error(transparent)]
    Row(#[from] SendError),
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Pictures {
    files: Files,
    people: People,
    groups: Groups,
    accounts: Accounts,
    ephemerals: Ephemerals,
}

impl Pictures {
    /// Over these use cases.
    pub fn new(
        files: Files,
        people: People,
        groups: Groups,
        accounts: Accounts,
        ephemerals: Ephemerals,
    ) -> Pictures {
        Pictures { files, people, groups, accounts, ephemerals }
    }

    /// Sets the setting `picture` of `who`, and lets those know who watch the person. `value`: JSON; `null` takes the picture away.
    ///
    /// # Errors
    /// When the value is not what the setting takes, or the file is no picture that `who` has uploaded; those of storing.
    pub async fn set_own(
        &self,
        who: Uid,
        client_id: ClientId,
        value: &RawValue,
    ) -> Result<SendAck, PictureRefusal> {
        let own = Conversation::User(who);
        let body = Body::of_setting(Setting::Picture, value).map_err(SendError::from)?;
        self.choose(who, client_id, own, body.picture()).await?;
        let ack = self.people.set(who, client_id, Setting::Picture, own, value).await?;
        self.accounts.tell_changed(who);
        self.ephemerals.renamed(who);
        Ok(ack)
    }

    /// Gives a group this picture, or none. The owner and administrators may.
    ///
    /// # Errors
    /// When `who` may not, or the file is no picture that `who` has uploaded; those of storing.
    pub async fn set_of_group(
        &self,
        who: Uid,
        gid: GroupId,
        picture: Option<FileId>,
    ) -> Result<(), PictureRefusal> {
        let name = self.groups.new_name();
        self.groups.governs(who, gid).await?;
        self.choose(who, name, Conversation::Group(gid), picture).await?;
        Ok(self.groups.set(who, gid, name, GroupSetting::Picture(picture)).await?)
    }

    /// Writes down that the row called `client_id` is about to name the file, and makes the square.
    async fn choose(
        &self,
        who: Uid,
        client_id: ClientId,
        target: Conversation,
        picture: Option<FileId>,
    ) -> Result<(), FileError> {
        let Some(id) = picture else { return Ok(()) };
        let at = self.files.clock.now();
        self.files
            .make_square(who, id, &FileUse { key: (who, client_id), target, holders: Vec::new(), at })
            .await
    }

    /// The picture `id` of a person or a group, as `who` sees it.
    ///
    /// # Errors
    /// When that is not the picture, or `who` may not see it; when it cannot be read.
    pub async fn get(&self, who: Uid, of: Conversation, id: FileId) -> Result<Bytes, FileError> {
        let picture = match of {
            Conversation::User(uid) => {
                self.people.shown(&[uid]).await?.pop().and_then(|person| person.picture)
            }
            Conversation::Group(gid) => self.groups.picture(who, gid).await?,
        };
        match picture == Some(id) {
            true => self.files.square(id).await,
            false => Err(FileError::Unknown),
        }
    }
}
