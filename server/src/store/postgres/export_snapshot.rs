//! The export snapshot: one moment of the database, read beside the servers that write to it.
//!
//! One transaction over a connection of its own sees that moment and nothing later (`REPEATABLE READ`, read only). It
//! locks no row, so commits go on; the database keeps the versions of rows that it may still read until it ends. Each
//! page is one statement along the table's key.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::check::check;
use super::layout;
use super::life::{HISTORY, IMPORT, UNFINISHED};
use super::lookup::{self, ENTRY, message_id, rows_at_most, uid};
use super::options::{connection, place};
use super::{PgOpenError, PgOptions, db, schema, tables};
use crate::domain::{
    ClientId, Digest, Group, GroupId, HistoryId, MembershipEpoch, MessageId, Timestamp, Uid,
};
use crate::store::archive::{About, ArchiveSection, ExportSnapshot, Record, RecordKey};
use crate::store::sql::SqlConnection;
use crate::store::{AcceptanceId, Account, IdempotencyRecord, Pending, StoreError, file_archive, migrations};

/// An [`ExportSnapshot`] on PostgreSQL.
pub struct PgExportSnapshot {
    connection: PgConnection,
    history: HistoryId,
}

impl PgExportSnapshot {
    /// Takes the moment that is now, of the database at `url`. Nothing is written to it.
    ///
    /// # Errors
    /// When it cannot be used, nobody has used it yet, or this version would have to migrate it first.
    pub async fn take(url: &str, options: &PgOptions) -> Result<PgExportSnapshot, PgOpenError> {
        let plain = connection(url)?;
        let place = place(&plain);
        let (mut connection, _) = db::connect(plain, options, &place).await?;
        let unreadable =
            |source: sqlx::Error| PgOpenError::Unreadable { place: place.clone(), source: source.into() };
        let refused = |refusal| PgOpenError::Refused { place: place.clone(), refusal };
        check(&mut connection).await.map_err(unreadable)?.map_err(refused)?;
        if !schema::is_used(&mut connection).await.map_err(unreadable)? {
            return Err(PgOpenError::Unused { place });
        }
        if !schema::is_current(&mut connection, &migrations::POSTGRES)
            .await
            .map_err(|unfit| unfit.at(&place))?
        {
            return Err(PgOpenError::Outdated { place });
        }
        let layout = layout::read(&mut connection).await.map_err(unreadable)?;
        if let Some(why) = layout.only_plain("tidemark export") {
            return Err(PgOpenError::Layout { place, why });
        }
        // The first statement that reads fixes the moment. It is over when the connection is closed, as long as it takes.
        sqlx::raw_sql(
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0; \
             SET LOCAL idle_in_transaction_session_timeout = 0",
        )
        .execute(&mut connection)
        .await
        .map_err(unreadable)?;
        let facts: Vec<(String, String)> = sqlx::query_as("SELECT key, value FROM meta")
            .fetch_all(&mut connection)
            .await
            .map_err(unreadable)?;
        let fact = |wanted: &str| facts.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
        let corrupt = |source| PgOpenError::Unreadable { place: place.clone(), source };
        if fact(IMPORT).is_some() {
            return Err(corrupt(StoreError::unavailable(UNFINISHED)));
        }
        let Some(history) = fact(HISTORY) else { return Err(PgOpenError::Unused { place }) };
        let history = history.parse().map(HistoryId).map_err(|why| corrupt(StoreError::corrupt(why)))?;
        Ok(PgExportSnapshot { connection, history })
    }

    async fn accounts(&mut self, after: Option<RecordKey>, limit: i64) -> Result<Vec<Record>, StoreError> {
        let after = if let Some(RecordKey::Account(uid)) = after { i64::from(uid.0) } else { -1 };
        let rows = sqlx::query(
            "SELECT account.*, coalesce(head.last_id, 0), coalesce(newest.message_id, 0)
             FROM (SELECT left(md5(uid::text), 4) AS partition_key, uid, name, password_hash, disabled, created_at, deleted_at FROM accounts
                 WHERE uid > $1 ORDER BY uid LIMIT $2) AS account
             LEFT JOIN LATERAL (SELECT last_id FROM heads
                 WHERE partition_key = account.partition_key AND receiver = account.uid LIMIT 1) AS head ON true
             LEFT JOIN LATERAL (SELECT message_id FROM entries
                 WHERE partition_key = account.partition_key AND receiver = account.uid
                 ORDER BY message_id DESC LIMIT 1) AS newest ON true
             ORDER BY account.uid",
        );
        let rows = rows.bind(after).bind(limit).fetch_all(&mut self.connection).await?;
        rows.iter().map(account).collect()
    }

