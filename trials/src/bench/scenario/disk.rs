//! `disk`: what a one-to-one message takes on the disk, with its two copies, the record of its key, and that it was read.

use std::path::Path;

use futures_util::FutureExt;
use serde_json::Value;
use tempfile::TempDir;
use tidemark_client::Account;

use super::Measured;
use crate::bench::report::Sample;
use crate::bench::{self, Context};
use crate::connection::{ClientConnection, client_id, heartbeat, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Pairs of people, and the messages that the first of each pair sends, one after the other.
const SHAPE: (usize, usize) = (40, 2_500);
/// Characters of a message.
const TEXT: usize = 100;

pub(super) struct Disk {
    data: TempDir,
    accounts: Vec<Account>,
}

impl Measured for Disk {
    const NAME: &'static str = "disk";
    const ABOUT: &'static str =
        "bytes on the disk of a one-to-one message of 100 B that was delivered and read, on SQLite";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "disk", 2 * SHAPE.0).await?;
        Ok(Disk { data, accounts })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let (pairs, each) = (SHAPE.0, context.scaled(SHAPE.1));
        let before = database_bytes(self.data.path())?;
        let server = Server::start(&context.binary, self.data.path()).await?;
        let url = server.http()?.socket_url();
        let mut talks = Vec::with_capacity(2 * pairs);
        for pair in self.accounts.chunks_exact(2) {
            let writer = ClientConnection::open(&url, &pair[0].token).await?;
            let mut reader = ClientConnection::open(&url, &pair[1].token).await?;
            let seq = reader.begin_at(0).await?;
            talks.push(write(writer, pair[1].uid, each).boxed());
            talks.push(read(reader, pair[0].uid, seq, each).boxed());
        }
        bench::rate(pairs * each, talks).await?;
        // At its end all is in the tables.
        server.stop().await?;
        let taken = database_bytes(self.data.path())? - before;
        Ok(vec![Sample::new("a message of 100 B, delivered and read", taken / (pairs * each) as f64, "B")])
    }
}

async fn write(mut connection: ClientConnection, to: u32, each: usize) -> Result<()> {
    let (to, text) = (format!(r#"{{"user":{to}}}"#), "x".repeat(TEXT));
    for _ in 0..each {
        connection.say(send_frame(client_id(), &to, &text)).await?;
        connection.expect("sent").await?;
    }
    Ok(())
}

/// Follows an inbox, and says of each message from `other` that it was read.
async fn read(mut connection: ClientConnection, other: u32, mut cursor: u64, each: usize) -> Result<()> {
    let mut messages = 0;
    while messages < each {
        let text = connection.hear().await?;
        let heard: Value = serde_json::from_str(&text)?;
        let Some(entries) = heard["entries"].as_array() else {
            if heard["type"] == "error" {
                return Err(Failure::new(format!("a reader heard {text}")));
            }
            continue;
        };
        cursor = heard["synced"].as_u64().unwrap_or(cursor);
        let come: Vec<&Value> = entries.iter().filter(|entry| entry["kind"] == "message").collect();
        if let Some(last) = come.last() {
            messages += come.len();
            let row = format!(r#""conversation":"u:{other}","message_id":{}"#, last["message_id"]);
            connection.feed(format!(r#"{{"type":"read",{row}}}"#)).await?;
            connection.feed(format!(r#"{{"type":"seen",{row},"state":"read"}}"#)).await?;
        }
        connection.feed(heartbeat(cursor)).await?;
        connection.flush().await?;
    }
    Ok(())
}

/// The size of the main database; the journal beside it is used again and again.
fn database_bytes(data: &Path) -> Result<f64> {
    Ok(std::fs::metadata(data.join("tidemark.db"))?.len() as f64)
}
