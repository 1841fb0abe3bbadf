//! The whole of an installation as records: what an export reads and an import writes.
//!
//! [`ExportSnapshot`] reads one moment of an installation, [`Import`] fills an empty one, [`InboxImport`] adds to one
//! inbox. SQLite and PostgreSQL implement them; `transfer` turns records into lines of a file and back. Sessions are no
//! records, since nobody stays logged in across an import; read markers are none, since they follow from the rest.

use std::fmt;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::file::{FileUse, StoredFile};
use super::tables::{TableId, TableRecord};
use super::{Account, IdempotencyRecord, Pending, StoreError};
use crate::domain::{
    ClientId, Entry, FileId, Group, GroupId, HistoryId, MembershipEpoch, MessageId, PartitionKey, Preview,
    Timestamp, Uid,
};

/// The kinds of records, in the order in which an archive holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArchiveSection {
    /// By uid.
    Accounts,
    /// By gid.
    Groups,
    /// By gid, then uid.
    EndedEpochs,
    /// By partition key, then receiver, then message id.
    Rows,
    /// By the sender's partition key, then sender, then `client_id`.
    Sent,
    /// By acceptance.
    Pending,
    /// Definitions of tables, by number.
    Tables,
    /// By table, then encoded first key column.
    Counters,
    /// By table, then key.
    TableRows,
    /// Whole files, by id; behind each its bytes, part by part.
    Files,
    /// Messages that name files, by file, then sender, then `client_id`.
    FileUses,
}

impl ArchiveSection {
    /// All of them, in order.
    pub const ALL: [ArchiveSection; SECTIONS] = [
        ArchiveSection::Accounts,
        ArchiveSection::Groups,
        ArchiveSection::EndedEpochs,
        ArchiveSection::Rows,
        ArchiveSection::Sent,
        ArchiveSection::Pending,
        ArchiveSection::Tables,
        ArchiveSection::Counters,
        ArchiveSection::TableRows,
        ArchiveSection::Files,
        ArchiveSection::FileUses,
    ];
}

/// How many kinds of records there are.
pub const SECTIONS: usize = 11;

/// The latest number that was assigned under one value of a table's first key column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRecord {
    /// Of which table.
    pub table: TableId,
    /// The first 4 hex digits of md5 of the value.
    pub partition_key: PartitionKey,
    /// The encoded first key column.
    pub first: Vec<u8>,
    /// The number.
    pub last_id: i64,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRowRecord {
    /// Of which table.
    pub table: TableId,
    /// The first 4 hex digits of md5 of the first key column's value.
    pub partition_key: PartitionKey,
    /// Its encoded key.
    pub key: Vec<u8>,
    /// Its columns.
    pub row: Vec<u8>,
}

/// Some bytes of a file. They lie in no database: whoever writes an archive adds them, and whoever reads it takes them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// Of which file.
    pub file: FileId,
    /// Which one, counted from 1: first those of its bytes, then each preview.
    pub part: u64,
    /// The preview that it is, if it is one.
    pub preview: Option<Preview>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// One thing that an installation remembers.
#[derive(Clone, Debug)]
pub enum Record {
    /// An account, when it was made, and the latest id of its inbox where no row has it: the newest rows were deleted, or ids were
    /// skipped.
    Account(Account, Timestamp, Option<MessageId>),
    /// A group as last accepted.
    Group(Group),
    /// The last membership epoch in a group that ended with a row in the member's inbox (I13).
    EndedEpoch(GroupId, Uid, MembershipEpoch),
    /// A row of an inbox.
    Row(Entry),
    /// The idempotency record of a sender's `client_id` (I4).
    Sent(Uid, ClientId, IdempotencyRecord),
    /// An acceptance with copies owed (I5), and the membership epoch that its content ends.
    Pending(Pending, Option<(Uid, MembershipEpoch)>),
    /// A table that is not deleted, and after which number its new counters begin.
    Table(TableRecord, i64),
    /// A counter of a table.
    Counter(CounterRecord),
    /// A row of a table.
    TableRow(TableRowRecord),
    /// A whole file.
    File(Box<StoredFile>),
    /// Some of its bytes.
    FilePart(FilePart),
    /// Its other bytes were not there when the archive was written.
    FileGone(FileId),
    /// A message that names a file, or was about to.
    FileUse(FileId, FileUse),
}

