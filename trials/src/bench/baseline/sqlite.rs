//! The bare SQLite loop: the same rows straight into all the same tables and indexes, with the same durability.
//!
//! No network, no queue, no numbers from an allocator, no checks: one thread, one connection, prepared statements, and
//! each batch sorted by key, with the settings that were found best. The tables come from the server's own migrations.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::{Connection, Transaction, params};

use crate::Result;

/// Memory for pages, in KiB: more than the loop ever touches.
const CACHE_KIB: u32 = 512 * 1024;
/// Checkpoints are what costs most; this many pages in the log put them off.
const CHECKPOINT_PAGES: u32 = 100_000;

/// The server's migrations for `database`, the name of their folder, oldest first.
pub(crate) fn migrations(database: &str) -> Result<Vec<String>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations")).join(database);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|file| Some(file.ok()?.path()))
        // Others are not applied by the server.
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
        .collect();
    files.sort();
    files.iter().map(|path| Ok(std::fs::read_to_string(path)?)).collect()
}

/// The first 4 hex digits of md5 of the uid (S15).
pub(crate) fn partition_key(uid: u32) -> String {
    partition_key_of(&uid.to_string())
}

/// The same of a first key column with this text.
pub(crate) fn partition_key_of(first: &str) -> String {
    format!("{:x}", md5::compute(first))[..4].to_owned()
}

/// A fresh database in `folder` with all tables of the server, and the settings that were found best.
pub(crate) fn open(folder: &Path) -> Result<Connection> {
    let connection = Connection::open(folder.join("bare.db"))?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA cache_size = -{CACHE_KIB}; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
         PRAGMA temp_store = MEMORY;"
    ))?;
    for migration in migrations("sqlite")? {
        connection.execute_batch(&migration)?;
    }
    Ok(connection)
}

/// A message and the inboxes that it goes to.
pub(crate) struct Message {
    pub(crate) sender: u32,
    /// The sender's own inbox is among them.
    pub(crate) receivers: Vec<u32>,
    /// A group's number, if it is to a group.
    pub(crate) group: Option<u64>,
}

/// A fresh database with all tables.
pub(crate) struct BareSqlite {
    connection: Connection,
    /// The newest number and the key of each inbox.
    lines: HashMap<u32, (i64, String)>,
    body: String,
}

struct BareRow<'a> {
    key: &'a str,
    receiver: u32,
    message_id: i64,
    conversation: String,
    sender: u32,
    client_id: [u8; 16],
}

impl BareSqlite {
    pub(crate) fn open(folder: &Path) -> Result<BareSqlite> {
        let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(200));
        Ok(BareSqlite { connection: open(folder)?, lines: HashMap::new(), body })
    }

    /// Stores the messages, each batch in one durable transaction; answers the seconds that it took.
    pub(crate) fn store(&mut self, messages: &[Message], batch: usize) -> Result<f64> {
        for uid in messages.iter().flat_map(|message| &message.receivers) {
            self.lines.entry(*uid).or_insert_with(|| (0, partition_key(*uid)));
        }
        let began = Instant::now();
        for messages in messages.chunks(batch) {
            self.store_batch(messages)?;
        }
        Ok(began.elapsed().as_secs_f64())
    }

    fn store_batch(&mut self, messages: &[Message]) -> Result<()> {
        let mut sent = Vec::with_capacity(messages.len());
        let mut numbered = Vec::new();
        for message in messages {
            let client_id: [u8; 16] = rand::random();
            for receiver in &message.receivers {
                let Some((newest, _)) = self.lines.get_mut(receiver) else { continue };
                *newest += 1;
                numbered.push((*receiver, *newest, message, client_id));
                if *receiver == message.sender {
                    sent.push((message.sender, client_id, *newest));
                }
            }
        }
        let mut rows: Vec<BareRow<'_>> = numbered
            .into_iter()
            .filter_map(|(receiver, message_id, message, client_id)| {
                let key = self.lines.get(&receiver)?.1.as_str();
                let conversation = conversation(message, receiver);
                Some(BareRow { key, receiver, message_id, conversation, sender: message.sender, client_id })
            })
            .collect();
        rows.sort_unstable_by_key(|row| (row.key, row.receiver, row.message_id));
        sent.sort_unstable_by_key(|(sender, client_id, _)| {
            (self.lines.get(sender).map(|line| &line.1), *sender, *client_id)
        });

        let transaction = self.connection.transaction()?;
        insert_rows(&transaction, &rows, &self.body)?;
        let mut insert = transaction.prepare_cached("INSERT INTO sent VALUES (?, ?, ?, ?, ?, ?)")?;
        for (sender, client_id, message_id) in sent {
            let key = self.lines.get(&sender).map(|line| line.1.as_str());
            insert.execute(params![key, sender, client_id, [7_u8; 32], message_id, SENT_AT])?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    }
}

/// Any moment.
const SENT_AT: i64 = 1_795_261_438_042;

fn insert_rows(transaction: &Transaction<'_>, rows: &[BareRow<'_>], body: &str) -> Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO entries VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)")?;
    for row in rows {
        insert.execute(params![
            row.key,
            row.receiver,
            row.message_id,
            row.conversation,
            row.sender,
            row.client_id,
            body,
            SENT_AT
        ])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO conversations VALUES (?, ?, ?, ?, 0)
         ON CONFLICT DO UPDATE SET last_id = excluded.last_id",
    )?;
    // Only the newest of a conversation in a batch: the same end in fewer statements.
    let mut newest: HashMap<(u32, &str), &BareRow<'_>> = HashMap::new();
    for row in rows {
        newest.insert((row.receiver, &row.conversation), row);
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_unstable_by_key(|row| (row.key, row.receiver, row.conversation.as_str()));
    for row in newest {
        insert.execute(params![row.key, row.receiver, row.conversation, row.message_id])?;
    }
    Ok(())
}

/// From the receiver's side.
fn conversation(message: &Message, receiver: u32) -> String {
    match message.group {
        Some(gid) => format!("g:{gid}"),
        None if receiver == message.sender => {
            let other = message.receivers.iter().find(|uid| **uid != receiver).unwrap_or(&receiver);
            format!("u:{other}")
        }
        None => format!("u:{}", message.sender),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_stores_what_a_message_is_made_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bare = BareSqlite::open(folder.path()).expect("opens");
        let messages = [(1, 2), (1, 2), (3, 4)].map(|(sender, to)| Message {
            sender,
            receivers: vec![sender, to],
            group: None,
        });
        bare.store(&messages, 2).expect("stored");
        let count = |table: &str| -> i64 {
            let question = format!("SELECT count(*) FROM {table}");
            bare.connection.query_row(&question, [], |row| row.get(0)).expect("counted")
        };
        assert_eq!((count("entries"), count("sent"), count("conversations")), (6, 3, 4));
        let last: i64 = bare
            .connection
            .query_row(
                "SELECT last_id FROM conversations WHERE owner = 2 AND conversation = 'u:1'",
                [],
                |row| row.get(0),
            )
            .expect("there");
        assert_eq!(last, 2);
    }

    #[test]
    fn the_key_is_that_of_the_interface() {
        // md5("10001") = d89f3a35931c386956c1a402a8e09941
        assert_eq!(partition_key(10_001), "d89f");
    }
}
