//! The index of words on SQLite: a file beside the database, `search.db`, which one thread at a time writes.
//!
//! It is derived, so it is not among the files that belong together (`stamp`), nor in backups. It names the history whose rows it
//! was made from; one of another history, a damaged or a missing one is made anew, empty. A power cut may take its last
//! writes, and leaves it whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use tokio::sync::RwLock;
use tracing::warn;

use super::scan::Scanners;
use super::{blocking, lookup, private};
use crate::domain::{HistoryId, Uid};
use crate::store::StoreError;
use crate::store::search::{Indexed, NewSegment, Rebuild, SearchIndex, SegmentHead};

/// Connections that read it.
const READERS: u32 = 3;

/// Page cache of the connection that writes it, in KiB.
const CACHE_KIB: i64 = 8 << 10;

const SCHEMA: &str = "
    CREATE TABLE segments (
        receiver INTEGER NOT NULL,
        first_id INTEGER NOT NULL,  -- it has the rows from here
        last_id  INTEGER NOT NULL,  -- to here
        build    INTEGER NOT NULL,
        number   INTEGER NOT NULL,
        head     BLOB    NOT NULL,  -- store::search::SegmentHead
        PRIMARY KEY (receiver, first_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE parts (
        receiver INTEGER NOT NULL,
        number   INTEGER NOT NULL,  -- of the segment
        part     INTEGER NOT NULL,
        data     BLOB    NOT NULL,
        PRIMARY KEY (receiver, number, part)
    ) STRICT;
    CREATE TABLE state (
        key   TEXT NOT NULL PRIMARY KEY,
        value ANY  NOT NULL
    ) STRICT, WITHOUT ROWID;";

/// The rows of `state`: whose rows it was made from, and the three numbers of a [`Rebuild`].
const HISTORY: &str = "history";
const WANTED: &str = "wanted";
const WALKED: &str = "walked";
const SHARE: &str = "share";

/// The [`SearchIndex`] on SQLite.
pub struct SqliteSearch {
    path: PathBuf,
    history: String,
    open: RwLock<Open>,
}

struct Open {
    writer: Arc<Mutex<Connection>>,
    readers: Scanners,
}

impl Open {
    fn over(path: &Path, writer: Connection) -> Open {
        Open { writer: Arc::new(Mutex::new(writer)), readers: Scanners::new(path, READERS) }
    }
}

impl SqliteSearch {
    /// Where the index of the database at `main` lies.
    pub fn beside(main: &Path) -> PathBuf {
        main.with_file_name("search.db")
    }

    /// Opens or makes the index of the database at `main`, whose rows are of this history.
    ///
    /// # Errors
    /// When it can be neither opened nor made.
    pub async fn open(main: &Path, history: HistoryId) -> Result<SqliteSearch, StoreError> {
        let (path, history) = (SqliteSearch::beside(main), history.to_string());
        let place = (path.clone(), history.clone());
        let writer = aside(move || open_or_make(&place.0, &place.1)).await?;
        let open = RwLock::new(Open::over(&path, writer));
        Ok(SqliteSearch { path, history, open })
    }

    /// Opens the index beside the process that has it, to ask for a rebuild; `None`: there is none.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open_beside(main: &Path) -> Result<Option<SqliteSearch>, StoreError> {
        let path = SqliteSearch::beside(main);
        if !path.exists() {
            return Ok(None);
        }
        let place = path.clone();
        let (writer, history) = aside(move || {
            let writer = connect(&place)?;
            let history = state(&writer, HISTORY)?.unwrap_or_default();
            Ok((writer, history))
        })
        .await?;
        let open = RwLock::new(Open::over(&path, writer));
        Ok(Some(SqliteSearch { path, history, open }))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.open.read().await.readers.run(work).await
    }

    /// One transaction. `None`: nothing is stored.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<Option<T>, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let open = self.open.read().await;
        let writer = Arc::clone(&open.writer);
        aside(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&tx)?;
            if done.is_some() {
                tx.commit()?;
            }
            Ok(done)
        })
        .await
    }
}

#[async_trait]
impl SearchIndex for SqliteSearch {
    async fn segments(&self, uid: Uid) -> Result<Vec<SegmentHead>, StoreError> {
        self.read(move |connection| {
            let sql = "SELECT head FROM segments WHERE receiver = ? ORDER BY first_id DESC";
            let mut statement = connection.prepare_cached(sql)?;
            let heads = statement.query_and_then([uid.0], |row| {
                let head = row.get_ref(0)?.as_blob().map_err(StoreError::corrupt)?;
                SegmentHead::read(head)
            })?;
            heads.collect()
        })
        .await
    }

