//! Ids and numbers that are skipped after files were restored, so that none that was lost is given again.

use std::sync::Arc;

use sqlx::AssertSqlSafe;

use super::heads::{self, HeadRow};
use super::{Db, OpenError, SqliteOptions, flush, meta, row_tables, tables};
use crate::domain::{MessageId, Uid};
use crate::store::StoreError;

/// Accounts that are read at a time.
const PAGE: i64 = 1_000;

/// Lets the ids of every inbox go on `by` further on, also of those without a row so far, after files were restored: the lost rows
/// may have been the first. So do the numbers of tables. Says how many inboxes there are. Nobody serves the database meanwhile.
///
/// # Errors
/// When an import was not finished or the files cannot be read or written; done again, it skips as many again.
pub async fn skip_ids(db: &Arc<Db>, options: &SqliteOptions, by: u64) -> Result<u64, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: db.path().to_owned(), source };
    meta::check_finished(db.readers()).await.map_err(unreadable)?;
    flush::flush_journal(db, options).await.map_err(unreadable)?;
    skip(db, by).await.map_err(unreadable)
}

async fn skip(db: &Db, by: u64) -> Result<u64, StoreError> {
    let mut tx = db.write().await?;
    let mut after = -1;
    loop {
        let uids: Vec<u32> =
            sqlx::query_scalar("SELECT uid FROM accounts WHERE uid > ? ORDER BY uid LIMIT ?")
                .bind(after)
                .bind(PAGE)
                .fetch_all(&mut *tx)
                .await?;
        let Some(&last) = uids.last() else { break };
        let mut heads: Vec<HeadRow> =
            uids.into_iter().map(|uid| HeadRow::of(Uid(uid), MessageId::ZERO)).collect();
        heads.sort_unstable_by(|one, next| (&one.key, one.receiver).cmp(&(&next.key, next.receiver)));
        heads::write(&mut tx, &heads).await?;
        after = i64::from(last);
    }
    // Rows that somebody put there by hand count as well.
    let [newest, young] = row_tables::TABLES.map(|rows| {
        format!(
            "coalesce((SELECT max(message_id) FROM {rows} AS rows
                 WHERE rows.partition_key = heads.partition_key AND rows.receiver = heads.receiver), 0)"
        )
    });
    let moved = sqlx::query(AssertSqlSafe(format!(
        "UPDATE heads SET last_id = min(? + max(last_id, {newest}, {young}), ?)"
    )))
    .bind(by.cast_signed())
    .bind(MessageId::MAX.get().cast_signed())
    .execute(&mut *tx)
    .await?;
    tables::skip_numbers(&mut tx, by).await?;
    tx.commit().await?;
    Ok(moved.rows_affected())
}
