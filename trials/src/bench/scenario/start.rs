//! `start`: until it listens, over a large installation and over an empty directory.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use seqsvr_core::page_sums;
use tempfile::TempDir;

use super::Measured;
use crate::bench::baseline::sqlite::partition_key;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, mib};
use crate::server::Server;
use crate::{Failure, Result};

/// Every section of the uid space (S4).
const SECTIONS: u32 = 42_950;
const USERS: usize = 1_000_000;
const ROWS_EACH: i64 = 5;
/// The first uid that a server gives.
const FIRST_UID: u32 = 10_001;

pub(super) struct Start {
    large: TempDir,
}

impl Measured for Start {
    const NAME: &'static str = "start";
    const ABOUT: &'static str = "to listening: 42,950 sections, 1 million users, 5 million rows";

    async fn prepare(context: &Context) -> Result<Self> {
        let large = context.fresh()?;
        // A first start makes the files; what fills them is what years of use would have left there.
        let server = Server::start(&context.binary, large.path()).await?;
        server.stop().await?;
        fill_sections(&file_with(large.path(), "sections")?)?;
        fill_rows(&file_with(large.path(), "entries")?, context.scaled(USERS) as u32)?;
        Ok(Start { large })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let empty = context.fresh()?;
        let (bare, _) = start(context, empty.path()).await?;
        let (ours, peak) = start(context, self.large.path()).await?;
        Ok(vec![
            Sample::new("to listening", ours, "ms")
                .against("empty directory", bare)
                .target(Target::MoreByAtMost(100.0)),
            Sample::new("peak server memory", peak, "MiB"),
        ])
    }
}

/// Milliseconds to listening, and MiB of memory by then.
async fn start(context: &Context, data: &Path) -> Result<(f64, f64)> {
    let server = Server::start(&context.binary, data).await?;
    let (took, peak) = (server.started_in(), server.peak_memory()?);
    server.stop().await?;
    Ok((took.as_secs_f64() * 1e3, mib(peak)))
}

/// The database in `data` that has this table.
fn file_with(data: &Path, table: &str) -> Result<PathBuf> {
    for file in fs::read_dir(data)? {
        let path = file?.path();
        if path.is_file() && has_table(&path, table).unwrap_or(false) {
            return Ok(path);
        }
    }
    Err(Failure::new(format!("no database in the data folder has a table {table}")))
}

fn has_table(path: &Path, table: &str) -> Result<bool> {
    let question = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?";
    let found: i64 = Connection::open(path)?.query_row(question, [table], |row| row.get(0))?;
    Ok(found == 1)
}

/// Quick to fill and of no use afterwards if it breaks.
fn open_to_fill(path: &Path) -> Result<Connection> {
    page_sums::begin();
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -524288;")?;
    Ok(connection)
}

fn fill_sections(path: &Path) -> Result<()> {
    let mut connection = open_to_fill(path)?;
    let transaction = connection.transaction()?;
    let mut insert =
        transaction.prepare("INSERT OR REPLACE INTO sections (section, ceiling) VALUES (?, ?)")?;
    for section in 0..SECTIONS {
        insert.execute(params![section, 10_000 * (1 + i64::from(section % 100))])?;
    }
    drop(insert);
    Ok(transaction.commit()?)
}

fn fill_rows(path: &Path, users: u32) -> Result<()> {
    // In the order of the keys: anything else would take an hour.
    let mut keyed: Vec<(String, u32)> =
        (FIRST_UID..FIRST_UID + users).map(|uid| (partition_key(uid), uid)).collect();
    keyed.sort_unstable();
    let mut connection = open_to_fill(path)?;
    let transaction = connection.transaction()?;
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(200));
    let mut entry = transaction.prepare("INSERT INTO entries VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)")?;
    let mut conversation = transaction.prepare("INSERT INTO conversations VALUES (?, ?, ?, ?, 0)")?;
    let mut head = transaction.prepare("INSERT INTO heads VALUES (?, ?, ?)")?;
    for (key, uid) in &keyed {
        let other = if *uid == FIRST_UID { *uid } else { uid - 1 };
        let with = format!("u:{other}");
        for message_id in 1..=ROWS_EACH {
            let client_id: [u8; 16] = rand::random();
            entry.execute(params![
                key,
                uid,
                message_id,
                with,
                other,
                client_id,
                body,
                1_795_261_438_042_i64
            ])?;
        }
        conversation.execute(params![key, uid, with, ROWS_EACH])?;
        head.execute(params![key, uid, ROWS_EACH])?;
    }
    let mut account = transaction.prepare(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at) VALUES (?1, ?2, ?2, 'none', 0)",
    )?;
    for uid in FIRST_UID..FIRST_UID + users {
        account.execute(params![uid, format!("user-{uid}")])?;
    }
    drop((entry, conversation, head, account));
    Ok(transaction.commit()?)
}