    async fn parts(&self, uid: Uid, segment: u64, parts: &[u32]) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let parts = parts.to_vec();
        self.read(move |connection| {
            let sql = "SELECT data FROM parts WHERE receiver = ? AND number = ? AND part = ?";
            let mut statement = connection.prepare_cached(sql)?;
            let mut read = Vec::with_capacity(parts.len());
            for part in parts {
                let data = statement.query_row(params![uid.0, segment.cast_signed(), part], |row| row.get(0));
                match data.optional()? {
                    Some(data) => read.push(data),
                    None => return Ok(None),
                }
            }
            Ok(Some(read))
        })
        .await
    }

    async fn indexed(&self, uids: &[Uid]) -> Result<Vec<Indexed>, StoreError> {
        let uids = uids.to_vec();
        self.read(move |connection| {
            let sql = "SELECT last_id, build FROM segments WHERE receiver = ? ORDER BY first_id DESC LIMIT 1";
            let mut statement = connection.prepare_cached(sql)?;
            let mut all = Vec::with_capacity(uids.len());
            for uid in uids {
                let newest = statement.query_row([uid.0], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
                all.push(match newest.optional()? {
                    Some((to, build)) => {
                        Indexed { to: lookup::message_id(to)?, build: build.cast_unsigned() }
                    }
                    None => Indexed::default(),
                });
            }
            Ok(all)
        })
        .await
    }

    async fn replace(&self, uid: Uid, old: &[u64], new: Option<NewSegment>) -> Result<bool, StoreError> {
        let old = old.to_vec();
        let done = self.write(move |tx| {
            let mut gone = 0;
            for number in &old {
                let delete = "DELETE FROM segments WHERE receiver = ? AND number = ?";
                gone += tx.prepare_cached(delete)?.execute(params![uid.0, number.cast_signed()])?;
                let delete = "DELETE FROM parts WHERE receiver = ? AND number = ?";
                tx.prepare_cached(delete)?.execute(params![uid.0, number.cast_signed()])?;
            }
            if gone != old.len() {
                return Ok(None);
            }
            let Some(NewSegment { head, parts }) = new else { return Ok(Some(())) };
            let insert = "INSERT INTO segments (receiver, first_id, last_id, build, number, head) VALUES (?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO NOTHING";
            let (first, last) = (head.first_id.cast_signed(), head.last_id.cast_signed());
            let (build, number) = (head.build.cast_signed(), head.number.cast_signed());
            let put = tx.prepare_cached(insert)?.execute(params![uid.0, first, last, build, number, head.to_bytes()])?;
            if put == 0 {
                return Ok(None);
            }
            let insert = "INSERT INTO parts (receiver, number, part, data) VALUES (?, ?, ?, ?)";
            let mut insert = tx.prepare_cached(insert)?;
            for (part, data) in parts.iter().enumerate() {
                insert.execute(params![uid.0, number, part as i64, data])?;
            }
            Ok(Some(()))
        });
        Ok(done.await?.is_some())
    }

    async fn forget(&self, uid: Uid) -> Result<(), StoreError> {
        let forget = self.write(move |tx| {
            tx.execute("DELETE FROM segments WHERE receiver = ?", [uid.0])?;
            tx.execute("DELETE FROM parts WHERE receiver = ?", [uid.0])?;
            Ok(Some(()))
        });
        forget.await.map(drop)
    }

    async fn renew(&self, _: Uid) -> Result<(), StoreError> {
        let mut open = self.open.write().await;
        warn!(path = %self.path.display(), "the search index is damaged; it is made anew from the rows");
        open.readers.close().await;
        let place = (self.path.clone(), self.history.clone());
        let writer = aside(move || make(&place.0, &place.1)).await?;
        *open = Open::over(&self.path, writer);
        Ok(())
    }

    async fn rebuild(&self) -> Result<Rebuild, StoreError> {
        self.read(|connection| {
            let number =
                |key| Ok::<u64, StoreError>(state::<i64>(connection, key)?.unwrap_or(0).cast_unsigned());
            let share = u32::try_from(number(SHARE)?).unwrap_or(0);
            Ok(Rebuild { wanted: number(WANTED)?, walked: number(WALKED)?, share })
        })
        .await
    }

    async fn ask_rebuild(&self) -> Result<u64, StoreError> {
        let wanted = self.write(|tx| {
            let wanted = state::<i64>(tx, WANTED)?.unwrap_or(0) + 1;
            put_state(tx, WANTED, wanted)?;
            put_state(tx, SHARE, 0)?;
            Ok(Some(wanted.cast_unsigned()))
        });
        Ok(wanted.await?.unwrap_or_default())
    }

    async fn note_walk(&self, walked: u64, share: u32) -> Result<(), StoreError> {
        let note = self.write(move |tx| {
            put_state(tx, WALKED, walked.cast_signed())?;
            put_state(tx, SHARE, share)?;
            Ok(Some(()))
        });
        note.await.map(drop)
    }

    async fn close(&self) {
        self.open.write().await.readers.close().await;
    }
}

async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(StoreError::unavailable)?
}

