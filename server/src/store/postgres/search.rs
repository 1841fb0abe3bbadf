//! The index of words on PostgreSQL: two tables in the partition of the inbox. No transaction that stores a message writes to them.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{Connection as _, Row as _};

use super::{PgDb, lookup};
use crate::domain::Uid;
use crate::store::StoreError;
use crate::store::search::{Indexed, NewSegment, Rebuild, SearchIndex, SegmentHead};

/// Parts that one statement stores.
const AT_ONCE: usize = 64;

/// The rows of `meta` with the three numbers of a [`Rebuild`].
const WANTED: &str = "search_wanted";
const WALKED: &str = "search_walked";
const SHARE: &str = "search_share";

/// The [`SearchIndex`] on PostgreSQL.
pub struct PgSearch {
    db: Arc<PgDb>,
}

impl PgSearch {
    /// That of this database.
    pub fn new(db: Arc<PgDb>) -> PgSearch {
        PgSearch { db }
    }
}

/// The first two columns of every key.
fn key(uid: Uid) -> (String, i64) {
    (uid.partition_key().as_str().to_owned(), i64::from(uid.0))
}

#[async_trait]
impl SearchIndex for PgSearch {
    async fn segments(&self, uid: Uid) -> Result<Vec<SegmentHead>, StoreError> {
        let read = async {
            let (key, receiver) = key(uid);
            let heads: Vec<Vec<u8>> = sqlx::query_scalar(
                "SELECT head FROM search_segments WHERE partition_key = $1 AND receiver = $2 ORDER BY first_id DESC",
            )
            .bind(key)
            .bind(receiver)
            .fetch_all(&mut *self.db.reader().await?)
            .await?;
            heads.iter().map(|head| SegmentHead::read(head)).collect()
        };
        self.db.limited(read).await
    }

