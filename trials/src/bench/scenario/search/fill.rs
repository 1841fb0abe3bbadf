//! Inboxes with many messages, as a flush or commits would leave them.

use std::path::Path;

use rusqlite::{Connection, params};
use seqsvr_core::page_sums;
use sqlx::{Connection as _, PgConnection};

use super::texts::text;
use crate::Result;
use crate::bench::baseline::sqlite::partition_key;

/// Of each conversation of an inbox; the other side of it has no account.
const OTHER: u32 = 3_000_000;
const CONVERSATIONS: u32 = 20;

/// Rows of one transaction on PostgreSQL.
const AT_ONCE: usize = 10_000;

/// Inboxes to be filled: whose, and with how many messages.
pub(super) type Inboxes<'a> = &'a [(u32, usize)];

fn in_order(inboxes: Inboxes<'_>) -> Vec<(String, u32, usize)> {
    let mut keyed: Vec<_> = inboxes.iter().map(|(uid, rows)| (partition_key(*uid), *uid, *rows)).collect();
    keyed.sort_unstable();
    keyed
}

/// The body of a message.
fn body() -> String {
    format!(r#"{{"text":"{}"}}"#, text())
}

/// A minute apart from each other.
fn sent_at(id: usize) -> i64 {
    1_700_000_000_000 + id as i64 * 60_000
}

/// Fills the database of an installation of SQLite that nobody serves.
pub(super) fn sqlite(folder: &Path, inboxes: Inboxes<'_>) -> Result<()> {
    page_sums::begin();
    let mut connection = Connection::open(folder.join("tidemark.db"))?;
    connection.execute_batch("PRAGMA cache_size = -524288; PRAGMA synchronous = OFF")?;
    for (key, uid, rows) in in_order(inboxes) {
        let transaction = connection.transaction()?;
        {
            let mut entry = transaction.prepare(
                "INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
                 VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)",
            )?;
            for id in 1..=rows {
                let sender = OTHER + rand::random_range(0..CONVERSATIONS);
                let (conversation, client_id) = (format!("u:{sender}"), rand::random::<[u8; 16]>());
                entry.execute(params![
                    key,
                    uid,
                    id as i64,
                    conversation,
                    sender,
                    client_id,
                    body(),
                    sent_at(id)
                ])?;
            }
        }
        let head = "INSERT OR REPLACE INTO heads (partition_key, receiver, last_id) VALUES (?, ?, ?)";
        transaction.execute(head, params![key, uid, rows as i64])?;
        transaction.commit()?;
    }
    Ok(())
}

/// Fills a database of PostgreSQL whose servers do not serve these people.
pub(super) async fn postgres(url: &str, inboxes: Inboxes<'_>) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    for (key, uid, rows) in in_order(inboxes) {
        let mut from = 1;
        while from <= rows {
            let ids: Vec<i64> = (from..=rows).take(AT_ONCE).map(|id| id as i64).collect();
            let senders: Vec<i64> =
                ids.iter().map(|_| i64::from(OTHER + rand::random_range(0..CONVERSATIONS))).collect();
            let client_ids: Vec<Vec<u8>> = ids.iter().map(|_| rand::random::<[u8; 16]>().to_vec()).collect();
            let bodies: Vec<String> = ids.iter().map(|_| body()).collect();
            let times: Vec<i64> = ids.iter().map(|id| sent_at(*id as usize)).collect();
            sqlx::query(
                "INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
                 SELECT $1, $2, id, 1, 'u:' || sender, sender, client_id, body, sent_at
                 FROM unnest($3, $4, $5, $6, $7) AS new(id, sender, client_id, body, sent_at)",
            )
            .bind(&key)
            .bind(i64::from(uid))
            .bind(&ids)
            .bind(senders)
            .bind(client_ids)
            .bind(bodies)
            .bind(times)
            .execute(&mut connection)
            .await?;
            from += ids.len();
        }
        sqlx::query(
            "INSERT INTO heads (partition_key, receiver, last_id) VALUES ($1, $2, $3)
             ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = excluded.last_id",
        )
        .bind(&key)
        .bind(i64::from(uid))
        .bind(rows as i64)
        .execute(&mut connection)
        .await?;
    }
    sqlx::query("ANALYZE").execute(&mut connection).await?;
    Ok(())
}
