//! Ceilings in a SQLite file of their own: the default of a single server. Owns one connection, which holds
//! the file's exclusive lock, so a second process is turned away instead of handing out the same numbers.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::backup::Backup;
use super::batches::batches;
use super::claims::Claims;
use super::sql::{layout_is_new, number, stored, stored_layout};
use super::{Ceiling, Claimed, Layout, Owner, RaiseError, Ranges, SectionStore, StoreError};
use crate::ids::{Epoch, SectionId};
use crate::page_sums::{self, DAMAGED_PAGE};

mod schema;

/// How long to wait for a predecessor that is just closing the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// The most ceilings in one statement: some 30 KB of JSON.
const BATCH: usize = 1_000;

const SQLITE_BUSY: i32 = 5;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_NOTADB: i32 = 26;

/// A [`SectionStore`] in one SQLite file (WAL, `synchronous=FULL`).
///
/// After a failed statement the connection is given up, and the next call opens the file anew and moves its
/// log into the main file before anything else: a sync that failed may be followed by one that falsely
/// succeeds, so what the log held is written and synced again (I3).
#[derive(Debug)]
pub struct SqliteSections {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
}

impl SqliteSections {
    /// Opens the file, making it if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: the file cannot be opened, another process uses it, or another program
    /// wrote it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let connection = connect(&path).await.map_err(|error| unavailable(&path, &error))?;
        let connection = Mutex::new(Some(connection));
        Ok(Self { path, connection })
    }

    /// Lets every section, stored or not, start at `at_least` or above, 0 to [`MAX_CEILING`](super::MAX_CEILING): for
    /// data that was restored from a copy, so that numbers handed out since the copy are not handed out again.
    /// Takes effect for claims made afterwards.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], also for a value that is too large.
    pub async fn raise_all(&self, at_least: u64) -> Result<(), StoreError> {
        let ceiling = stored(at_least).map_err(|error| self.unavailable(&error))?;
        let (mut slot, mut connection) = self.checked_out().await?;
        let raise = sqlx::query("UPDATE floor SET ceiling = max(ceiling, ?1)").bind(ceiling);
        raise.execute(&mut connection).await.map_err(|error| self.unavailable(&error))?;
        *slot = Some(connection);
        Ok(())
    }

    /// Closes the file, which releases its lock. A later call opens it again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]; what was confirmed before is durable all the same.
    pub async fn close(&self) -> Result<(), StoreError> {
        match self.connection.lock().await.take() {
            Some(connection) => connection.close().await.map_err(|error| self.unavailable(&error)),
            None => Ok(()),
        }
    }

    /// The connection, opened if need be, out of its place. A caller that succeeds puts it back; after a failure, or when the caller is
    /// dropped half-way, it is gone and the next call opens another.
    async fn checked_out(
        &self,
    ) -> Result<(MutexGuard<'_, Option<SqliteConnection>>, SqliteConnection), StoreError> {
        let mut slot = self.connection.lock().await;
        let connection = match slot.take() {
            Some(connection) => connection,
            None => connect(&self.path).await.map_err(|error| self.unavailable(&error))?,
        };
        Ok((slot, connection))
    }

    fn unavailable(&self, error: &sqlx::Error) -> StoreError {
        unavailable(&self.path, error)
    }
}

#[async_trait]
impl SectionStore for SqliteSections {
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        let (mut slot, mut connection) = self.checked_out().await?;
        let claims = schema::load(&mut connection).await.map_err(|error| self.unavailable(&error))?;
        *slot = Some(connection);
        Ok(claims.newest())
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        let (mut slot, mut connection) = self.checked_out().await?;
        let claimed = claim(&mut connection, sections, owner, layout).await;
        *slot = Some(connection);
        claimed.map_err(|error| match error {
            ClaimFailed::Refused(refusal) => refusal,
            ClaimFailed::Sqlite(error) => {
                *slot = None;
                self.unavailable(&error)
            }
        })
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let all = |error: RaiseError| raises.iter().map(|_| Err(error.clone())).collect();
        let (mut slot, mut connection) = match self.checked_out().await {
            Ok(checked_out) => checked_out,
            Err(error) => return all(RaiseError::Unavailable(error.to_string())),
        };
        match raise(&mut connection, owner, raises).await {
            Ok((answers, Ok(()))) => {
                *slot = Some(connection);
                answers
            }
            Ok((answers, Err(commit))) => {
                let unknown = |_| Err(RaiseError::Unknown(self.unavailable(&commit).to_string()));
                answers.into_iter().map(|answer| answer.and_then(unknown)).collect()
            }
            Err(error) => all(RaiseError::Unavailable(self.unavailable(&error).to_string())),
        }
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        let (mut slot, mut connection) = self.checked_out().await?;
        let released = release(&mut connection, sections, owner).await;
        released.map_err(|error| self.unavailable(&error))?;
        *slot = Some(connection);
        Ok(())
    }

    async fn backup(&self) -> Result<Backup, StoreError> {
        let (mut slot, mut connection) = self.checked_out().await?;
        let taken = backup(&mut connection).await.map_err(|error| self.unavailable(&error))?;
        *slot = Some(connection);
        Ok(taken)
    }
}

