//! The flush: a frozen memtable goes into the keyed tables, sorted by their keys.
//!
//! In key order many rows share a page, so a page is written once where single inserts would write it for each. The
//! flush is a row of short transactions, so that others who write the main database are not kept waiting; the last one
//! also says how far the journal is flushed. Until then everything is still in the journal, and a flush that was cut
//! off is done again from the start: rows that are there already are passed over by their primary key alone, so
//! that any other conflict is seen. A row that conflicts otherwise can never be flushed; it is set apart (`set_aside`).

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::SqliteConnection;
use tracing::warn;

use super::bulk::{Binding, Bulk};
use super::compaction::{self, Compacted, InboxEnd};
use super::db::Db;
use super::entry_rows::{
    CONVERSATIONS, ConversationRow, ENTRIES, EntryRow, YOUNG_ENTRIES, bind_conversation, bind_entry,
};
use super::heads::HeadRow;
use super::journal::{Journal, record};
use super::memtable::{ChangedGroup, Memtable};
use super::pending::SqlitePending;
use super::replay::replay;
use super::rows::flush::RowsFlush;
use super::young::{self, Settling};
use super::{SqliteOptions, heads, meta, set_aside};
use crate::domain::{ClientId, GroupId, MessageId, PartitionKey, Uid};
use crate::store::{AcceptanceId, IdempotencyRecord, StoreError, group_settings};

/// Two chunks of default size dirty some ten thousand pages at worst.
const STEPS_A_CHECKPOINT: usize = 2;

/// Which share of the work is done when young rows begin to settle, about.
const BEFORE_SETTLING: f64 = 0.6;

/// A memtable that takes no more writes, and what belongs to the same moment.
pub(super) struct Frozen {
    pub(super) memtable: Arc<Memtable>,
    /// The last batch that it holds.
    pub(super) through: u64,
    /// The last acceptance in it.
    pub(super) accepted: AcceptanceId,
    /// The acceptances that owe copies.
    pub(super) open: Vec<(AcceptanceId, SqlitePending)>,
}

/// A flush under way.
pub(super) struct Flush {
    frozen: Arc<Frozen>,
    chunk: usize,
    /// As [`SqliteOptions::young_rows`].
    young_rows: usize,
    receivers: Vec<(PartitionKey, Uid)>,
    sent: Vec<(PartitionKey, Uid, ClientId, IdempotencyRecord)>,
    /// The receiver whose rows come next, and how many of them are written.
    next: (usize, usize),
    next_sent: usize,
    rows: RowsFlush,
    set_aside: u64,
}

/// The rows of one transaction, what they change in the conversation list, how far their inboxes come, which of them take the place of
/// others, and what follows when the last row of an inbox is written.
struct FlushChunk {
    entries: Vec<EntryRow>,
    /// Those of inboxes that get few.
    young: Vec<EntryRow>,
    /// The inboxes that get many and begin here.
    busy: Vec<(Arc<str>, Uid)>,
    compacted: Vec<Compacted>,
    conversations: Vec<ConversationRow>,
    heads: Vec<HeadRow>,
    ends: Vec<InboxEnd>,
}

const SENT: Bulk = Bulk {
    insert: "INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at) VALUES",
    row: "(?,?,?,?,?,?)",
    conflict: "ON CONFLICT (partition_key, sender, client_id) DO NOTHING",
};

impl Flush {
    /// Plans it.
    pub(super) fn new(frozen: Arc<Frozen>, options: &SqliteOptions) -> Flush {
        Flush::in_steps(frozen, options.flush_chunk, options.young_rows)
    }

    /// `chunk`: rows a transaction.
    fn in_steps(frozen: Arc<Frozen>, chunk: usize, young_rows: usize) -> Flush {
        let receivers = frozen.memtable.receivers();
        let mut receivers: Vec<_> = receivers.into_iter().map(|uid| (uid.partition_key(), uid)).collect();
        receivers.sort_unstable();
        let sent = frozen.memtable.all_records();
        let mut sent: Vec<_> =
            sent.into_iter().map(|((uid, name), sent)| (uid.partition_key(), uid, name, sent)).collect();
        sent.sort_unstable_by_key(|(key, uid, name, _)| (*key, *uid, *name));
        let rows = RowsFlush::new(&frozen.memtable.tables);
        let (chunk, next) = (chunk.max(1), (0, 0));
        Flush { frozen, chunk, young_rows, receivers, sent, next, next_sent: 0, rows, set_aside: 0 }
    }