    async fn parts(&self, uid: Uid, segment: u64, parts: &[u32]) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let numbers: Vec<i32> = parts.iter().map(|part| part.cast_signed()).collect();
        let read = async {
            let (key, receiver) = key(uid);
            let rows = sqlx::query(
                "SELECT part, data FROM search_parts
                 WHERE partition_key = $1 AND receiver = $2 AND number = $3 AND part = ANY ($4)",
            )
            .bind(key)
            .bind(receiver)
            .bind(segment.cast_signed())
            .bind(&numbers)
            .fetch_all(&mut *self.db.reader().await?)
            .await?;
            let mut found = HashMap::with_capacity(rows.len());
            for row in rows {
                found.insert(row.try_get::<i32, _>(0)?, row.try_get::<Vec<u8>, _>(1)?);
            }
            Ok(numbers.iter().map(|part| found.remove(part)).collect())
        };
        self.db.limited(read).await
    }

    async fn indexed(&self, uids: &[Uid]) -> Result<Vec<Indexed>, StoreError> {
        let (keys, receivers): (Vec<String>, Vec<i64>) = uids.iter().map(|uid| key(*uid)).unzip();
        let read = async {
            let rows = sqlx::query(
                "SELECT receiver, max(last_id), max(build) FROM unnest($1, $2) AS wanted(key, uid)
                 JOIN search_segments ON partition_key = wanted.key AND receiver = wanted.uid
                 WHERE partition_key = ANY ($1) GROUP BY receiver",
            )
            .bind(&keys)
            .bind(&receivers)
            .fetch_all(&mut *self.db.reader().await?)
            .await?;
            let mut found = HashMap::with_capacity(rows.len());
            for row in rows {
                let build: i64 = row.try_get(2)?;
                let indexed =
                    Indexed { to: lookup::message_id(row.try_get(1)?)?, build: build.cast_unsigned() };
                found.insert(row.try_get::<i64, _>(0)?, indexed);
            }
            Ok(receivers.iter().map(|receiver| found.get(receiver).copied().unwrap_or_default()).collect())
        };
        self.db.limited(read).await
    }

    async fn replace(&self, uid: Uid, old: &[u64], new: Option<NewSegment>) -> Result<bool, StoreError> {
        let old: Vec<i64> = old.iter().map(|number| number.cast_signed()).collect();
        let write = async {
            let (key, receiver) = key(uid);
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            if !old.is_empty() {
                let delete = "DELETE FROM search_segments WHERE partition_key = $1 AND receiver = $2 AND number = ANY ($3)";
                let gone = sqlx::query(delete).bind(&key).bind(receiver).bind(&old).execute(&mut *tx).await?;
                if gone.rows_affected() != old.len() as u64 {
                    tx.rollback().await?;
                    return Ok(false);
                }
                let delete = "DELETE FROM search_parts WHERE partition_key = $1 AND receiver = $2 AND number = ANY ($3)";
                sqlx::query(delete).bind(&key).bind(receiver).bind(&old).execute(&mut *tx).await?;
            }
            if let Some(NewSegment { head, parts }) = &new {
                let put = sqlx::query(
                    "INSERT INTO search_segments (partition_key, receiver, first_id, last_id, build, number, head)
                     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                )
                .bind(&key)
                .bind(receiver)
                .bind(head.first_id.cast_signed())
                .bind(head.last_id.cast_signed())
                .bind(head.build.cast_signed())
                .bind(head.number.cast_signed())
                .bind(head.to_bytes())
                .execute(&mut *tx)
                .await?;
                if put.rows_affected() == 0 {
                    tx.rollback().await?;
                    return Ok(false);
                }
                for (from, some) in (0..).step_by(AT_ONCE).zip(parts.chunks(AT_ONCE)) {
                    let numbers: Vec<i32> = (from..).take(some.len()).collect();
                    sqlx::query(
                        "INSERT INTO search_parts (partition_key, receiver, number, part, data)
                         SELECT $1, $2, $3, part, data FROM unnest($4, $5) AS new(part, data)",
                    )
                    .bind(&key)
                    .bind(receiver)
                    .bind(head.number.cast_signed())
                    .bind(numbers)
                    .bind(some)
                    .execute(&mut *tx)
                    .await?;
                }
            }
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(write).await
    }

    async fn forget(&self, uid: Uid) -> Result<(), StoreError> {
        let forget = async {
            let (key, receiver) = key(uid);
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            for delete in [
                "DELETE FROM search_segments WHERE partition_key = $1 AND receiver = $2",
                "DELETE FROM search_parts WHERE partition_key = $1 AND receiver = $2",
            ] {
                sqlx::query(delete).bind(&key).bind(receiver).execute(&mut *tx).await?;
            }
            Ok(tx.commit().await?)
        };
        self.db.limited(forget).await
    }

    async fn renew(&self, uid: Uid) -> Result<(), StoreError> {
        self.forget(uid).await
    }

    async fn rebuild(&self) -> Result<Rebuild, StoreError> {
        let read = async {
            let rows: Vec<(String, String)> =
                sqlx::query_as("SELECT key, value FROM meta WHERE key LIKE 'search\\_%'")
                    .fetch_all(&mut *self.db.reader().await?)
                    .await?;
            let mut rebuild = Rebuild::default();
            for (key, value) in rows {
                let number: u64 = value.parse().map_err(StoreError::corrupt)?;
                match &*key {
                    WANTED => rebuild.wanted = number,
                    WALKED => rebuild.walked = number,
                    SHARE => rebuild.share = u32::try_from(number).unwrap_or_default(),
                    _ => {}
                }
            }
            Ok(rebuild)
        };
        self.db.limited(read).await
    }

    async fn ask_rebuild(&self) -> Result<u64, StoreError> {
        let ask = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let wanted: String = sqlx::query_scalar(
                "INSERT INTO meta (key, value) VALUES ($1, '1')
                 ON CONFLICT (key) DO UPDATE SET value = (meta.value::bigint + 1)::text RETURNING value",
            )
            .bind(WANTED)
            .fetch_one(&mut *tx)
            .await?;
            put(&mut tx, SHARE, 0).await?;
            tx.commit().await?;
            wanted.parse().map_err(StoreError::corrupt)
        };
        self.db.limited(ask).await
    }

    async fn note_walk(&self, walked: u64, share: u32) -> Result<(), StoreError> {
        let note = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            // In this order, as everybody does.
            put(&mut tx, SHARE, share.into()).await?;
            put(&mut tx, WALKED, walked).await?;
            Ok(tx.commit().await?)
        };
        self.db.limited(note).await
    }

    async fn close(&self) {}
}

async fn put(connection: &mut sqlx::PgConnection, key: &str, number: u64) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .bind(key)
    .bind(number.to_string())
    .execute(connection)
    .await?;
    Ok(())
}
