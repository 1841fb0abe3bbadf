//! How a batch lies in the journal. Stored, must stay stable.
//!
//! A blob is a version byte, the first eight bytes of SHA-256 over the rest, and the batch's records one after the
//! other in postcard. These types are apart from the domain's, so that those may change; a change here needs a new
//! version. A delivery names its acceptance, so a body is stored once however wide its fan-out.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::domain::{
    Body, ClientId, Content, Conversation, Digest, GroupChange, GroupId, Kind, Member, MembershipEpoch,
    MessageId, PartitionKey, Standing, Timestamp, Uid,
};
use crate::store::sqlite::pending::SqlitePending;
use crate::store::sqlite::rows::RowsRecord;
use crate::store::tables::TableId;
use crate::store::{AcceptanceId, Recipient, group_settings};

/// One thing that a batch stores: the effects of an accepted write.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store::sqlite) enum JournalRecord {
    /// A new acceptance with the copies of its own transaction.
    Accepted {
        acceptance: AcceptanceId,
        content: Arc<Content>,
        digest: Digest,
        rows: Vec<(Uid, MessageId)>,
        rest: Vec<Recipient>,
        change: Option<GroupChange>,
    },
    /// Copies of an earlier one, and those that are owed no more.
    Delivered {
        acceptance: AcceptanceId,
        /// Rows that the only receiver gets before the copy.
        earlier: Vec<(Arc<Content>, MessageId)>,
        rows: Vec<(Uid, MessageId)>,
        void: Vec<Uid>,
    },
    /// Of a table.
    Rows(RowsRecord),
}

const VERSION: u8 = 1;

/// Bytes before the records of a blob.
pub(super) const HEADER: usize = 9;

/// A blob that is not what a server wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::store::sqlite) enum RecordError {
    /// Shorter than its header.
    #[error("a record is cut off")]
    Short,
    /// Written by a newer server.
    #[error("a record has version {0}, which is unknown here; run the newer version")]
    Version(u8),
    /// Bits have changed.
    #[error("a record's checksum is wrong")]
    Checksum,
    /// The checksum is right, the content is not.
    #[error("a record cannot be decoded")]
    Malformed,
}

#[derive(Serialize, Deserialize)]
enum StoredRecord<'a> {
    Accepted {
        acceptance: u64,
        #[serde(borrow)]
        content: StoredContent<'a>,
        digest: [u8; 16],
        rows: Vec<(u32, u64)>,
        rest: Vec<(u32, u32)>,
        change: Option<StoredChange<'a>>,
    },
    Delivered {
        acceptance: u64,
        /// Rows that the only receiver gets before the copy.
        #[serde(borrow)]
        earlier: Vec<(StoredContent<'a>, u64)>,
        rows: Vec<(u32, u64)>,
        void: Vec<u32>,
    },
    Rows {
        table: u64,
        partition_key: &'a str,
        #[serde(borrow)]
        first: Bytes<'a>,
        /// The counter from now on; 0: nothing was assigned.
        last_id: u64,
        #[serde(borrow)]
        changes: Vec<(Bytes<'a>, Option<Bytes<'a>>)>,
    },
}

/// Bytes in one piece, where a list of numbers would be written one by one.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes<'a>, D::Error> {
        <&'a [u8]>::deserialize(deserializer).map(Bytes)
    }
}

#[derive(Serialize, Deserialize)]
struct StoredContent<'a> {
    kind: u8,
    sender: u32,
    target: StoredTarget,
    client_id: Option<[u8; 16]>,
    body: &'a str,
    sent_at: i64,
}

#[derive(Serialize, Deserialize)]
enum StoredTarget {
    User(u32),
    Group(u64),
}

#[derive(Serialize, Deserialize)]
struct StoredChange<'a> {
    gid: u64,
    from_version: u64,
    /// JSON.
    #[serde(borrow)]
    setting: Option<Cow<'a, str>>,
    members: Vec<(u32, u32, bool, u8, i64)>,
    ends: Option<(u32, u32)>,
}

#[derive(Serialize, Deserialize)]
struct StoredOpen<'a> {
    #[serde(borrow)]
    content: StoredContent<'a>,
    ends: Option<(u32, u32)>,
    owed: Vec<(u32, u32)>,
}

/// The blob of a batch.
pub(in crate::store::sqlite) fn encode(records: &[JournalRecord]) -> Vec<u8> {
    seal(records.iter().map(stored_record))
}

