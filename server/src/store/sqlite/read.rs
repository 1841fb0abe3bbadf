//! Reads over both parts: memory for what is new, the keyed tables for what is older.
//!
//! Every read takes its [`MemtableView`] before it asks the tables. The view goes on growing, so what lies between its base
//! and its top is fixed with it: the tables are asked for ids up to the base, memory for those above it and up to the top.
//! So no flush in between can show a row twice or hide one. A row that lies in memory never costs a query.

use std::collections::{BTreeMap, HashMap};

use futures_util::TryStreamExt;
use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::db::Db;
use super::lookup::{self, ENTRY};
use super::memtable::{MemtableSet, MemtableView};
use super::row_tables;
use super::scan::Scan;
use crate::domain::{Conversation, Direction, Entry, Kind, MessageId, RangeQuery, Uid};
use crate::store::{Filling, Page, StoreError, beyond};

/// Reads of one inbox.
pub(super) struct InboxReader<'a> {
    pub(super) db: &'a Db,
    pub(super) view: MemtableView,
    pub(super) uid: Uid,
    /// The largest id that the tables are asked for.
    pub(super) base: u64,
    /// The largest id that memory is asked for, which has all above `base`.
    pub(super) top: u64,
}

impl<'a> InboxReader<'a> {
    /// A reader of what is there now.
    pub(super) fn new(db: &'a Db, memory: &MemtableSet, uid: Uid) -> InboxReader<'a> {
        let view = memory.view();
        let (base, top) = view.span(uid).unwrap_or((MessageId::MAX, MessageId::ZERO));
        InboxReader { db, view, uid, base: base.get(), top: top.get() }
    }

    /// The latest id.
    pub(super) async fn watermark(&self) -> Result<MessageId, StoreError> {
        match self.view.latest_id(self.uid) {
            Some(latest) => Ok(latest),
            None => {
                let latest_ids = lookup::latest_ids(&mut *self.db.reader().await?, [self.uid]).await?;
                Ok(latest_ids.get(&self.uid).copied().unwrap_or_default())
            }
        }
    }

    /// A range of rows.
    pub(super) async fn range(&self, query: RangeQuery) -> Result<Page, StoreError> {
        let Some((low, high)) = query.ids() else { return Ok(Page::default()) };
        let direction = query.direction();
        let recent = (low.max(self.base.saturating_add(1)), high.min(self.top));
        let older = (low, high.min(self.base));
        let mut filling = Filling::showing(query.page(), self.view.changes(self.uid));
        match direction {
            Direction::Forward => {
                filling = self.stored(older, direction, filling).await?;
                if !filling.is_full() {
                    self.view.fill(self.uid, recent, direction, &mut filling);
                }
            }
            Direction::Backward => {
                self.view.fill(self.uid, recent, direction, &mut filling);
                if !filling.is_full() {
                    filling = self.stored(older, direction, filling).await?;
                }
            }
        }
        Ok(filling.page())
    }

    /// Those of these rows that are there, in order.
    pub(super) async fn rows(&self, ids: &[MessageId]) -> Result<Vec<Entry>, StoreError> {
        let older: Vec<u64> = ids.iter().map(|id| id.get()).filter(|id| *id <= self.base).collect();
        let mut stored = HashMap::with_capacity(older.len());
        if !older.is_empty() {
            let _place = self.db.place()?;
            let rows = self.db.scanners().rows(self.uid, older).await?;
            stored.extend(rows.into_iter().map(|row| (row.message_id, row)));
        }
        let changes = self.view.changes(self.uid);
        let rows = ids.iter().filter_map(|id| stored.remove(id).or_else(|| self.view.row(self.uid, *id)));
        Ok(rows.filter_map(|row| changes.show(row)).collect())
    }

    /// Reads rows of the tables into a page.
    async fn stored(
        &self,
        ids: (u64, u64),
        direction: Direction,
        filling: Filling,
    ) -> Result<Filling, StoreError> {
        if ids.0 > ids.1 {
            return Ok(filling);
        }
        let _place = self.db.place()?;
        self.db.scanners().fill(Scan { uid: self.uid, ids, direction }, filling).await
    }

    /// Reads the rows of a query into a page.
    async fn collect(
        &self,
        query: super::bulk::Binding<'_>,
        filling: &mut Filling,
    ) -> Result<(), StoreError> {
        let mut connection = self.db.reader().await?;
        let mut rows = query.fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            if !filling.push(lookup::entry(self.uid, &row)?) {
                break;
            }
        }
        Ok(())
    }