    async fn groups(&mut self, after: Option<RecordKey>, limit: i64) -> Result<Vec<Record>, StoreError> {
        let after = if let Some(RecordKey::Group(gid)) = after { gid.0.cast_signed() } else { -1 };
        let rows = sqlx::query(
            "SELECT page.gid, page.version, page.settings::text, members.uid, members.epoch,
                 members.active, members.standing, members.since
             FROM (SELECT gid, version, settings FROM groups WHERE gid > $1 ORDER BY gid LIMIT $2) AS page
             LEFT JOIN members ON members.gid = page.gid ORDER BY page.gid, members.uid",
        );
        let rows = rows.bind(after).bind(limit).fetch_all(&mut self.connection).await?;
        let mut groups: Vec<Group> = Vec::new();
        for row in &rows {
            let gid = GroupId(row.try_get::<i64, _>(0)?.cast_unsigned());
            if groups.last().is_none_or(|group| group.gid != gid) {
                groups.push(lookup::group(gid, row, 1)?);
            }
            groups.last_mut().expect("just pushed").members.extend(lookup::member(row, 3)?);
        }
        Ok(groups.into_iter().map(Record::Group).collect())
    }

    async fn ended_epochs(
        &mut self,
        after: Option<RecordKey>,
        limit: i64,
    ) -> Result<Vec<Record>, StoreError> {
        let (gid, uid) = match after {
            Some(RecordKey::EndedEpoch(gid, uid)) => (gid.0.cast_signed(), i64::from(uid.0)),
            _ => (-1, -1),
        };
        let rows = sqlx::query(
            "SELECT gid, uid, closed FROM members WHERE (gid, uid) > ($1, $2) AND closed > 0
             ORDER BY gid, uid LIMIT $3",
        );
        let rows = rows.bind(gid).bind(uid).bind(limit).fetch_all(&mut self.connection).await?;
        rows.iter().map(ended_epoch).collect()
    }

    async fn rows(&mut self, after: Option<RecordKey>, limit: i64) -> Result<Vec<Record>, StoreError> {
        let (key, receiver, id) = match after {
            Some(RecordKey::Row(key, uid, id)) => {
                (key.as_str().to_owned(), i64::from(uid.0), id.cast_signed())
            }
            _ => (String::new(), 0, 0),
        };
        let sql = format!(
            "SELECT {ENTRY}, receiver FROM entries
             WHERE (partition_key, receiver, message_id) > ($1, $2, $3)
             ORDER BY partition_key, receiver, message_id LIMIT $4"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(key).bind(receiver).bind(id).bind(limit);
        let rows = query.fetch_all(&mut self.connection).await?;
        rows.iter().map(|row| Ok(Record::Row(lookup::entry(uid(row.try_get(7)?)?, row)?))).collect()
    }

    async fn sent(&mut self, after: Option<RecordKey>, limit: i64) -> Result<Vec<Record>, StoreError> {
        let (key, sender, name) = match after {
            Some(RecordKey::Sent(key, uid, name)) => {
                (key.as_str().to_owned(), i64::from(uid.0), name.0.as_bytes().to_vec())
            }
            _ => (String::new(), 0, Vec::new()),
        };
        let rows = sqlx::query(
            "SELECT sender, client_id, digest, message_id, sent_at FROM sent
             WHERE (partition_key, sender, client_id) > ($1, $2, $3)
             ORDER BY partition_key, sender, client_id LIMIT $4",
        );
        let rows = rows.bind(key).bind(sender).bind(name).bind(limit).fetch_all(&mut self.connection).await?;
        rows.iter().map(sent).collect()
    }

    async fn pending(&mut self, after: Option<RecordKey>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let after = if let Some(RecordKey::Pending(acceptance)) = after { acceptance } else { 0 };
        let open = lookup::open_after(&mut self.connection, AcceptanceId(after), limit).await?;
        let record = |(acceptance, open): (_, super::learnt::PgPending)| {
            Record::Pending(Pending { acceptance, content: open.content, owed: open.owed }, open.ends)
        };
        Ok(open.into_iter().map(record).collect())
    }
}

#[async_trait]
impl ExportSnapshot for PgExportSnapshot {
    async fn about(&mut self) -> Result<About, StoreError> {
        let counts: (i64, i64, i64, i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM accounts), (SELECT count(*) FROM groups),
                 (SELECT count(*) FROM members WHERE closed > 0), (SELECT count(*) FROM entries),
                 (SELECT count(*) FROM sent), (SELECT count(*) FROM pending)",
        )
        .fetch_one(&mut self.connection)
        .await?;
        // Each row that is written moves a latest id. (The sequence of acceptances belongs to no moment.)
        let accepted: i64 = sqlx::query_scalar(
            "SELECT coalesce((SELECT sum(last_id)::bigint FROM heads), 0) + coalesce((SELECT max(acceptance) FROM pending), 0)",
        )
        .fetch_one(&mut self.connection)
        .await?;
        let accepted = accepted.cast_unsigned();
        let (accounts, groups, ended_epochs, rows, sent, pending) = counts;
        let (tables, of_tables) = tables::archive::about(&mut self.connection).await?;
        let [table, counter, table_row] = of_tables;
        let ([file, file_use], files) =
            file_archive::about(&mut SqlConnection::Postgres(&mut self.connection)).await?;
        let (file, file_use) = (file.cast_signed(), file_use.cast_signed());
        let totals =
            [accounts, groups, ended_epochs, rows, sent, pending, table, counter, table_row, file, file_use];
        let totals = totals.map(i64::cast_unsigned);
        Ok(About { history: self.history, accepted, totals, tables, files })
    }

