//! A file as it is kept, and a message that names one: their values, and how they are read from a row of either database.

use super::StoreError;
use super::sql::SqlRow;
use crate::domain::{Conversation, FileFacts, FileId, IdempotencyKey, Preview, Segments, Timestamp, Uid};

/// The columns that [`file_of`] reads.
pub(super) const FILES: &str = "SELECT id, owner, name, made_at, length, stored, segments, state, size, media_type, width, height, previews, check_at FROM files";

/// How far a file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Bytes are still to come, or to be looked at.
    Unfinished,
    /// It can be named and read.
    Whole,
    /// It is about to be removed. Nobody can name it any more.
    Going,
}

impl FileState {
    const ALL: [FileState; 3] = [FileState::Unfinished, FileState::Whole, FileState::Going];

    /// The number in the databases. Stored; must stay stable.
    pub(super) fn code(self) -> u32 {
        match self {
            FileState::Unfinished => 0,
            FileState::Whole => 1,
            FileState::Going => 2,
        }
    }
}

/// A file that is about to be uploaded.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Which.
    pub id: FileId,
    /// The account that uploads it.
    pub owner: Uid,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub length: u64,
    /// When it is begun.
    pub made_at: Timestamp,
    /// When it goes unless more of it comes.
    pub check_at: Timestamp,
}

/// Whether an upload was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileBegun {
    /// It was.
    Begun,
    /// The account has as many unfinished ones as it may.
    TooMany,
    /// The account has no room for so many bytes.
    NoRoom,
}

/// A file as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The account that has uploaded it.
    pub owner: Uid,
    /// When that began.
    pub made_at: Timestamp,
    /// Bytes, as its sender said.
    pub length: u64,
    /// So many of them are there.
    pub stored: u64,
    /// Where they lie.
    pub segments: Segments,
    /// How far it has come.
    pub state: FileState,
    /// What readers are told of it; of an unfinished one its id and name alone.
    pub facts: FileFacts,
    /// When it is looked at next; of an unfinished one, when it goes.
    pub check_at: Timestamp,
}

/// A message that names a file, or was about to; or a row that makes one the picture of a person or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// The message.
    pub key: IdempotencyKey,
    /// Where it was sent, from its sender's side.
    pub target: Conversation,
    /// People who got it and do not follow from the conversation.
    pub holders: Vec<Uid>,
    /// When it was last about to be sent.
    pub at: Timestamp,
}

/// Previews as they are kept.
pub(super) fn words(previews: &[Preview]) -> String {
    let words: Vec<&str> = previews.iter().map(|preview| preview.as_str()).collect();
    words.join(" ")
}

pub(super) fn files(rows: &[SqlRow]) -> Result<Vec<StoredFile>, StoreError> {
    rows.iter().map(file_of).collect()
}

pub(super) fn id_of(row: &SqlRow, column: &str) -> Result<FileId, StoreError> {
    let id = row.client_id(column)?;
    id.map(|id| FileId(id.0)).ok_or_else(|| StoreError::corrupt(format!("{column} is no id of a file")))
}

pub(super) fn file_of(row: &SqlRow) -> Result<StoredFile, StoreError> {
    let code = row.small("state")?;
    let state = FileState::ALL.into_iter().find(|state| state.code() == code);
    let segments: String = row.get("segments")?;
    let sides = (row.small("width")?, row.small("height")?);
    let previews: String = row.get("previews")?;
    let has = |preview: &Preview| previews.split(' ').any(|word| word == preview.as_str());
    Ok(StoredFile {
        owner: Uid(row.small("owner")?),
        made_at: row.time("made_at")?,
        length: row.number("length")?,
        stored: row.number("stored")?,
        segments: segments.parse().map_err(StoreError::corrupt)?,
        state: state.ok_or_else(|| StoreError::corrupt(format!("{code} is no state of a file")))?,
        facts: FileFacts {
            id: id_of(row, "id")?,
            name: row.get("name")?,
            size: row.number("size")?,
            media_type: row.get("media_type")?,
            sides: (sides.0 > 0).then_some(sides),
            previews: Preview::ALL.into_iter().filter(has).collect(),
        },
        check_at: row.time("check_at")?,
    })
}

pub(super) fn use_of(row: &SqlRow) -> Result<FileUse, StoreError> {
    let client_id = row.client_id("client_id")?;
    let client_id = client_id.ok_or_else(|| StoreError::corrupt("a use of a file has no client_id"))?;
    let (target, holders): (String, String) = (row.get("target")?, row.get("holders")?);
    let holders: Vec<u32> = serde_json::from_str(&holders).map_err(StoreError::corrupt)?;
    Ok(FileUse {
        key: (Uid(row.small("sender")?), client_id),
        target: target.parse().map_err(StoreError::corrupt)?,
        holders: holders.into_iter().map(Uid).collect(),
        at: row.time("used_at")?,
    })
}