/// The batch in a blob.
pub(in crate::store::sqlite) fn decode(blob: &[u8]) -> Result<Vec<JournalRecord>, RecordError> {
    let mut rest = unseal(blob)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (stored, after) = postcard::take_from_bytes(rest).map_err(|_| RecordError::Malformed)?;
        records.push(record(stored).ok_or(RecordError::Malformed)?);
        rest = after;
    }
    Ok(records)
}

/// The blob of an acceptance with copies owed, for the table of the pending ones.
pub(in crate::store::sqlite) fn encode_open(open: &SqlitePending) -> Vec<u8> {
    let ends = open.ends.map(|(uid, epoch)| (uid.0, epoch.0));
    seal(
        [StoredOpen { content: stored_content(&open.content), ends, owed: recipients(&open.owed) }]
            .into_iter(),
    )
}

/// The acceptance in such a blob.
pub(in crate::store::sqlite) fn decode_open(blob: &[u8]) -> Result<SqlitePending, RecordError> {
    let stored: StoredOpen<'_> = postcard::from_bytes(unseal(blob)?).map_err(|_| RecordError::Malformed)?;
    let content = Arc::new(content(stored.content).ok_or(RecordError::Malformed)?);
    let ends = stored.ends.map(|(uid, epoch)| (Uid(uid), MembershipEpoch(epoch)));
    Ok(SqlitePending { content, ends, owed: to_recipients(stored.owed) })
}

fn seal<T: Serialize>(records: impl Iterator<Item = T>) -> Vec<u8> {
    let mut blob = vec![0; HEADER];
    for record in records {
        blob = postcard::to_extend(&record, blob).expect("plain data into memory");
    }
    blob[0] = VERSION;
    let check = checksum(&blob[HEADER..]);
    blob[1..HEADER].copy_from_slice(&check);
    blob
}

/// Whether the checksum of a blob is right, whatever its version.
pub(super) fn is_whole(blob: &[u8]) -> bool {
    blob.split_at_checked(HEADER).is_some_and(|(header, rest)| header[1..] == checksum(rest))
}

fn checksum(rest: &[u8]) -> [u8; HEADER - 1] {
    Sha256::digest(rest)[..HEADER - 1].try_into().expect("8 of 32 bytes")
}

fn unseal(blob: &[u8]) -> Result<&[u8], RecordError> {
    let (header, rest) = blob.split_at_checked(HEADER).ok_or(RecordError::Short)?;
    if header[0] != VERSION {
        return Err(RecordError::Version(header[0]));
    }
    if header[1..] != checksum(rest) {
        return Err(RecordError::Checksum);
    }
    Ok(rest)
}

fn stored_record(record: &JournalRecord) -> StoredRecord<'_> {
    match record {
        JournalRecord::Accepted { acceptance, content, digest, rows, rest, change } => {
            StoredRecord::Accepted {
                acceptance: acceptance.0,
                content: stored_content(content),
                digest: digest.0,
                rows: numbered(rows),
                rest: recipients(rest),
                change: change.as_ref().map(stored_change),
            }
        }
        JournalRecord::Delivered { acceptance, earlier, rows, void } => StoredRecord::Delivered {
            acceptance: acceptance.0,
            earlier: earlier.iter().map(|(content, id)| (stored_content(content), id.get())).collect(),
            rows: numbered(rows),
            void: void.iter().map(|uid| uid.0).collect(),
        },
        JournalRecord::Rows(rows) => StoredRecord::Rows {
            table: rows.table.0,
            partition_key: rows.partition_key.as_str(),
            first: Bytes(&rows.first),
            last_id: rows.last_id.map_or(0, i64::cast_unsigned),
            changes: rows.changes.iter().map(|(key, row)| (Bytes(key), row.as_deref().map(Bytes))).collect(),
        },
    }
}