    async fn page(
        &mut self,
        section: ArchiveSection,
        after: Option<RecordKey>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let rows = rows_at_most(limit);
        match section {
            ArchiveSection::Accounts => self.accounts(after, rows).await,
            ArchiveSection::Groups => self.groups(after, rows).await,
            ArchiveSection::EndedEpochs => self.ended_epochs(after, rows).await,
            ArchiveSection::Rows => self.rows(after, rows).await,
            ArchiveSection::Sent => self.sent(after, rows).await,
            ArchiveSection::Pending => self.pending(after, limit).await,
            ArchiveSection::Tables => tables::archive::tables(&mut self.connection, after, rows).await,
            ArchiveSection::Counters => tables::archive::counters(&mut self.connection, after, rows).await,
            ArchiveSection::TableRows => tables::archive::rows(&mut self.connection, after, rows).await,
            ArchiveSection::Files | ArchiveSection::FileUses => {
                let connection = &mut SqlConnection::Postgres(&mut self.connection);
                file_archive::page(connection, section, after, limit).await
            }
        }
    }
}

fn account(row: &PgRow) -> Result<Record, StoreError> {
    let account = Account {
        uid: uid(row.try_get(1)?)?,
        name: row.try_get(2)?,
        password_hash: row.try_get(3)?,
        disabled: row.try_get(4)?,
        deleted_at: row.try_get::<Option<i64>, _>(6)?.map(Timestamp),
    };
    let (latest, newest): (MessageId, MessageId) =
        (message_id(row.try_get(7)?)?, message_id(row.try_get(8)?)?);
    Ok(Record::Account(account, Timestamp(row.try_get(5)?), Some(latest).filter(|latest| *latest > newest)))
}

fn ended_epoch(row: &PgRow) -> Result<Record, StoreError> {
    let gid = GroupId(row.try_get::<i64, _>(0)?.cast_unsigned());
    let (member, epoch): (Uid, MembershipEpoch) = (uid(row.try_get(1)?)?, lookup::epoch(row.try_get(2)?)?);
    Ok(Record::EndedEpoch(gid, member, epoch))
}

fn sent(row: &PgRow) -> Result<Record, StoreError> {
    let name = uuid::Uuid::from_slice(row.try_get(1)?).map_err(StoreError::corrupt)?;
    let digest: [u8; 16] = row.try_get::<&[u8], _>(2)?.try_into().map_err(StoreError::corrupt)?;
    let record = IdempotencyRecord {
        message_id: message_id(row.try_get(3)?)?,
        sent_at: Timestamp(row.try_get(4)?),
        digest: Digest(digest),
    };
    Ok(Record::Sent(uid(row.try_get(0)?)?, ClientId(name), record))
}