/// Where a record stands in its section; records of one section compare as the section is ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKey {
    /// Of an account.
    Account(Uid),
    /// Of a group.
    Group(GroupId),
    /// Of the end of a membership epoch.
    EndedEpoch(GroupId, Uid),
    /// Of a row; the last part is its message id.
    Row(PartitionKey, Uid, u64),
    /// Of an idempotency record.
    Sent(PartitionKey, Uid, ClientId),
    /// Of an acceptance.
    Pending(u64),
    /// Of a table.
    Table(TableId),
    /// Of a counter.
    Counter(TableId, Vec<u8>),
    /// Of a row of a table.
    TableRow(TableId, Vec<u8>),
    /// Of a file, of its parts by their numbers, and behind them that the rest is gone.
    File(FileId, u64),
    /// Of a message that names a file.
    FileUse(FileId, Uid, ClientId),
}

impl Record {
    /// Where it stands.
    pub fn key(&self) -> RecordKey {
        match self {
            Record::Account(account, ..) => RecordKey::Account(account.uid),
            Record::Group(group) => RecordKey::Group(group.gid),
            Record::EndedEpoch(gid, uid, _) => RecordKey::EndedEpoch(*gid, *uid),
            Record::Row(entry) => {
                RecordKey::Row(entry.receiver.partition_key(), entry.receiver, entry.message_id.get())
            }
            Record::Sent(sender, client_id, _) => {
                RecordKey::Sent(sender.partition_key(), *sender, *client_id)
            }
            Record::Pending(pending, _) => RecordKey::Pending(pending.acceptance.0),
            Record::Table(table, _) => RecordKey::Table(table.id),
            Record::Counter(counter) => RecordKey::Counter(counter.table, counter.first.clone()),
            Record::TableRow(row) => RecordKey::TableRow(row.table, row.key.clone()),
            Record::File(file) => RecordKey::File(file.facts.id, 0),
            Record::FilePart(part) => RecordKey::File(part.file, part.part),
            Record::FileGone(file) => RecordKey::File(*file, u64::MAX),
            Record::FileUse(file, FileUse { key: (sender, client_id), .. }) => {
                RecordKey::FileUse(*file, *sender, *client_id)
            }
        }
    }
}

impl RecordKey {
    /// The section that it is a key of.
    pub fn section(&self) -> ArchiveSection {
        match self {
            RecordKey::Account(_) => ArchiveSection::Accounts,
            RecordKey::Group(_) => ArchiveSection::Groups,
            RecordKey::EndedEpoch(..) => ArchiveSection::EndedEpochs,
            RecordKey::Row(..) => ArchiveSection::Rows,
            RecordKey::Sent(..) => ArchiveSection::Sent,
            RecordKey::Pending(_) => ArchiveSection::Pending,
            RecordKey::Table(_) => ArchiveSection::Tables,
            RecordKey::Counter(..) => ArchiveSection::Counters,
            RecordKey::TableRow(..) => ArchiveSection::TableRows,
            RecordKey::File(..) => ArchiveSection::Files,
            RecordKey::FileUse(..) => ArchiveSection::FileUses,
        }
    }
}

/// How much there is, and of which life of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The history that it belongs to (I14).
    pub history: HistoryId,
    /// Grows with all that is accepted, and is no less than the number of any acceptance: tells two moments of one history apart.
    pub accepted: u64,
    /// Records of each section, as [`ArchiveSection::ALL`] orders them.
    pub totals: [u64; SECTIONS],
    /// Another one after every change of a table or its rows, which may be as many as before; 0 where there is no table.
    pub tables: u64,
    /// Another one after every change of whole files and their uses; 0 where there is no file.
    pub files: u64,
}