#[derive(Debug)]
enum ClaimFailed {
    Refused(StoreError),
    Sqlite(sqlx::Error),
}

impl From<sqlx::Error> for ClaimFailed {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    page_sums::begin();
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY_TIMEOUT)
        .locking_mode(SqliteLockingMode::Exclusive)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    schema::prepare(&mut connection).await?;
    let (busy, _, _): (i64, i64, i64) =
        sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
    if busy != 0 {
        return Err(sqlx::Error::Configuration("another connection uses it".into()));
    }
    Ok(connection)
}

async fn load_floor(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let floor: i64 = sqlx::query_scalar("SELECT ceiling FROM floor").fetch_one(connection).await?;
    Ok(floor.cast_unsigned())
}

/// The stored ceilings of the sections in `range`, all in one row: sqlx runs SQLite on a thread of its own and hands over
/// row by row, which costs several times the reading of 42,950 (docs/adr/0003).
async fn load_ceilings(
    connection: &mut SqliteConnection,
    range: &RangeInclusive<SectionId>,
) -> Result<Vec<Ceiling>, sqlx::Error> {
    let packed = sqlx::query_as(
        "SELECT group_concat(section), group_concat(ceiling) FROM sections WHERE section BETWEEN ?1 AND ?2",
    );
    let packed = packed.bind(range.start().get()).bind(range.end().get()).fetch_one(connection).await?;
    let (sections, ceilings): (Option<String>, Option<String>) = packed;
    let (sections, ceilings) = (sections.unwrap_or_default(), ceilings.unwrap_or_default());
    let column = |text: &str| text.parse::<i64>().map_err(|error| sqlx::Error::Decode(error.into()));
    let ceiling = |(section, max): (&str, &str)| {
        let section = SectionId::new(number(column(section)?)?);
        Ok(Ceiling { section, max: column(max)?.cast_unsigned() })
    };
    sections.split_terminator(',').zip(ceilings.split_terminator(',')).map(ceiling).collect()
}

async fn claim(
    connection: &mut SqliteConnection,
    sections: &Ranges,
    owner: Owner,
    layout: Layout,
) -> Result<Claimed, ClaimFailed> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let stored =
        sqlx::query_as("SELECT section_size, step FROM layout").fetch_optional(&mut *transaction).await?;
    if layout_is_new(stored, layout).map_err(ClaimFailed::Refused)? {
        let insert = sqlx::query("INSERT INTO layout VALUES (1, ?1, ?2)");
        insert.bind(layout.section_size).bind(layout.step).execute(&mut *transaction).await?;
    }
    let mut claims = schema::load(&mut transaction).await?;
    if claims.accept(sections, owner).map_err(ClaimFailed::Refused)? {
        schema::store(&mut transaction, &claims).await?;
    }
    let mut ceilings = Vec::new();
    for range in sections {
        ceilings.extend(load_ceilings(&mut transaction, range).await?);
    }
    let floor = load_floor(&mut transaction).await?;
    transaction.commit().await?;
    Ok(Claimed { ceilings, floor, earlier: claims.earlier(sections) })
}