    /// A page of one conversation, without what only says how things stand.
    pub(super) async fn conversation(
        &self,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        let Some((low, high)) = query.ids() else { return Ok(Page::default()) };
        let direction = query.direction();
        let mut filling = Filling::showing(query.page(), self.view.changes(self.uid));
        let recent = |filling: &mut Filling| {
            let ids = (low.max(self.base.saturating_add(1)), high.min(self.top));
            let rows = self.view.filtered(self.uid, ids, direction, query.limit() + 1, |content| {
                !content.kind.is_state() && content.conversation(self.uid) == conversation
            });
            rows.into_iter().all(|row| filling.push(row))
        };
        let older = (low, high.min(self.base));
        match direction {
            Direction::Forward => {
                self.stored_of(conversation, older, direction, &mut filling).await?;
                if !filling.is_full() {
                    recent(&mut filling);
                }
            }
            Direction::Backward => {
                if recent(&mut filling) {
                    self.stored_of(conversation, older, direction, &mut filling).await?;
                }
            }
        }
        Ok(filling.page())
    }

    /// Reads rows of one conversation from the tables into a page.
    async fn stored_of(
        &self,
        conversation: Conversation,
        (low, high): (u64, u64),
        direction: Direction,
        filling: &mut Filling,
    ) -> Result<(), StoreError> {
        if low > high {
            return Ok(());
        }
        let order = match direction {
            Direction::Forward => "ASC",
            Direction::Backward => "DESC",
        };
        let both = row_tables::over_conversations(|rows| {
            format!(
                "SELECT {ENTRY} FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND conversation = ?3
                   AND message_id BETWEEN ?4 AND ?5 AND kind NOT IN (SELECT value FROM json_each(?6))"
            )
        });
        let query = sqlx::query(AssertSqlSafe(format!("{both} ORDER BY message_id {order} LIMIT ?7")))
            .bind(self.uid.partition_key().as_str())
            .bind(self.uid.0)
            .bind(conversation.to_string())
            .bind(low.cast_signed())
            .bind(high.cast_signed())
            .bind(json!(Kind::codes(Kind::is_state)).to_string())
            .bind(filling.wanted() as i64);
        self.collect(query, filling).await
    }

