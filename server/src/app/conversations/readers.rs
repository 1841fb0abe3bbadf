//! Which members of a group have read a message: for its author, by the read markers as they stand. Members who do not tell others how
//! far they have read are left out, and an author who does not tell is not told either, as with counts (`queue/read_counts`).

use super::Conversations;
use crate::domain::{Conversation, Entry, GroupId, Kind, MessageId, Privacy, Setting, Uid, setting_key};
use crate::store::{ShownName, StoreError};

/// Members of the largest group in which readers are named.
const MOST_NAMED: usize = 50;

/// Why readers are not named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadersError {
    /// The caller is not in such a group.
    #[error("there is no such group, or you are not in it")]
    UnknownGroup,
    /// The row is no message of that group in the caller's inbox.
    #[error("message_id must be a message of that group in your own inbox")]
    NoMessage,
    /// Somebody else has sent it.
    #[error("only the person who sent a message is told who has read it")]
    NotYours,
    /// The group is too large.
    #[error("readers are named in groups of at most {MOST_NAMED} members; this one has more")]
    TooManyMembers,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Conversations {
    /// The members of the group `gid` that have read a message of `who`, by uid, with their names. `message_id`: its row in the inbox of
    /// `who`.
    pub async fn readers(
        &self,
        who: Uid,
        gid: GroupId,
        message_id: MessageId,
    ) -> Result<Vec<(Uid, String)>, ReadersError> {
        let group = self.store.group(gid).await?;
        let group = group.filter(|group| group.role_of(who).is_some()).ok_or(ReadersError::UnknownGroup)?;
        let row = self.store.entry(who, message_id).await?.ok_or(ReadersError::NoMessage)?;
        let key = row.content.key().filter(|_| row.content.kind == Kind::Message);
        let key = key.filter(|_| row.conversation() == Conversation::Group(gid));
        let key = key.ok_or(ReadersError::NoMessage)?;
        if row.content.sender != who {
            return Err(ReadersError::NotYours);
        }
        let mut members: Vec<Uid> = group.active().map(|member| member.uid).collect();
        if members.len() > MOST_NAMED {
            return Err(ReadersError::TooManyMembers);
        }
        members.sort_unstable();
        let open = self.who_tell(&members).await?;
        if !open.contains(&who) {
            return Ok(Vec::new());
        }
        let others: Vec<Uid> = open.into_iter().filter(|uid| *uid != who).collect();
        let copies = self.store.copies(key, &others).await?;
        let markers: Vec<_> = others.iter().map(|uid| (*uid, Conversation::Group(gid))).collect();
        let markers = self.store.read_markers(&markers).await?;
        let read = others.into_iter().zip(copies.into_iter().zip(markers));
        let read = read.filter(|(_, (copy, marker))| copy.is_some_and(|copy| copy <= *marker));
        let readers: Vec<Uid> = read.map(|(uid, _)| uid).collect();
        let names = self.directory.shown_names(&readers).await?;
        let named = readers.into_iter().zip(names);
        Ok(named.filter_map(|(uid, name)| Some((uid, name.map(ShownName::into_text)?))).collect())
    }

    /// Those of these people who tell others how far they have read.
    async fn who_tell(&self, people: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let key = |uid: &Uid| (*uid, setting_key(Setting::Privacy, Conversation::User(*uid)));
        let rows = self.store.newest(&people.iter().map(key).collect::<Vec<_>>()).await?;
        let tells = |row: &Option<Entry>| !Privacy::read(row.as_ref().map(|row| &*row.content)).quiet;
        Ok(people.iter().zip(&rows).filter(|(_, row)| tells(row)).map(|(uid, _)| *uid).collect())
    }
}