    /// All of it. The write-ahead log is moved into the database as it goes, beside the connection that writes, so
    /// that no commit of anybody has to do it. `moved` is told after each step which share is done, 0 to 1. Says how many rows the
    /// tables did not take. A part of the young rows that does not settle stays where it is for the next flush: this one is done.
    pub(super) async fn run(
        mut self,
        db: &Db,
        options: &SqliteOptions,
        moved: impl Fn(f64),
    ) -> Result<u64, StoreError> {
        let mut checkpointer = db.checkpointer().await?;
        let mut steps = 0;
        loop {
            let more = self.step(db).await?;
            steps += 1;
            if !more || steps % STEPS_A_CHECKPOINT == 0 {
                checkpointer.checkpoint().await?;
            }
            if !more {
                break;
            }
            moved(self.share() * BEFORE_SETTLING);
        }
        let settled = async {
            let mut settling = Settling::next(db, options).await?;
            while let Some(refused) = settling.step(db).await? {
                self.set_aside += refused;
                moved(BEFORE_SETTLING + settling.share() * (1.0 - BEFORE_SETTLING));
                steps += 1;
                if steps % STEPS_A_CHECKPOINT == 0 {
                    checkpointer.checkpoint().await?;
                }
            }
            checkpointer.checkpoint().await
        };
        if let Err(error) = settled.await {
            warn!(%error, "young rows did not settle; they stay where they are until the next flush");
        }
        Ok(self.set_aside)
    }

    fn share(&self) -> f64 {
        let (rows_done, all_rows) = self.rows.progress();
        let done = self.next.0 + self.next_sent + rows_done;
        let all = self.receivers.len() + self.sent.len() + all_rows;
        done as f64 / all.max(1) as f64
    }

