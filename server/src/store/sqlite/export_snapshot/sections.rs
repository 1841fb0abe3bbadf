//! The sections of an export snapshot: what the tables hold of each, and how much it is in both parts together.

use std::collections::BTreeMap;

use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::SqliteExportSnapshot;
use super::table_sections::{COUNTERS, COUNTERS_IN_BOTH, TABLE_ROWS, TABLE_ROWS_IN_BOTH, as_json};
use crate::domain::{
    ClientId, Digest, GroupId, Kind, MembershipEpoch, MessageId, Timestamp, Uid, amendment_key,
};
use crate::store::archive::{ArchiveSection, Record, RecordKey};
use crate::store::file_archive;
use crate::store::sql::SqlConnection;
use crate::store::sqlite::heads;
use crate::store::sqlite::lookup::{self, ENTRY};
use crate::store::sqlite::memtable::Memtable;
use crate::store::sqlite::row_tables;
use crate::store::{Account, IdempotencyRecord, StoreError};

impl SqliteExportSnapshot {
    /// The records of `section` that are in the tables, and whether there may be more.
    pub(super) async fn stored(
        &mut self,
        section: ArchiveSection,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<(Vec<Record>, bool), StoreError> {
        if section == ArchiveSection::TableRows {
            return self.stored_table_rows(after, limit).await;
        }
        let stored = self.stored_small(section, after, limit).await?;
        let is_full = stored.len() == limit;
        Ok((stored, is_full))
    }

    async fn stored_small(
        &mut self,
        section: ArchiveSection,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match (section, after) {
            (ArchiveSection::Accounts, after) => {
                let after = if let Some(RecordKey::Account(uid)) = after { i64::from(uid.0) } else { -1 };
                let sql = "SELECT uid, name, password_hash, disabled, created_at, deleted_at FROM accounts
                           WHERE uid > ? ORDER BY uid LIMIT ?";
                let rows = sqlx::query(sql).bind(after).bind(limit).fetch_all(&mut self.main).await?;
                self.with_latest_ids(rows.iter().map(account).collect::<Result<_, _>>()?).await
            }
            (ArchiveSection::Groups, after) => {
                let after = if let Some(RecordKey::Group(gid)) = after { gid.0.cast_signed() } else { -1 };
                let sql = "SELECT gid FROM groups WHERE gid > ? ORDER BY gid LIMIT ?";
                let gids: Vec<i64> =
                    sqlx::query_scalar(sql).bind(after).bind(limit).fetch_all(&mut self.main).await?;
                let mut groups = Vec::with_capacity(gids.len());
                for gid in gids {
                    let known = lookup::group(&mut self.main, GroupId(gid.cast_unsigned())).await?;
                    groups.extend(known.group.map(|group| Record::Group((*group).clone())));
                }
                Ok(groups)
            }
            (ArchiveSection::EndedEpochs, after) => {
                let (gid, uid) = match after {
                    Some(RecordKey::EndedEpoch(gid, uid)) => (gid.0.cast_signed(), i64::from(uid.0)),
                    _ => (-1, -1),
                };
                let sql =
                    "SELECT gid, uid, ended_epoch FROM members WHERE (gid, uid) > (?, ?) AND ended_epoch > 0
                           ORDER BY gid, uid LIMIT ?";
                let query = sqlx::query(sql).bind(gid).bind(uid).bind(limit);
                query.fetch_all(&mut self.main).await?.iter().map(epoch).collect()
            }
            (ArchiveSection::Rows, after) => {
                let (key, uid, id) = match after {
                    Some(RecordKey::Row(key, uid, id)) => (key.as_str().to_owned(), uid.0, id.cast_signed()),
                    _ => (String::new(), 0, 0),
                };
                let both = row_tables::over_both(|rows| {
                    format!(
                        "SELECT {ENTRY}, receiver, partition_key FROM {rows}
                         WHERE (partition_key, receiver, message_id) > (?1, ?2, ?3)"
                    )
                });
                let sql = format!("{both} ORDER BY partition_key, receiver, message_id LIMIT ?4");
                let query = sqlx::query(AssertSqlSafe(sql)).bind(key).bind(uid).bind(id).bind(limit);
                let rows = query.fetch_all(&mut self.main).await?;
                rows.iter().map(|row| Ok(Record::Row(lookup::entry(Uid(row.try_get(7)?), row)?))).collect()
            }
            (ArchiveSection::Sent, after) => {
                let (key, uid, name) = match after {
                    Some(RecordKey::Sent(key, uid, name)) => {
                        (key.as_str().to_owned(), uid.0, name.0.as_bytes().to_vec())
                    }
                    _ => (String::new(), 0, Vec::new()),
                };
                let sql = "SELECT sender, client_id, digest, message_id, sent_at FROM sent
                           WHERE (partition_key, sender, client_id) > (?, ?, ?)
                           ORDER BY partition_key, sender, client_id LIMIT ?";
                let query = sqlx::query(sql).bind(key).bind(uid).bind(name).bind(limit);
                query.fetch_all(&mut self.main).await?.iter().map(sent).collect()
            }
            // The ledger knows them all.
            (ArchiveSection::Pending, _) => Ok(Vec::new()),
            (ArchiveSection::Tables, after) => self.stored_tables(after, limit).await,
            (ArchiveSection::Counters, after) => self.stored_counters(after, limit).await,
            (ArchiveSection::TableRows, after) => {
                Ok(self.stored_table_rows(after, usize::try_from(limit).unwrap_or(usize::MAX)).await?.0)
            }
            (ArchiveSection::Files | ArchiveSection::FileUses, after) => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                file_archive::page(&mut SqlConnection::Sqlite(&mut self.main), section, after, limit).await
            }
        }
    }

