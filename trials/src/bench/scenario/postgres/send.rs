//! `send-postgres`: the shapes of `send` over PostgreSQL, against a bare loop of the same rows on the same database server.

use tempfile::TempDir;
use tidemark_client::Account;

use super::{DatabaseWork, database, within_patience};
use crate::bench::Context;
use crate::bench::baseline::rows::BareRows;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::send::{SHAPES, deliver};
use crate::servers::Servers;
use crate::{Result, users};

/// Of the messages of a shape, so many are sent here: rows are stored at about half the pace of SQLite.
const PART: usize = 3;
/// The ways of the bare loop are tried with this part of the messages.
const TRIED: usize = 10;

pub(in crate::bench::scenario) struct SendPostgres {
    servers: Servers,
    accounts: Vec<Account>,
    bare: BareRows,
    _logs: TempDir,
}

impl Measured for SendPostgres {
    const NAME: &'static str = "send-postgres";
    const ABOUT: &'static str = "the shapes of send over PostgreSQL, against bare inserts of the same rows";

    async fn prepare(context: &Context) -> Result<Self> {
        let logs = context.fresh()?;
        let servers = Servers::start_over(database().await?, &context.binary, logs.path(), 1, vec![]).await?;
        let most = SHAPES.iter().map(|(senders, ..)| senders * 2).max().unwrap_or_default();
        let accounts = users::sign_up(&servers.server(0)?.http()?, "send", most).await?;
        let bare = BareRows::open(servers.database().new_database().await).await?;
        Ok(SendPostgres { servers, accounts, bare, _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (senders, in_flight, each) in SHAPES {
            let each = context.scaled(each / PART);
            let shape = format!("{senders} × {in_flight} in flight");
            samples.extend(self.shape(shape, senders, in_flight, each).await?);
        }
        Ok(samples)
    }
}

impl SendPostgres {
    async fn shape(
        &mut self,
        shape: String,
        senders: usize,
        in_flight: usize,
        each: usize,
    ) -> Result<Vec<Sample>> {
        let accounts = &self.accounts[..senders * 2];
        // The work that a server does at its end is counted once it has ended.
        self.servers.stop(0).await?;
        let before = DatabaseWork::of(self.servers.database()).await?;
        self.servers.run(0).await?;
        let server = self.servers.server(0)?;
        let ours = within_patience(deliver(server, accounts, in_flight, each)).await?;
        let seconds = server.processor_seconds()?;
        self.servers.stop(0).await?;
        let done = DatabaseWork::of(self.servers.database()).await?.since(before);
        let pairs: Vec<(u32, u32)> =
            accounts.chunks_exact(2).map(|pair| (pair[0].uid, pair[1].uid)).collect();
        let tried = ((each / TRIED).max(1), each);
        let best = self.bare.best(&pairs, senders * in_flight, tried);
        let (way, bare) = within_patience(best).await?;
        let before = DatabaseWork::of(self.servers.database()).await?;
        within_patience(self.bare.store(&pairs, each, way)).await?;
        let theirs = DatabaseWork::of(self.servers.database()).await?.since(before);
        let (any, largest) = within_patience(self.bare.best(&pairs, usize::MAX, tried)).await?;
        self.servers.run(0).await?;

        let total = (senders * each) as f64;
        let a_message = |what: &str, ours: f64, theirs: f64, unit| {
            Sample::new(format!("{shape}, {what}"), ours / total, unit)
                .against("bare inserts", theirs / total)
        };
        Ok(vec![
            Sample::new(shape.clone(), ours, "messages/s")
                .against(format!("bare inserts, {way}"), bare)
                .target(Target::RatioAtLeast(0.5)),
            Sample::new(format!("{shape}, of batches of any size"), ours, "messages/s")
                .against(format!("bare inserts, {any}"), largest),
            a_message("round trips a message", done.statements, theirs.statements, ""),
            a_message("flushes a message", done.flushes, theirs.flushes, ""),
            a_message("log of a message", done.log_bytes / 1024.0, theirs.log_bytes / 1024.0, "KiB"),
            a_message("processor of PostgreSQL", done.seconds * 1e6, theirs.seconds * 1e6, "µs"),
            Sample::new(format!("{shape}, processor of the server"), seconds / total * 1e6, "µs"),
        ])
    }
}