    /// One transaction; `false` after the last one.
    pub(super) async fn step(&mut self, db: &Db) -> Result<bool, StoreError> {
        let is_at_tables = self.next.0 == self.receivers.len() && self.next_sent == self.sent.len();
        if is_at_tables && self.rows.step(&self.frozen.memtable.tables, db, self.chunk).await? {
            return Ok(true);
        }
        let mut tx = db.write().await?;
        if self.next.0 < self.receivers.len() {
            let FlushChunk { mut entries, young, mut busy, mut compacted, mut conversations, heads, ends } =
                self.next_entries();
            match YOUNG_ENTRIES.insert(&mut tx, &young, bind_entry).await {
                // They go where each is looked at by itself.
                Err(sqlx::Error::Database(error)) if young::is_second_copy(&*error) => {
                    busy.extend(young.iter().map(|row| (row.key.clone(), row.receiver)));
                    entries.extend(young);
                }
                outcome => {
                    outcome?;
                    let young: HashSet<Uid> = young.iter().map(|row| row.receiver).collect();
                    conversations.retain_mut(|line| {
                        if young.contains(&line.owner) {
                            line.last_id = MessageId::ZERO;
                        }
                        line.last_id > MessageId::ZERO || line.read_to > MessageId::ZERO
                    });
                }
            }
            self.set_aside += young::settle_inboxes(&mut tx, &busy).await?;
            match ENTRIES.insert(&mut tx, &entries, bind_entry).await {
                Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                    self.set_aside +=
                        set_aside::one_by_one(&mut tx, entries, &mut conversations, &mut compacted).await?;
                }
                outcome => outcome?,
            }
            CONVERSATIONS.insert(&mut tx, &conversations, bind_conversation).await?;
            heads::write(&mut tx, &heads).await?;
            compaction::write(&mut tx, &compacted, &ends).await?;
            tx.commit().await?;
            return Ok(true);
        }
        if self.next_sent < self.sent.len() {
            let end = self.sent.len().min(self.next_sent + self.chunk);
            SENT.insert(&mut tx, &self.sent[self.next_sent..end], bind_sent).await?;
            tx.commit().await?;
            self.next_sent = end;
            return Ok(true);
        }
        for (gid, changed) in self.frozen.memtable.all_groups() {
            write_group(&mut tx, gid, changed).await?;
        }
        sqlx::query("DELETE FROM pending").execute(&mut *tx).await?;
        for (acceptance, open) in &self.frozen.open {
            write_open(&mut tx, *acceptance, open).await?;
        }
        meta::put(&mut tx, meta::ACCEPTED, self.frozen.accepted.0).await?;
        meta::put(&mut tx, meta::FLUSHED, self.frozen.through).await?;
        tx.commit().await?;
        Ok(false)
    }

    /// The next rows in key order, and what they change elsewhere.
    fn next_entries(&mut self) -> FlushChunk {
        let (mut entries, mut conversations) = (Vec::with_capacity(self.chunk), Vec::new());
        let (mut heads, mut ends, mut compacted) = (Vec::new(), Vec::new(), Vec::new());
        let (mut young, mut busy) = (Vec::new(), Vec::new());
        while let Some(&(key, receiver)) = self.receivers.get(self.next.0) {
            let key: Arc<str> = key.as_str().into();
            let from = self.next.1;
            let first = conversations.len();
            let rest = self.frozen.memtable.inbox(receiver, |inbox| {
                let to = inbox.rows.len().min(from + self.chunk - entries.len() - young.len());
                let is_young = inbox.rows.len() < self.young_rows;
                if from == 0 && !is_young {
                    busy.push((key.clone(), receiver));
                }
                for (message_id, content) in &inbox.rows[from..to] {
                    let (message_id, content) = (*message_id, content.clone());
                    if content.is_shown() {
                        let conversation = content.conversation(receiver);
                        // Newest last: a later row of the same conversation takes its line.
                        match conversations[first..]
                            .iter_mut()
                            .find(|line: &&mut ConversationRow| line.conversation == conversation)
                        {
                            Some(line) => line.last_id = message_id,
                            None => conversations.push(ConversationRow {
                                key: key.clone(),
                                owner: receiver,
                                conversation,
                                last_id: message_id,
                                read_to: MessageId::ZERO,
                            }),
                        }
                    }
                    if !inbox.changes.supersedes(receiver, message_id, &content) {
                        if let Some(name) = content.compaction_key(receiver) {
                            compacted.push(Compacted { key: key.clone(), receiver, name, message_id });
                        }
                        let row = EntryRow { key: key.clone(), receiver, message_id, content };
                        if is_young { young.push(row) } else { entries.push(row) }
                    }
                }
                if from == 0 {
                    conversations.extend(inbox.read_markers.iter().map(|&(conversation, read_to)| {
                        ConversationRow {
                            key: key.clone(),
                            owner: receiver,
                            conversation,
                            last_id: MessageId::ZERO,
                            read_to,
                        }
                    }));
                }
                if let Some((last_id, _)) = inbox.rows[from..to].last() {
                    heads.push(HeadRow { key: key.clone(), receiver, last_id: *last_id });
                }
                self.next.1 = to;
                if to == inbox.rows.len() && !inbox.changes.is_empty() {
                    ends.push(InboxEnd { key: key.clone(), receiver, changes: inbox.changes.clone() });
                }
                inbox.rows.len() - to
            });
            if rest.unwrap_or(0) > 0 {
                break;
            }
            self.next = (self.next.0 + 1, 0);
            if entries.len() + young.len() >= self.chunk {
                break;
            }
        }
        FlushChunk { entries, young, busy, compacted, conversations, heads, ends }
    }
}