async fn backup(connection: &mut SqliteConnection) -> Result<Backup, sqlx::Error> {
    let layout =
        sqlx::query_as("SELECT section_size, step FROM layout").fetch_optional(&mut *connection).await?;
    let backup = Backup {
        layout: stored_layout(layout)?,
        newest: schema::load(connection).await?.newest(),
        floor: load_floor(connection).await?,
        ..Backup::default()
    };
    let mut ceilings = load_ceilings(connection, &(SectionId::new(0)..=SectionId::new(u32::MAX))).await?;
    ceilings.sort_unstable_by_key(|one| one.section);
    Ok(backup.with(ceilings))
}

async fn release(
    connection: &mut SqliteConnection,
    sections: &Ranges,
    owner: Owner,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut claims: Claims = schema::load(&mut transaction).await?;
    if claims.release(sections, owner) {
        schema::store(&mut transaction, &claims).await?;
    }
    transaction.commit().await
}

/// The answers as they stand if the commit, whose outcome is the second part, succeeded.
async fn raise(
    connection: &mut SqliteConnection,
    owner: Owner,
    raises: &[Ceiling],
) -> Result<(Vec<Result<u64, RaiseError>>, Result<(), sqlx::Error>), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let claims = schema::load(&mut transaction).await?;
    let floor = load_floor(&mut transaction).await?;
    let mut answers = Vec::with_capacity(raises.len());
    for batch in batches(raises, BATCH) {
        let checked = batch.iter().map(|raise| claims.check(raise.section, owner).map(|()| raise.max));
        let checked: Vec<_> = checked.collect();
        let admitted =
            batch.iter().zip(&checked).filter(|(_, answer)| answer.is_ok()).map(|(raise, _)| raise);
        let larger = raise_all(&mut transaction, admitted, floor).await?;
        answers.extend(batch.iter().zip(checked).map(|(raise, answer)| {
            let stored = larger.get(&raise.section.get()).copied();
            answer.and_then(|max| stored.map_or(Ok(max), |stored| Err(RaiseError::Smaller { stored })))
        }));
    }
    Ok((answers, transaction.commit().await))
}

/// Raises the ceilings of different sections; answers with the ceilings, or the floor, that were above a target and stay.
///
/// Two statements for all: each is handed to the thread of SQLite and awaited, and a restore raises 42,950.
async fn raise_all(
    connection: &mut SqliteConnection,
    raises: impl Iterator<Item = &Ceiling>,
    floor: u64,
) -> Result<HashMap<u32, u64>, sqlx::Error> {
    let pair = |raise: &Ceiling| Ok(format!("[{},{}]", raise.section.get(), stored(raise.max)?));
    let pairs = raises.map(pair).collect::<Result<Vec<_>, sqlx::Error>>()?;
    let asked = format!("[{}]", pairs.join(","));
    let larger = sqlx::query_as(
        "SELECT value ->> 0, max(ifnull(ceiling, 0), ?2) AS now FROM json_each(?1) \
         LEFT JOIN sections ON section = value ->> 0 WHERE now > value ->> 1",
    );
    let larger = larger.bind(&asked).bind(floor.cast_signed());
    let larger: Vec<(i64, i64)> = larger.fetch_all(&mut *connection).await?;
    let raise = sqlx::query(
        "INSERT INTO sections SELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE value ->> 1 >= ?2 \
         ON CONFLICT (section) DO UPDATE SET ceiling = excluded.ceiling WHERE excluded.ceiling > sections.ceiling",
    );
    raise.bind(&asked).bind(floor.cast_signed()).execute(connection).await?;
    larger.into_iter().map(|(section, ceiling)| Ok((number(section)?, ceiling.cast_unsigned()))).collect()
}

fn unavailable(path: &Path, error: &sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code());
    let extended = code.and_then(|code| code.parse::<i32>().ok());
    // Extended codes keep the primary one in their lowest byte.
    let advice = match extended.map(|code| if code == DAMAGED_PAGE { SQLITE_CORRUPT } else { code & 0xff }) {
        Some(SQLITE_BUSY) => "; another process uses it: stop that one first",
        Some(SQLITE_CORRUPT | SQLITE_NOTADB) => {
            "; it is damaged: restore a copy, and raise all ceilings above what was handed out since the copy"
        }
        _ => "",
    };
    StoreError::Unavailable(format!("{}: {error}{advice}", path.display()))
}

#[cfg(test)]
mod tests;
