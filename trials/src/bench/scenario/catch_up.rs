//! `catch-up`: a device that was away fetches the 100 rows that it missed, over the WebSocket and over HTTP.

use std::path::Path;
use std::time::Instant;

use futures_util::future::try_join_all;
use rusqlite::{Connection, OpenFlags, params};
use tempfile::TempDir;
use tidemark_client::{Account, RangeQuery};

use super::Measured;
use super::send::send;
use crate::bench::baseline::sqlite::{BareSqlite, Message, partition_key};
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, peak_memory, rate};
use crate::connection::{ClientConnection, heartbeat};
use crate::http::KeptAlive;
use crate::server::Server;
use crate::{Failure, Result, users};

/// Devices that catch up at the same time, one question in flight each.
const DEVICES: usize = 8;
/// Rows of each inbox, so that the wanted ones are the newest of many.
const ROWS: usize = 2_000;
/// Rows that a device missed.
const MISSED: usize = 100;
/// Times that each device catches up in a run.
const EACH: usize = 1_000;

pub(super) struct CatchUp {
    server: Server,
    /// Each with the cursor behind which exactly the missed rows are.
    users: Vec<(Account, u64)>,
    bare: Connection,
    _data: TempDir,
}

impl Measured for CatchUp {
    const NAME: &'static str = "catch-up";
    const ABOUT: &'static str = "100 rows after a cursor, over WebSocket and over HTTP, 8 devices";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "away", DEVICES).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let http = server.http()?;
        let url = http.socket_url();
        // Everybody writes to themselves: one row a message.
        let writing = accounts.iter().map(|account| async {
            let connection = ClientConnection::open(&url, &account.token).await?;
            send(connection, format!(r#"{{"user":{}}}"#, account.uid), 64, ROWS).await
        });
        try_join_all(writing).await?;
        let mut users = Vec::new();
        for account in accounts {
            let rows = http.with_token(&account.token).range(&RangeQuery::after(0)).await?.rows;
            let cursor = rows.len().checked_sub(MISSED + 1).and_then(|at| rows.get(at));
            let cursor = cursor.ok_or_else(|| Failure::new("not all rows are there"))?.message_id;
            users.push((account, cursor));
        }
        // A stop flushes the rows into the tables, and the next start has none of them in memory: read where they lie.
        server.stop().await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let bare = fill(data.path(), &users)?;
        Ok(CatchUp { server, users, bare, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let bare = self.bare(each)?;
        let sockets = self.over_sockets(each).await?;
        let http = self.over_http(each).await?;
        let sample = |metric, ours| {
            Sample::new(metric, ours, "catch-ups/s")
                .against("the statement in process", bare)
                .target(Target::RatioAtLeast(0.4))
        };
        Ok(vec![
            sample("100 rows over WebSocket", sockets),
            sample("100 rows over HTTP", http),
            peak_memory("peak server memory", &self.server)?,
        ])
    }
}

impl CatchUp {
    async fn over_sockets(&self, each: usize) -> Result<f64> {
        let url = self.server.http()?.socket_url();
        let mut connections = Vec::new();
        for (account, cursor) in &self.users {
            connections.push((ClientConnection::open(&url, &account.token).await?, *cursor));
        }
        let tasks = connections.into_iter().map(|(mut connection, cursor)| async move {
            let question = heartbeat(cursor);
            for _ in 0..each {
                connection.say(question.clone()).await?;
                count_rows(connection.hear().await?.as_str())?;
            }
            Ok(())
        });
        rate(each * DEVICES, tasks).await
    }

    async fn over_http(&self, each: usize) -> Result<f64> {
        let address = self.server.host();
        let mut connections = Vec::new();
        for (account, cursor) in &self.users {
            let connection = KeptAlive::open(address).await?;
            connections.push((connection, question(address, account, *cursor)));
        }
        let tasks = connections.into_iter().map(|(mut connection, question)| async move {
            for _ in 0..each {
                let answer = connection.ask(question.as_bytes()).await?;
                count_rows(std::str::from_utf8(answer.body)?)?;
            }
            Ok(())
        });
        rate(each * DEVICES, tasks).await
    }

    /// The statement alone, on one connection, all columns read into values of their own.
    fn bare(&self, each: usize) -> Result<f64> {
        let mut select = self.bare.prepare(
            "SELECT partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at
             FROM entries WHERE partition_key = ? AND receiver = ? AND message_id > ?
             ORDER BY message_id LIMIT ?",
        )?;
        let began = Instant::now();
        for _ in 0..each {
            for (account, _) in &self.users {
                let cursor = ROWS - MISSED;
                let question = params![partition_key(account.uid), account.uid, cursor as i64, MISSED as i64];
                let rows = select.query_map(question, |row| {
                    let numbers: (u32, i64, u8) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    let texts: (String, String, String) = (row.get(0)?, row.get(4)?, row.get(7)?);
                    let rest: (u32, Option<[u8; 16]>, i64) = (row.get(5)?, row.get(6)?, row.get(8)?);
                    Ok((numbers, texts, rest))
                })?;
                let rows = rows.collect::<std::result::Result<Vec<_>, _>>()?;
                if rows.len() != MISSED {
                    return Err(Failure::new(format!("the bare statement found {} rows", rows.len())));
                }
                std::hint::black_box(rows);
            }
        }
        Ok((each * DEVICES) as f64 / began.elapsed().as_secs_f64())
    }
}

/// The same rows in a database of the loop's own.
fn fill(folder: &Path, users: &[(Account, u64)]) -> Result<Connection> {
    let message = |uid: u32| Message { sender: uid, receivers: vec![uid], group: None };
    let messages: Vec<Message> =
        users.iter().flat_map(|(account, _)| (0..ROWS).map(|_| message(account.uid))).collect();
    BareSqlite::open(folder)?.store(&messages, 1_000)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join("bare.db"), flags)?;
    connection.execute_batch("PRAGMA cache_size = -524288; PRAGMA mmap_size = 1073741824;")?;
    Ok(connection)
}

/// That an answer holds the missed rows, without the price of reading them all.
fn count_rows(answer: &str) -> Result<()> {
    let rows = answer.matches("\"message_id\":").count();
    if rows == MISSED { Ok(()) } else { Err(Failure::new(format!("{rows} rows came: {answer:.200}"))) }
}

/// The question for the rows after `cursor`.
fn question(address: &str, account: &Account, cursor: u64) -> String {
    format!(
        "GET /api/v1/range?start={}&end=INF_MAX&limit={MISSED}&direction=forward HTTP/1.1\r\n\
         Host: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
        cursor + 1,
        account.token
    )
}