/// Puts into the tables what is in the journal alone, of a database that nobody serves.
pub(super) async fn flush_journal(db: &Db, options: &SqliteOptions) -> Result<(), StoreError> {
    let flushed = meta::number(db.readers(), meta::FLUSHED).await?;
    let journal = Journal::open(db, flushed).await?;
    let through = journal.last();
    if through > flushed {
        let (ledger, memtable) = replay(db, &journal, flushed).await?;
        let open = ledger.open().iter().map(|(acceptance, open)| (*acceptance, open.clone())).collect();
        let memtable = Arc::new(memtable);
        let frozen = Frozen { memtable, through, accepted: ledger.accepted(), open };
        Flush::new(Arc::new(frozen), options).run(db, options, |_| ()).await?;
    }
    Ok(())
}

/// Writes the rows and idempotency records of `memtable` in the caller's transaction.
pub(super) async fn write_all(
    connection: &mut SqliteConnection,
    memtable: Memtable,
) -> Result<(), StoreError> {
    let (chunk, memtable) = (memtable.rows(), Arc::new(memtable));
    let frozen = Frozen { memtable, through: 0, accepted: AcceptanceId(0), open: Vec::new() };
    let mut flush = Flush::in_steps(Arc::new(frozen), chunk, 0);
    while flush.next.0 < flush.receivers.len() {
        let FlushChunk { entries, compacted, conversations, heads, ends, .. } = flush.next_entries();
        ENTRIES.insert(connection, &entries, bind_entry).await?;
        CONVERSATIONS.insert(connection, &conversations, bind_conversation).await?;
        heads::write(connection, &heads).await?;
        compaction::write(connection, &compacted, &ends).await?;
    }
    SENT.insert(connection, &flush.sent, bind_sent).await?;
    Ok(())
}

fn bind_sent<'q>(
    query: Binding<'q>,
    (key, sender, client_id, sent): &(PartitionKey, Uid, ClientId, IdempotencyRecord),
) -> Binding<'q> {
    query
        .bind(Arc::<str>::from(key.as_str()))
        .bind(sender.0)
        .bind(client_id.0.as_bytes().as_slice())
        .bind(sent.digest.0.as_slice())
        .bind(sent.message_id.get().cast_signed())
        .bind(sent.sent_at.0)
}

/// Writes an acceptance with copies owed.
pub(super) async fn write_open(
    connection: &mut SqliteConnection,
    acceptance: AcceptanceId,
    open: &SqlitePending,
) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO pending (acceptance, record) VALUES (?, ?)")
        .bind(acceptance.0.cast_signed())
        .bind(record::encode_open(open))
        .execute(connection)
        .await?;
    Ok(())
}

/// Writes what changed about a group.
pub(super) async fn write_group(
    connection: &mut SqliteConnection,
    gid: GroupId,
    changed: ChangedGroup,
) -> Result<(), StoreError> {
    let gid = gid.0.cast_signed();
    if let Some(group) = &changed.group {
        sqlx::query(
            "INSERT INTO groups (gid, version, settings) VALUES (?, ?, ?) ON CONFLICT (gid) DO UPDATE
             SET version = excluded.version, settings = excluded.settings",
        )
        .bind(gid)
        .bind(group.version.cast_signed())
        .bind(group_settings::text(&group.settings))
        .execute(&mut *connection)
        .await?;
        for uid in &changed.changed {
            let Some(member) = group.member(*uid) else { continue };
            let (standing, since) = member.standing.code();
            sqlx::query(
                "INSERT INTO members (gid, uid, epoch, active, ended_epoch, standing, since)
                 VALUES (?, ?, ?, ?, 0, ?, ?) ON CONFLICT (gid, uid) DO UPDATE
                 SET epoch = excluded.epoch, active = excluded.active, standing = excluded.standing, since = excluded.since",
            )
            .bind(gid)
            .bind(uid.0)
            .bind(member.epoch.0)
            .bind(member.is_active())
            .bind(standing)
            .bind(since)
            .execute(&mut *connection)
            .await?;
        }
    }
    for (uid, epoch) in &changed.closed {
        sqlx::query("UPDATE members SET ended_epoch = max(ended_epoch, ?) WHERE gid = ? AND uid = ?")
            .bind(epoch.0)
            .bind(gid)
            .bind(uid.0)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