    /// Accounts, each with the latest id of its inbox unless that is the id of its newest row.
    async fn with_latest_ids(
        &mut self,
        accounts: Vec<(Account, Timestamp)>,
    ) -> Result<Vec<Record>, StoreError> {
        let uids = accounts.iter().map(|(account, _)| account.uid);
        let stored = heads::latest_and_newest(&mut self.main, uids).await?;
        let rows = self.newer.get(&ArchiveSection::Rows);
        let with_latest_id =
            |((account, created_at), (uid, latest, newest)): (_, (Uid, MessageId, MessageId))| {
                let key = uid.partition_key();
                let recent = rows.and_then(|rows| {
                    rows.range(RecordKey::Row(key, uid, 0)..=RecordKey::Row(key, uid, u64::MAX)).next_back()
                });
                let newest = match recent {
                    Some((_, Record::Row(entry))) => newest.max(entry.message_id),
                    _ => newest,
                };
                let latest = self.latest_ids.get(&uid).copied().unwrap_or_default().max(latest);
                Record::Account(account, created_at, Some(latest).filter(|latest| *latest > newest))
            };
        Ok(accounts.into_iter().zip(stored).map(with_latest_id).collect())
    }

    /// Leaves out of what is newer the rows that the next flush sets aside: copies that the tables have under another id
    /// (`set_aside`). An archive with both could not be imported.
    pub(super) async fn leave_out_refused(&mut self) -> Result<(), StoreError> {
        let Some(newer) = self.newer.get_mut(&ArchiveSection::Rows) else { return Ok(()) };
        let copy = |(key, record): (&RecordKey, &Record)| match record {
            Record::Row(entry) => Some((key.clone(), entry.receiver, entry.content.key()?, entry.message_id)),
            _ => None,
        };
        let copies: Vec<_> = newer.iter().filter_map(copy).collect();
        let sql = row_tables::over_both(|rows| {
            format!(
                "SELECT key FROM json_each(?1) CROSS JOIN {rows}
                 WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND sender = value ->> 2
                   AND client_id = unhex(value ->> 3) AND client_id IS NOT NULL AND message_id != value ->> 4"
            )
        });
        for some in copies.chunks(1_000) {
            let looked_for = some.iter().map(|(_, receiver, (sender, client_id), message_id)| {
                let name = client_id.0.simple().to_string();
                json!([receiver.partition_key().as_str(), receiver.0, sender.0, name, message_id.get()])
            });
            let looked_for = json!(looked_for.collect::<Vec<_>>()).to_string();
            let refused: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(sql.clone()))
                .bind(looked_for)
                .fetch_all(&mut self.main)
                .await?;
            for at in refused {
                newer.remove(&some[at as usize].0);
            }
        }
        Ok(())
    }

    /// A record as what is newer leaves it.
    pub(super) fn amended(&self, record: Record) -> Record {
        match record {
            Record::Row(row) => match self.changes.get(&row.receiver) {
                Some(changes) => Record::Row(changes.amend(row)),
                None => Record::Row(row),
            },
            record => record,
        }
    }

    /// Finds the rows in the tables whose place later ones of `memtable` take, and the edits of messages that are deleted there.
    pub(super) async fn find_superseded(&mut self, memtable: &Memtable) -> Result<(), StoreError> {
        let mut newest = Vec::new();
        for uid in memtable.receivers() {
            let key = uid.partition_key();
            let of = |name: &str, id: MessageId, is_edit: bool| {
                json!([key.as_str(), uid.0, name, id.get(), is_edit])
            };
            memtable.inbox(uid, |inbox| {
                newest.extend(inbox.changes.newest().map(|(name, id)| of(name, id, false)));
                let amendments = inbox.changes.amendments();
                let deletions = amendments.filter(|(_, _, content)| content.kind == Kind::Delete);
                newest
                    .extend(deletions.map(|(message, ..)| of(&amendment_key(message), MessageId::MAX, true)));
            });
        }
        // A key may name a row that went with its message.
        let sql = row_tables::over_both(|rows| {
            format!(
                "SELECT receiver, message_id FROM json_each(?1) CROSS JOIN compaction_keys CROSS JOIN {rows}
                     USING (partition_key, receiver, message_id)
                 WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND name = value ->> 2
                   AND message_id < value ->> 3 AND (NOT value ->> 4 OR kind = ?2)"
            )
        });
        for some in newest.chunks(1_000) {
            let query = sqlx::query_as(AssertSqlSafe(sql.clone()))
                .bind(json!(some).to_string())
                .bind(Kind::Edit.code());
            let found: Vec<(u32, i64)> = query.fetch_all(&mut self.main).await?;
            let key = |(uid, id): (u32, i64)| {
                RecordKey::Row(Uid(uid).partition_key(), Uid(uid), id.cast_unsigned())
            };
            self.superseded.extend(found.into_iter().map(key));
        }
        Ok(())
    }

    /// How many files and uses there are, and the number of their state.
    pub(super) async fn of_files(&mut self) -> Result<([u64; 2], u64), StoreError> {
        file_archive::about(&mut SqlConnection::Sqlite(&mut self.main)).await
    }

    /// How many records of `section` there are in both parts together.
    pub(super) async fn count(&mut self, section: ArchiveSection) -> Result<u64, StoreError> {
        let newer: Vec<RecordKey> =
            self.newer.get(&section).into_iter().flat_map(BTreeMap::keys).cloned().collect();
        let (count, both) = match section {
            ArchiveSection::Pending => return Ok(newer.len() as u64),
            ArchiveSection::Accounts => {
                let count = sqlx::query_scalar("SELECT count(*) FROM accounts").fetch_one(&mut self.main);
                return Ok(count.await.map(i64::cast_unsigned)?);
            }
            ArchiveSection::Tables => {
                let count = sqlx::query_scalar("SELECT count(*) FROM tables WHERE deleted IS NULL");
                return Ok(count.fetch_one(&mut self.main).await.map(i64::cast_unsigned)?);
            }
            ArchiveSection::Files => return Ok(self.of_files().await?.0[0]),
            ArchiveSection::FileUses => return Ok(self.of_files().await?.0[1]),
            ArchiveSection::Counters => (COUNTERS, COUNTERS_IN_BOTH),
            ArchiveSection::TableRows => (TABLE_ROWS, TABLE_ROWS_IN_BOTH),
            ArchiveSection::Groups => (
                "SELECT count(*) FROM groups",
                "SELECT count(*) FROM json_each(?) JOIN groups ON gid = value ->> 0",
            ),
            ArchiveSection::EndedEpochs => (
                "SELECT count(*) FROM members WHERE ended_epoch > 0",
                "SELECT count(*) FROM json_each(?) JOIN members
                 ON gid = value ->> 0 AND uid = value ->> 1 AND ended_epoch > 0",
            ),
            ArchiveSection::Rows => (
                "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM young_entries)",
                "SELECT count(*) FROM json_each(?) WHERE
                 EXISTS (SELECT 1 FROM entries
                     WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND message_id = value ->> 2)
                 OR EXISTS (SELECT 1 FROM young_entries
                     WHERE partition_key = value ->> 0 AND receiver = value ->> 1 AND message_id = value ->> 2)",
            ),
            ArchiveSection::Sent => (
                "SELECT count(*) FROM sent",
                "SELECT count(*) FROM json_each(?) CROSS JOIN sent
                 WHERE partition_key = value ->> 0 AND sender = value ->> 1 AND client_id = unhex(value ->> 2)",
            ),
        };
        let mut total: i64 = sqlx::query_scalar(count).fetch_one(&mut self.main).await?;
        for some in newer.chunks(1_000) {
            let keys: Vec<_> = some.iter().map(as_json).collect();
            let both: i64 =
                sqlx::query_scalar(both).bind(json!(keys).to_string()).fetch_one(&mut self.main).await?;
            total += some.len() as i64 - both;
        }
        if section == ArchiveSection::TableRows {
            total -= self.deleted_in_tables().await?;
        }
        if section == ArchiveSection::Rows {
            total -= self.superseded.len() as i64;
        }
        Ok(total.cast_unsigned())
    }
}