impl About {
    /// A hash of these tables and of `state`, which stands for their rows and counters; 0 without tables.
    pub fn tables_at(tables: &[TableRecord], state: impl fmt::Display) -> u64 {
        if tables.is_empty() {
            return 0;
        }
        let mut hash = Sha256::new();
        hash.update(format!("{state}\n"));
        for table in tables {
            hash.update(format!(
                "{}\n{}\n{}\n{}\n",
                table.id.0, table.instance, table.name, table.definition
            ));
        }
        number(hash)
    }

    /// A hash of `state`, which stands for `count` files; 0 without files.
    pub fn files_at(count: u64, state: impl fmt::Display) -> u64 {
        match count {
            0 => 0,
            _ => number(Sha256::new_with_prefix(state.to_string())),
        }
    }
}

/// A hash as a number that every JSON reader keeps exact.
fn number(hash: Sha256) -> u64 {
    hash.finalize()[..6].iter().fold(1, |all, byte| (all << 8 | u64::from(*byte)) & ((1 << 53) - 1))
}

/// One moment of an installation: all that was committed before it was taken, whole, and nothing else.
///
/// It is taken beside a serving process, without its lock, and stays the same however much that one writes.
#[async_trait]
pub trait ExportSnapshot: Send {
    /// How much it holds, and of which life of the data.
    async fn about(&mut self) -> Result<About, StoreError>;

    /// The records of `section` after `after` (a key of that section; `None`: from its beginning), in order, at most
    /// `limit` (1 and up) and fewer only at the end of the section or where they are large. Empty: there are no more.
    async fn page(
        &mut self,
        section: ArchiveSection,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;
}

/// Fills an empty installation, a chunk at a time, while no server has it.
///
/// From the first chunk until [`finish`](Import::finish) the installation is *unfinished*: it does not open for
/// serving, and only the same source goes on filling it.
#[async_trait]
pub trait Import: Send {
    /// Begins to fill from `source` (a checksum), or goes on: how many of its records are already in.
    async fn begin(&mut self, source: &str) -> Result<u64, ImportError>;

    /// Stores the next records, in the order of the archive, durably. They count all or none; what a call that was cut off has left is
    /// written again when they come again.
    async fn write(&mut self, chunk: Vec<Record>) -> Result<(), ImportError>;

    /// Marks the installation as whole, under a new history.
    async fn finish(&mut self, history: HistoryId) -> Result<(), ImportError>;
}

/// Appends rows to one inbox, a chunk at a time.
#[async_trait]
pub trait InboxImport: Send {
    /// Under which ids the inbox of `receiver` holds copies of messages with these names, in order.
    async fn copies(
        &mut self,
        receiver: Uid,
        names: &[(Uid, ClientId)],
    ) -> Result<Vec<Option<MessageId>>, StoreError>;

    /// Begins a chunk for the inbox of `receiver`, and gives its latest id. Nobody else writes to that inbox until the chunk is
    /// stored; a chunk that was begun before and is not stored is given up.
    async fn begin(&mut self, receiver: Uid) -> Result<MessageId, StoreError>;

    /// Stores the chunk: rows of the inbox for which it was begun, whose ids are larger than all in it and grow, and idempotency
    /// records. Durable when it returns, all or none. Records alone need no beginning.
    async fn append(
        &mut self,
        rows: Vec<Entry>,
        sent: Vec<(Uid, ClientId, IdempotencyRecord)>,
    ) -> Result<(), StoreError>;
}

/// Why an installation is not filled.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// There are accounts or rows already.
    #[error("the installation is not empty; import into an empty data directory or database")]
    NotEmpty,
    /// An import of another file was begun.
    #[error(
        "the import of another file was started here; continue with that file, or empty the data directory or database"
    )]
    OtherSource,
    /// Storage failed; nothing of this call counts.
    #[error(transparent)]
    Store(#[from] StoreError),
}