    /// The newest rows under compaction keys that begin with `prefix` and come after `after`, with their keys.
    pub(super) async fn newest_under(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        let recent = self.view.newest_that(self.uid, |name| name.starts_with(prefix) && name > after);
        let both = row_tables::over_both(|rows| {
            format!(
                "SELECT {ENTRY}, name FROM compaction_keys CROSS JOIN {rows} USING (partition_key, receiver, message_id)
                 WHERE partition_key = ?1 AND receiver = ?2 AND name > ?3 AND name < ?4"
            )
        });
        let rows = sqlx::query(AssertSqlSafe(format!("{both} ORDER BY name LIMIT ?5")))
            .bind(self.uid.partition_key().as_str())
            .bind(self.uid.0)
            .bind(after.max(prefix))
            .bind(beyond(prefix))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.db.reader().await?)
            .await?;
        let mut found = BTreeMap::new();
        for row in rows {
            found.insert(row.try_get(7)?, lookup::entry(self.uid, &row)?);
        }
        for (name, id) in recent {
            found.extend(self.view.row(self.uid, id).map(|row| (name, row)));
        }
        Ok(found.into_iter().take(limit).collect())
    }

    /// How many compaction keys begin with `prefix`, up to `most`; one that is in memory and in the tables counts twice.
    pub(super) async fn keys_under(&self, prefix: &str, most: usize) -> Result<usize, StoreError> {
        let recent = self.view.newest_that(self.uid, |name| name.starts_with(prefix));
        let sql = "SELECT count(*) FROM (SELECT 1 FROM compaction_keys
             WHERE partition_key = ? AND receiver = ? AND name > ? AND name < ? LIMIT ?)";
        let stored: i64 = sqlx::query_scalar(sql)
            .bind(self.uid.partition_key().as_str())
            .bind(self.uid.0)
            .bind(prefix)
            .bind(beyond(prefix))
            .bind(i64::try_from(most).unwrap_or(i64::MAX))
            .fetch_one(&mut *self.db.reader().await?)
            .await?;
        Ok(usize::try_from(stored).unwrap_or_default().saturating_add(recent.len()).min(most))
    }

    /// Rows of the tables by id.
    pub(super) async fn entries(
        &self,
        tables: &mut SqliteConnection,
        ids: &[MessageId],
    ) -> Result<Vec<Entry>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<u64> = ids.iter().map(|id| id.get()).collect();
        let sql = row_tables::over_both(|rows| {
            format!(
                "SELECT {ENTRY} FROM json_each(?1) CROSS JOIN {rows}
                 WHERE partition_key = ?2 AND receiver = ?3 AND message_id = value"
            )
        });
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(json!(ids).to_string())
            .bind(self.uid.partition_key().as_str())
            .bind(self.uid.0)
            .fetch_all(&mut *tables)
            .await?;
        rows.iter().map(|row| lookup::entry(self.uid, row)).collect()
    }

    /// How many of the newest `most` unread rows that the tables hold beyond each read marker name the user.
    pub(super) async fn mentions(
        &self,
        tables: &mut SqliteConnection,
        markers: &[(Conversation, MessageId)],
        most: u32,
    ) -> Result<Vec<u32>, StoreError> {
        if markers.is_empty() {
            return Ok(Vec::new());
        }
        let markers: Vec<_> =
            markers.iter().map(|(name, marker)| json!([name.to_string(), marker.get()])).collect();
        let both = row_tables::over_conversations(|rows| {
            format!(
                "SELECT body, message_id FROM {rows}
                 WHERE partition_key = ?1 AND receiver = ?2 AND conversation = marker.value ->> 0
                   AND message_id > marker.value ->> 1 AND message_id <= ?3 AND kind = ?4 AND sender <> ?2"
            )
        });
        let rows = sqlx::query(AssertSqlSafe(format!(
            r#"SELECT (SELECT count(*) FROM ({both} ORDER BY message_id DESC LIMIT ?5)
                WHERE CASE WHEN instr(body, '"mentions":') > 0 THEN body ->> '$.mentions.all' = 1
                    OR EXISTS (SELECT 1 FROM json_each(body, '$.mentions.users') WHERE value = ?2) ELSE 0 END)
             FROM json_each(?6) AS marker ORDER BY marker.key"#
        )))
        .bind(self.uid.partition_key().as_str())
        .bind(self.uid.0)
        .bind(self.base.cast_signed())
        .bind(Kind::Message.code())
        .bind(most)
        .bind(json!(markers).to_string())
        .fetch_all(&mut *tables)
        .await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// How many unread rows the tables hold beyond each read marker, counted up to `most`.
    pub(super) async fn unread(
        &self,
        tables: &mut SqliteConnection,
        markers: &[(Conversation, MessageId)],
        most: u32,
    ) -> Result<Vec<u32>, StoreError> {
        let markers: Vec<_> =
            markers.iter().map(|(name, marker)| json!([name.to_string(), marker.get()])).collect();
        let both = row_tables::over_conversations(|rows| {
            format!(
                "SELECT 1 FROM {rows} WHERE partition_key = ?1 AND receiver = ?2 AND conversation = marker.value ->> 0
                   AND message_id > marker.value ->> 1 AND message_id <= ?3 AND kind = ?4 AND sender <> ?2"
            )
        });
        let rows = sqlx::query(AssertSqlSafe(format!(
            "SELECT (SELECT count(*) FROM ({both} LIMIT ?5)) FROM json_each(?6) AS marker ORDER BY marker.key"
        )))
        .bind(self.uid.partition_key().as_str())
        .bind(self.uid.0)
        .bind(self.base.cast_signed())
        .bind(Kind::Message.code())
        .bind(most)
        .bind(json!(markers).to_string())
        .fetch_all(&mut *tables)
        .await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}