/// A connection that writes. What it stores is whole after a power cut, and may lack the last transactions.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = blocking::open(path)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}

fn open_or_make(path: &Path, history: &str) -> Result<Connection, StoreError> {
    if path.exists() {
        match connect(path).and_then(|connection| Ok((state::<String>(&connection, HISTORY)?, connection))) {
            Ok((Some(made_from), connection)) if made_from == history => return Ok(connection),
            Ok(_) => warn!(path = %path.display(), "the search index is of other rows; it is made anew"),
            Err(error) => {
                warn!(path = %path.display(), %error, "the search index cannot be read; it is made anew");
            }
        }
    }
    make(path, history)
}

/// Makes an empty one, in the place of whatever is there.
fn make(path: &Path, history: &str) -> Result<Connection, StoreError> {
    for ending in ["", "-wal", "-shm"] {
        match fs::remove_file(format!("{}{ending}", path.display())) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(path, &error)),
            _ => {}
        }
    }
    private::make_file(path).map_err(|error| cannot(path, &error))?;
    let mut connection = connect(path)?;
    let tx = connection.transaction()?;
    tx.execute_batch(SCHEMA)?;
    put_state(&tx, HISTORY, history)?;
    tx.commit()?;
    Ok(connection)
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::unavailable(format!("{} cannot be made: {error}", path.display()))
}

fn state<T: rusqlite::types::FromSql>(connection: &Connection, key: &str) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT value FROM state WHERE key = ?")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

fn put_state(connection: &Connection, key: &str, value: impl rusqlite::ToSql) -> Result<(), StoreError> {
    let put =
        "INSERT INTO state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.prepare_cached(put)?.execute(params![key, value])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use uuid::Uuid;

    use super::*;
    use crate::store::search::conformance;
    use crate::store::search::segment::{Builder, Making};

    const HISTORY: HistoryId = HistoryId(Uuid::nil());

    async fn opened(place: &tempfile::TempDir, history: HistoryId) -> SqliteSearch {
        SqliteSearch::open(&place.path().join("tidemark.db"), history).await.expect("opened")
    }

    async fn put_one(index: &SqliteSearch) {
        let segment = Builder::default().finish(Making { build: 1, number: 7, ids: (1, 9), level: 0 });
        assert_eq!(index.replace(Uid(1), &[], Some(segment)).await, Ok(true));
    }

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let place = tempfile::tempdir().expect("a directory");
        let index = opened(&place, HISTORY).await;
        conformance::run(&index).await;
        index.close().await;
    }

    #[tokio::test]
    async fn what_is_stored_is_there_after_a_restart_and_gone_with_another_history() {
        let place = tempfile::tempdir().expect("a directory");
        let index = opened(&place, HISTORY).await;
        put_one(&index).await;
        index.close().await;
        drop(index);
        let index = opened(&place, HISTORY).await;
        assert_eq!(index.segments(Uid(1)).await.map(|heads| heads.len()), Ok(1));
        drop(index);
        let index = opened(&place, HistoryId(Uuid::from_u128(5))).await;
        assert_eq!(index.segments(Uid(1)).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_damaged_file_is_made_anew_at_the_start_and_at_work() {
        let place = tempfile::tempdir().expect("a directory");
        let index = opened(&place, HISTORY).await;
        put_one(&index).await;
        index.close().await;
        drop(index);
        let path = SqliteSearch::beside(&place.path().join("tidemark.db"));
        fs::write(&path, "no database").expect("written");
        let index = opened(&place, HISTORY).await;
        assert_eq!(index.segments(Uid(1)).await, Ok(Vec::new()));
        put_one(&index).await;
        index.close().await;
        drop(index);

        let index = opened(&place, HISTORY).await;
        let pages = fs::metadata(&path).expect("there").len() / 4_096;
        let mut file = fs::OpenOptions::new().write(true).open(&path).expect("opened");
        for page in 1..pages {
            file.seek(SeekFrom::Start(page * 4_096 + 100)).expect("there");
            file.write_all(&[0x5a; 3_000]).expect("written");
        }
        let error = index.segments(Uid(1)).await.expect_err("damaged");
        assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
        index.renew(Uid(1)).await.expect("made anew");
        assert_eq!(index.segments(Uid(1)).await, Ok(Vec::new()));
        put_one(&index).await;
    }

    #[tokio::test]
    async fn a_command_asks_for_a_rebuild_beside_the_server() {
        let place = tempfile::tempdir().expect("a directory");
        let main = place.path().join("tidemark.db");
        assert!(SqliteSearch::open_beside(&main).await.expect("looked").is_none());
        let index = opened(&place, HISTORY).await;
        let command = SqliteSearch::open_beside(&main).await.expect("opened").expect("there");
        assert_eq!(command.ask_rebuild().await, Ok(1));
        assert_eq!(index.rebuild().await, Ok(Rebuild { wanted: 1, walked: 0, share: 0 }));
    }
}
