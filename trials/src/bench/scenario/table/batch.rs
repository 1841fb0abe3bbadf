//! `table-batch`: BatchWriteRow with 200 rows a call, on both databases, against bare loops that store the same rows.

use std::ffi::OsStr;
use std::time::Instant;

use tidemark_test_support::servers::postgres;

use super::{BODY_BYTES, Bodies, KEYS, World, mebibytes, rate};
use crate::Result;
use crate::bench::baseline::process::BareProcess;
use crate::bench::baseline::table::http::credentials;
use crate::bench::baseline::table::{postgres as bare_postgres, sqlite as bare_sqlite};
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::postgres::{Work, database, within_patience};
use crate::bench::{Context, tables};

/// Rows of a call.
const ROWS: usize = 200;
/// Clients, one call in flight each.
const CLIENTS: usize = 4;
/// Calls of a client in a run, on SQLite and on PostgreSQL.
const CALLS: (usize, usize) = (500, 125);
/// Values of the first key column in a call.
const SHAPES: [usize; 2] = [1, ROWS];

pub(in crate::bench::scenario) struct TableBatch {
    on_sqlite: World,
    on_postgres: World,
    bare: bare_postgres::BareTable,
    /// Decodes, signs, and syncs each call to a file.
    durable: BareProcess,
    database: postgres::Server,
}

/// The rows of a call, by the places of their first key columns; `firsts` values in each call.
fn call(client: usize, call: usize, firsts: usize) -> impl Iterator<Item = usize> {
    let begin = (call * CLIENTS + client) * firsts;
    (0..ROWS).map(move |row| (begin + row * firsts / ROWS) % KEYS)
}

/// The requests of each client. After some calls they begin anew: as many as it takes for all values.
fn bodies(firsts: usize) -> Bodies {
    let calls = (KEYS / (CLIENTS * firsts)).min(100);
    let body = |client, at| tables::batch(call(client, at, firsts).map(tables::first), BODY_BYTES);
    (0..CLIENTS).map(|client| (0..calls).map(|at| body(client, at)).collect()).collect()
}

/// The same rows for the loops, in the order in which they come.
fn rows(firsts: usize, calls: usize) -> Vec<usize> {
    let calls = (0..calls).flat_map(|at| (0..CLIENTS).map(move |client| (client, at)));
    calls.flat_map(|(client, at)| call(client, at, firsts)).collect()
}

fn shape(database: &str, firsts: usize) -> String {
    match firsts {
        1 => format!("{database}, one first key a call"),
        _ => format!("{database}, {firsts} first keys a call"),
    }
}

impl Measured for TableBatch {
    const NAME: &'static str = "table-batch";
    const ABOUT: &'static str =
        "BatchWriteRow, 200 rows a call, on both databases, against loops that insert them";

    async fn prepare(context: &Context) -> Result<Self> {
        let on_sqlite = World::new(context, None).await?;
        let database = database().await?;
        let on_postgres = World::new(context, Some(&database.new_database().await)).await?;
        let bare = bare_postgres::BareTable::open(database.new_database().await, BODY_BYTES).await?;
        let file = on_sqlite.data.path().join("appended");
        let durable = [OsStr::new("--serve-table-into"), file.as_os_str()];
        let durable = BareProcess::start(&std::env::current_exe()?, &durable).await?;
        Ok(TableBatch { on_sqlite, on_postgres, bare, durable, database })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for firsts in SHAPES {
            samples.extend(self.sqlite(firsts, context.scaled(CALLS.0)).await?);
        }
        for firsts in SHAPES {
            samples.extend(self.postgres(firsts, context.scaled(CALLS.1)).await?);
        }
        Ok(samples)
    }
}

impl TableBatch {
    async fn sqlite(&self, firsts: usize, calls: usize) -> Result<Vec<Sample>> {
        let shape = shape("SQLite", firsts);
        let total = (CLIENTS * calls * ROWS) as f64;
        let server = self.on_sqlite.start().await?;
        let ours = self.on_sqlite.rate("BatchWriteRow", bodies(firsts), calls).await? * ROWS as f64;
        let seconds = server.processor_seconds()?;
        let peak = mebibytes(server.peak_memory()?);
        // A stop flushes what is left: with it, every row lies where the bare loop's rows lie.
        let stopping = Instant::now();
        server.stop().await?;
        let settled = total / (total / ours + stopping.elapsed().as_secs_f64());
        let folder = tempfile::tempdir_in(self.on_sqlite.data.path())?;
        let rows = rows(firsts, calls);
        let bare = bare_sqlite::BareTable::open(folder.path())?.store(&rows, CLIENTS * ROWS, BODY_BYTES)?;
        let durable = self.durable.address();
        let least =
            rate(durable, &credentials(), "BatchWriteRow", bodies(firsts), calls).await? * ROWS as f64;
        Ok(vec![
            Sample::new(shape.clone(), ours, "rows/s")
                .against("bare SQLite loop", bare)
                .target(Target::RatioAtLeast(0.5)),
            Sample::new(format!("{shape}, bare hyper server that syncs a file"), least, "rows/s")
                .against("bare SQLite loop", bare),
            Sample::new(format!("{shape}, until all is flushed"), settled, "rows/s")
                .against("bare SQLite loop", bare),
            Sample::new(format!("{shape}, processor of the server"), seconds / total * 1e6, "µs"),
            Sample::new(format!("{shape}, peak server memory"), peak, "MiB"),
        ])
    }

    async fn postgres(&self, firsts: usize, calls: usize) -> Result<Vec<Sample>> {
        let shape = shape("PostgreSQL", firsts);
        let total = (CLIENTS * calls * ROWS) as f64;
        let before = Work::of(&self.database).await?;
        let server = self.on_postgres.start().await?;
        let ours = self.on_postgres.rate("BatchWriteRow", bodies(firsts), calls).await? * ROWS as f64;
        let seconds = server.processor_seconds()?;
        server.stop().await?;
        let done = Work::of(&self.database).await?.since(before);
        let rows = rows(firsts, calls);
        let (way, _) = within_patience(self.bare.best(&rows, CLIENTS * ROWS)).await?;
        let before = Work::of(&self.database).await?;
        let bare = within_patience(self.bare.store(&rows, way)).await?;
        let theirs = Work::of(&self.database).await?.since(before);
        Ok(vec![
            Sample::new(shape.clone(), ours, "rows/s")
                .against(format!("bare inserts, {way}"), bare)
                .target(Target::RatioAtLeast(0.5)),
            Sample::new(format!("{shape}, processor of PostgreSQL"), done.seconds / total * 1e6, "µs")
                .against("bare inserts", theirs.seconds / total * 1e6),
            Sample::new(format!("{shape}, processor of the server"), seconds / total * 1e6, "µs"),
        ])
    }
}
