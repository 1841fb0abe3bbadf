//! Ranges of rows from the tables, at the speed of the statements themselves.
//!
//! sqlx hands every row and column of a result between threads by itself, which costs seven times the reading of a
//! hundred rows (docs/adr/0003). A scan runs whole on a blocking thread, over rusqlite, which wraps the same SQLite
//! library. Owns a bounded set of connections that cannot write; the readers of `read` call it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, params};
use seqsvr_core::page_sums;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use uuid::Uuid;

use super::options::{BUSY, READER_CACHE_KIB};
use crate::domain::{
    Body, ClientId, Content, Conversation, Direction, Entry, Kind, MessageId, PageLimit, Timestamp, Uid,
};
use crate::store::{Filling, StoreError};

/// Which rows of whose inbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    pub(super) uid: Uid,
    /// The smallest and the largest id.
    pub(super) ids: (u64, u64),
    pub(super) direction: Direction,
}

/// Connections for scans.
pub(super) struct Scanners {
    path: PathBuf,
    connections: u32,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Scanners {
    /// As many scanners of the database at `path`, which are opened when they are needed.
    pub(super) fn new(path: &Path, connections: u32) -> Scanners {
        let free = Arc::new(Semaphore::new(connections as usize));
        Scanners { path: path.to_owned(), connections, idle: Arc::default(), free }
    }

    /// Reads rows into a page.
    pub(super) async fn fill(&self, scan: Scan, mut filling: Filling) -> Result<Filling, StoreError> {
        self.run(move |connection| {
            scan.run(connection, &mut filling)?;
            Ok(filling)
        })
        .await
    }

    /// Reads those of these rows that are there.
    pub(super) async fn rows(&self, uid: Uid, ids: Vec<u64>) -> Result<Vec<Entry>, StoreError> {
        self.run(move |connection| {
            let mut filling = Filling::new(PageLimit { rows: ids.len(), bytes: usize::MAX });
            for id in ids {
                Scan { uid, ids: (id, id), direction: Direction::Forward }.run(connection, &mut filling)?;
            }
            Ok(filling.page().rows)
        })
        .await
    }

    /// Runs `work` on a blocking thread. Waits for a free connection as long as readers may wait.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let busy = |_| StoreError::unavailable("all readers are busy");
        let permit = timeout(BUSY, Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.map_err(busy)?.map_err(|_| StoreError::unavailable("the database is closed"))?;
        let (idle, path) = (Arc::clone(&self.idle), self.path.clone());
        let whole = move || {
            let known = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match known {
                Some(connection) => connection,
                None => open(&path)?,
            };
            let done = work(&connection)?;
            // One that failed is not kept. The permit is given up last, so that there are never more than permits.
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(permit);
            Ok(done)
        };
        tokio::task::spawn_blocking(whole).await.map_err(StoreError::unavailable)?
    }

    /// Waits for the scans under way and closes the connections. Later scans fail.
    pub(super) async fn close(&self) {
        let all = self.free.acquire_many(self.connections).await;
        self.free.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        drop(all);
    }
}

/// A connection to the database at `path` that cannot write.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    page_sums::begin();
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -i64::from(READER_CACHE_KIB))?;
    Ok(connection)
}

impl Scan {
    fn run(&self, connection: &Connection, filling: &mut Filling) -> Result<(), StoreError> {
        let sql = match self.direction {
            Direction::Forward => {
                "SELECT message_id, kind, conversation, sender, client_id, body, sent_at FROM entries
                 WHERE partition_key = ?1 AND receiver = ?2 AND message_id BETWEEN ?3 AND ?4
                 UNION ALL
                 SELECT message_id, kind, conversation, sender, client_id, body, sent_at FROM young_entries
                 WHERE partition_key = ?1 AND receiver = ?2 AND message_id BETWEEN ?3 AND ?4
                 ORDER BY message_id LIMIT ?5"
            }
            Direction::Backward => {
                "SELECT message_id, kind, conversation, sender, client_id, body, sent_at FROM entries
                 WHERE partition_key = ?1 AND receiver = ?2 AND message_id BETWEEN ?3 AND ?4
                 UNION ALL
                 SELECT message_id, kind, conversation, sender, client_id, body, sent_at FROM young_entries
                 WHERE partition_key = ?1 AND receiver = ?2 AND message_id BETWEEN ?3 AND ?4
                 ORDER BY message_id DESC LIMIT ?5"
            }
        };
        let mut statement = connection.prepare_cached(sql)?;
        let (low, high) = self.ids;
        let (low, high) = (low.cast_signed(), high.cast_signed());
        let key = self.uid.partition_key();
        let mut rows =
            statement.query(params![key.as_str(), self.uid.0, low, high, filling.wanted() as i64])?;
        while let Some(row) = rows.next()? {
            if !filling.push(self.entry(row)?) {
                break;
            }
        }
        Ok(())
    }

    fn entry(&self, row: &rusqlite::Row<'_>) -> Result<Entry, StoreError> {
        let corrupt =
            |what: &str| StoreError::corrupt(format!("an entry of user {} has a bad {what}", self.uid));
        let number = |at| row.get::<_, i64>(at).map_err(StoreError::corrupt);
        let text = |at| row.get_ref(at).map_err(StoreError::corrupt)?.as_str().map_err(StoreError::corrupt);
        let id = u64::try_from(number(0)?).ok().and_then(MessageId::new);
        let kind = u8::try_from(number(1)?).ok().and_then(Kind::from_code).ok_or_else(|| corrupt("kind"))?;
        let conversation: Conversation = text(2)?.parse().map_err(|_| corrupt("conversation"))?;
        let sender = u32::try_from(number(3)?).map(Uid).map_err(|_| corrupt("sender"))?;
        let client_id = match row.get_ref(4).and_then(|value| Ok(value.as_blob_or_null()?)) {
            Ok(None) => None,
            Ok(Some(bytes)) => Some(ClientId(Uuid::from_slice(bytes).map_err(|_| corrupt("client_id"))?)),
            Err(_) => return Err(corrupt("client_id")),
        };
        let content = Content {
            kind,
            sender,
            target: Content::target_of(self.uid, sender, conversation),
            client_id,
            body: Body::from_stored(text(5)?),
            sent_at: Timestamp(number(6)?),
        };
        let message_id = id.ok_or_else(|| corrupt("id"))?;
        Ok(Entry { receiver: self.uid, message_id, content: Arc::new(content) })
    }
}