fn account(row: &SqliteRow) -> Result<(Account, Timestamp), StoreError> {
    let account = Account {
        uid: Uid(row.try_get(0)?),
        name: row.try_get(1)?,
        password_hash: row.try_get(2)?,
        disabled: row.try_get(3)?,
        deleted_at: row.try_get::<Option<i64>, _>(5)?.map(Timestamp),
    };
    Ok((account, Timestamp(row.try_get(4)?)))
}

fn epoch(row: &SqliteRow) -> Result<Record, StoreError> {
    let gid = GroupId(row.try_get::<i64, _>(0)?.cast_unsigned());
    Ok(Record::EndedEpoch(gid, Uid(row.try_get(1)?), MembershipEpoch(row.try_get(2)?)))
}

fn sent(row: &SqliteRow) -> Result<Record, StoreError> {
    let digest: [u8; 16] = row.try_get::<&[u8], _>(2)?.try_into().map_err(StoreError::corrupt)?;
    let name = uuid::Uuid::from_slice(row.try_get(1)?).map_err(StoreError::corrupt)?;
    let record = IdempotencyRecord {
        message_id: lookup::message_id(row.try_get(3)?)?,
        sent_at: Timestamp(row.try_get(4)?),
        digest: Digest(digest),
    };
    Ok(Record::Sent(Uid(row.try_get(0)?), ClientId(name), record))
}
