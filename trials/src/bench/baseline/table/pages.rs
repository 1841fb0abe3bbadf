//! Bare loops that read pages: the statement of GetRange, its rows decoded, encoded as an answer and hashed; no network, no memtable, no
//! checks.

use std::path::Path;
use std::time::Instant;

use futures_util::TryStreamExt as _;
use rusqlite::{Connection, OpenFlags, params};
use sqlx::{Connection as _, PgConnection, Row as _};
use tidemark_table::operations::range;
use tidemark_table::rows::capacity::{Consumed, of_cell, of_key};
use tidemark_table::rows::key;
use tidemark_table::rows::stored::Columns;
use tidemark_table::wire::sign::content_md5;
use tidemark_table::{Row, TableDefinition};

use crate::bench::baseline::sqlite::partition_key_of;
use crate::bench::{rate, tables};
use crate::{Failure, Result};

/// A page that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Under which value of the first key column.
    pub(crate) first: String,
    /// From which number on.
    pub(crate) from: i64,
    /// How many rows. So many are there, and one more.
    pub(crate) rows: usize,
}

impl Question {
    fn start(&self) -> Vec<u8> {
        tables::stored_key(&self.first, self.from)
    }

    fn end(&self) -> Vec<u8> {
        [tables::stored_first(&self.first), vec![key::INF_MAX]].concat()
    }
}

/// The answer as it comes together.
struct PageAnswer<'a> {
    definition: &'a TableDefinition,
    rows: Vec<Row>,
    bytes: u64,
}

impl<'a> PageAnswer<'a> {
    fn new(definition: &'a TableDefinition) -> PageAnswer<'a> {
        PageAnswer { definition, rows: Vec::new(), bytes: 0 }
    }

    fn push(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        let key = key::decode(self.definition, key)?;
        let cells = Columns::decode(row)?.cells;
        self.bytes += of_key(&key) + cells.iter().map(of_cell).sum::<u64>();
        self.rows.push(Row { key, cells });
        Ok(())
    }

    /// Encodes and hashes what was asked for; the last row only tells where the next page begins.
    fn finish(mut self, question: &Question) -> Result<()> {
        let next = self.rows.pop().filter(|_| self.rows.len() == question.rows);
        let Some(next) = next else {
            return Err(Failure::new(format!("the bare loop found another number of rows for {question:?}")));
        };
        let answer = range::answer(Consumed::reading(self.bytes), &self.rows, Some(&next.key));
        std::hint::black_box(content_md5(&answer));
        Ok(())
    }
}

/// Rows a second, read from the database of a server on one thread.
pub(crate) fn on_sqlite(database: &Path, table: i64, questions: &[Question]) -> Result<f64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.execute_batch("PRAGMA cache_size = -524288; PRAGMA mmap_size = 8589934592;")?;
    let sql =
        "SELECT key, row FROM table_rows WHERE table_id = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?";
    let mut select = connection.prepare(sql)?;
    let definition = tables::definition();
    let began = Instant::now();
    for question in questions {
        let limit = question.rows as i64 + 1;
        let mut found = select.query(params![table, question.start(), question.end(), limit])?;
        let mut page = PageAnswer::new(&definition);
        while let Some(row) = found.next()? {
            page.push(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?)?;
        }
        page.finish(question)?;
    }
    Ok(rows(questions) as f64 / began.elapsed().as_secs_f64())
}

/// Rows a second, read by so many connections at the same time.
pub(crate) async fn on_postgres(
    url: &str,
    table: i64,
    questions: &[Question],
    connections: usize,
) -> Result<f64> {
    let mut opened = Vec::new();
    for questions in questions.chunks(questions.len().div_ceil(connections)) {
        opened.push((PgConnection::connect(url).await?, questions.to_vec()));
    }
    rate(rows(questions), opened.into_iter().map(|(connection, own)| read(connection, table, own))).await
}

async fn read(mut connection: PgConnection, table: i64, questions: Vec<Question>) -> Result<()> {
    let definition = tables::definition();
    for question in &questions {
        let mut found = sqlx::query(
            "SELECT key, row FROM table_rows WHERE partition_key = $1 AND table_id = $2 AND key >= $3 AND key < $4
             ORDER BY key LIMIT $5",
        )
        .bind(partition_key_of(&question.first))
        .bind(table)
        .bind(question.start())
        .bind(question.end())
        .bind(question.rows as i64 + 1)
        .fetch(&mut connection);
        let mut page = PageAnswer::new(&definition);
        while let Some(row) = found.try_next().await? {
            page.push(row.try_get(0)?, row.try_get(1)?)?;
        }
        page.finish(question)?;
    }
    Ok(())
}

fn rows(questions: &[Question]) -> usize {
    questions.iter().map(|question| question.rows).sum()
}