fn record(stored: StoredRecord<'_>) -> Option<JournalRecord> {
    Some(match stored {
        StoredRecord::Accepted { acceptance, content: stored, digest, rows, rest, change: changed } => {
            JournalRecord::Accepted {
                acceptance: AcceptanceId(acceptance),
                content: Arc::new(content(stored)?),
                digest: Digest(digest),
                rows: to_numbered(rows)?,
                rest: to_recipients(rest),
                change: match changed {
                    Some(stored) => Some(change(stored)?),
                    None => None,
                },
            }
        }
        StoredRecord::Delivered { acceptance, earlier, rows, void } => {
            let earlier =
                earlier.into_iter().map(|(stored, id)| Some((Arc::new(content(stored)?), nonzero(id)?)));
            JournalRecord::Delivered {
                acceptance: AcceptanceId(acceptance),
                earlier: earlier.collect::<Option<_>>()?,
                rows: to_numbered(rows)?,
                void: void.into_iter().map(Uid).collect(),
            }
        }
        StoredRecord::Rows { table, partition_key, first, last_id, changes } => {
            let last_id = i64::try_from(last_id).ok()?;
            let change =
                |(key, row): (Bytes<'_>, Option<Bytes<'_>>)| (key.0.into(), row.map(|row| row.0.into()));
            JournalRecord::Rows(RowsRecord {
                table: TableId(table),
                partition_key: PartitionKey::parse(partition_key)?,
                first: first.0.into(),
                last_id: Some(last_id).filter(|last_id| *last_id > 0),
                changes: changes.into_iter().map(change).collect(),
            })
        }
    })
}

fn stored_content(content: &Content) -> StoredContent<'_> {
    StoredContent {
        kind: content.kind.code(),
        sender: content.sender.0,
        target: match content.target {
            Conversation::User(uid) => StoredTarget::User(uid.0),
            Conversation::Group(gid) => StoredTarget::Group(gid.0),
        },
        client_id: content.client_id.map(|client_id| *client_id.0.as_bytes()),
        body: content.body.as_json(),
        sent_at: content.sent_at.0,
    }
}

fn content(stored: StoredContent<'_>) -> Option<Content> {
    Some(Content {
        kind: Kind::from_code(stored.kind)?,
        sender: Uid(stored.sender),
        target: match stored.target {
            StoredTarget::User(uid) => Conversation::User(Uid(uid)),
            StoredTarget::Group(gid) => Conversation::Group(GroupId(gid)),
        },
        client_id: stored.client_id.map(|bytes| ClientId(Uuid::from_bytes(bytes))),
        body: Body::from_stored(stored.body),
        sent_at: Timestamp(stored.sent_at),
    })
}

fn stored_change(change: &GroupChange) -> StoredChange<'_> {
    let member = |member: &Member| {
        let (code, number) = member.standing.code();
        (member.uid.0, member.epoch.0, member.is_active(), code, number)
    };
    StoredChange {
        gid: change.gid.0,
        from_version: change.from_version,
        setting: change.setting.as_ref().map(|setting| group_settings::text(setting).into()),
        members: change.members.iter().map(member).collect(),
        ends: change.ends.map(|(uid, epoch)| (uid.0, epoch.0)),
    }
}

fn change(stored: StoredChange<'_>) -> Option<GroupChange> {
    Some(GroupChange {
        gid: GroupId(stored.gid),
        from_version: stored.from_version,
        setting: stored.setting.map(|json| serde_json::from_str(&json)).transpose().ok()?,
        members: stored.members.into_iter().map(member).collect(),
        ends: stored.ends.map(|(uid, epoch)| (Uid(uid), MembershipEpoch(epoch))),
    })
}

fn member((uid, epoch, active, code, number): (u32, u32, bool, u8, i64)) -> Member {
    let standing = Standing::from_code(active, code, number);
    Member { uid: Uid(uid), epoch: MembershipEpoch(epoch), standing }
}

fn numbered(rows: &[(Uid, MessageId)]) -> Vec<(u32, u64)> {
    rows.iter().map(|(uid, id)| (uid.0, id.get())).collect()
}

fn to_numbered(rows: Vec<(u32, u64)>) -> Option<Vec<(Uid, MessageId)>> {
    rows.into_iter().map(|(uid, id)| Some((Uid(uid), nonzero(id)?))).collect()
}

fn nonzero(id: u64) -> Option<MessageId> {
    MessageId::new(id).filter(|id| *id > MessageId::ZERO)
}

fn recipients(list: &[Recipient]) -> Vec<(u32, u32)> {
    list.iter().map(|to| (to.uid.0, to.epoch.0)).collect()
}

fn to_recipients(list: Vec<(u32, u32)>) -> Vec<Recipient> {
    list.into_iter().map(|(uid, epoch)| Recipient { uid: Uid(uid), epoch: MembershipEpoch(epoch) }).collect()
}

#[cfg(test)]
mod tests;
