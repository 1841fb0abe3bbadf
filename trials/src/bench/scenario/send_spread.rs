//! `send-spread`: messages to a million receivers at random, over ten million rows, against those to a few over the same files.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};
use seqsvr_core::page_sums;
use tidemark_client::Account;
use tokio::process::Command;

use super::Measured;
use super::send::{deliver, keep_in_flight};
use crate::bench::baseline::sqlite::partition_key;
use crate::bench::report::{Sample, Target};
use crate::bench::{self, Context, peak_memory};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::failure::Failure;
use crate::server::{Server, written_bytes};
use crate::{Result, users};

const SENDERS: usize = 20;
const IN_FLIGHT: usize = 16;
/// Messages of each sender in a run.
const EACH: usize = 15_000;
const RECEIVERS: usize = 1_000_000;
/// The uid of the first of them, beyond those of users who sign up.
const FIRST: u32 = 1_000_000;
/// Rows that each has before.
const ROWS: i64 = 10;

pub(super) struct SendSpread {
    accounts: Vec<Account>,
    receivers: u32,
    data: tempfile::TempDir,
}

/// A part of a run.
struct Part {
    /// Messages a second, until the last is acknowledged and until all is flushed.
    sent: f64,
    settled: f64,
    /// Bytes written to the disk for each message, with those of the flush.
    bytes: f64,
    memory: Sample,
}

impl Measured for SendSpread {
    const NAME: &'static str = "send-spread";
    const ABOUT: &'static str =
        "messages to a million receivers at random over ten million rows, against `send` on the same files";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "spread", SENDERS * 2).await?;
        let receivers = u32::try_from(context.scaled(RECEIVERS))?;
        fill(data.path(), receivers)?;
        // The sequences know nothing of these rows: this leads them past all of them.
        let restored =
            Command::new(&context.binary).arg("restored").arg("--data-dir").arg(data.path()).output().await?;
        if !restored.status.success() {
            return Err(Failure::new(String::from_utf8_lossy(&restored.stderr)));
        }
        Ok(SendSpread { accounts, receivers, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let few = self.part(context, "40 receivers", each, false).await?;
        let spread = self.part(context, "a million receivers", each, true).await?;
        Ok(vec![
            Sample::new("a million receivers at random", spread.sent, "messages/s")
                .against("40 receivers", few.sent)
                .target(Target::RatioAtLeast(0.7)),
            Sample::new("a million receivers at random, until all is flushed", spread.settled, "messages/s")
                .against("40 receivers", few.settled)
                .target(Target::RatioAtLeast(0.6)),
            Sample::new("a million receivers at random, written to the disk a message", spread.bytes, "KB")
                .against("40 receivers", few.bytes),
            few.memory,
            spread.memory,
        ])
    }
}

impl SendSpread {
    async fn part(&self, context: &Context, name: &str, each: usize, is_spread: bool) -> Result<Part> {
        let before = written_bytes()?;
        let server = Server::start(&context.binary, self.data.path()).await?;
        let sent = if is_spread {
            self.spread(&server, each).await?
        } else {
            deliver(&server, &self.accounts, IN_FLIGHT, each).await?
        };
        let memory = peak_memory(format!("{name}, peak server memory"), &server)?;
        let total = (SENDERS * each) as f64;
        let stopping = Instant::now();
        server.stop().await?;
        let settled = total / (total / sent + stopping.elapsed().as_secs_f64());
        Ok(Part { sent, settled, bytes: (written_bytes()? - before) as f64 / total / 1_000.0, memory })
    }

    /// Acknowledged messages a second, each to a receiver at random.
    async fn spread(&self, server: &Server, each: usize) -> Result<f64> {
        let url = server.http()?.socket_url();
        let mut tasks = Vec::new();
        for sender in self.accounts.iter().step_by(2) {
            let connection = ClientConnection::open(&url, &sender.token).await?;
            tasks.push(send(connection, self.receivers, each));
        }
        bench::rate(SENDERS * each, tasks).await
    }
}

async fn send(connection: ClientConnection, receivers: u32, each: usize) -> Result<()> {
    let text = "x".repeat(200);
    let frame = || {
        let to = FIRST + rand::random_range(0..receivers);
        send_frame(client_id(), &format!(r#"{{"user":{to}}}"#), &text)
    };
    keep_in_flight(connection, IN_FLIGHT, each, frame).await
}

/// Accounts that nobody can log in to, with rows, as a flush would leave them.
fn fill(folder: &Path, receivers: u32) -> Result<()> {
    page_sums::begin();
    let mut connection = Connection::open(folder.join("tidemark.db"))?;
    connection.execute_batch("PRAGMA cache_size = -524288")?;
    let mut uids: Vec<(String, u32)> =
        (FIRST..FIRST + receivers).map(|uid| (partition_key(uid), uid)).collect();
    let accounts = connection.transaction()?;
    {
        let mut insert = accounts.prepare(
            "INSERT INTO accounts (uid, name, name_key, password_hash, created_at) VALUES (?1, ?2, ?2, '', 0)",
        )?;
        for (_, uid) in &uids {
            insert.execute(params![uid, format!("receiver-{uid:09}")])?;
        }
    }
    accounts.commit()?;
    uids.sort_unstable();
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(200));
    for uids in uids.chunks(10_000) {
        let rows = connection.transaction()?;
        {
            let mut entry = rows.prepare("INSERT INTO entries VALUES (?, ?, ?, 1, ?, ?, ?, ?, 0)")?;
            let mut line = rows.prepare("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, ?, 0)")?;
            let mut head =
                rows.prepare("INSERT INTO heads (partition_key, receiver, last_id) VALUES (?, ?, ?)")?;
            for (key, uid) in uids {
                for number in 1..=ROWS {
                    let sender = FIRST + rand::random_range(0..receivers);
                    let (conversation, client_id) = (format!("u:{sender}"), rand::random::<[u8; 16]>());
                    entry.execute(params![key, uid, number, conversation, sender, client_id, body])?;
                    line.execute(params![key, uid, conversation, number])?;
                }
                head.execute(params![key, uid, ROWS])?;
            }
        }
        rows.commit()?;
    }
    Ok(())
}
