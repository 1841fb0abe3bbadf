//! `send-few`: messages that are alone in their batch, or almost: what one costs that shares its way with few others.

use std::path::Path;

use tempfile::TempDir;
use tidemark_client::Account;

use super::Measured;
use super::postgres::{DatabaseWork, database, within_patience};
use super::send::deliver;
use crate::bench::Context;
use crate::bench::baseline::disk;
use crate::bench::baseline::rows::{BareRows, StoreWay};
use crate::bench::report::{Sample, Target};
use crate::server::Server;
use crate::servers::Servers;
use crate::{Result, cpu, users};

/// Senders, the messages that each sends in a run, one in flight at a time, and what one may cost, in times of [`MANY`].
const FEW: [(usize, usize, f64); 2] = [(1, 10_000, 4.0), (20, 2_000, 2.0)];
/// Senders, messages of each in flight, and messages that each sends: what they cost is the measure.
const MANY: (usize, usize, usize) = (20, 16, 5_000);
/// Of the messages, so many are sent over PostgreSQL.
const PART: usize = 3;

pub(super) struct SendFew {
    accounts: Vec<Account>,
    data: TempDir,
    servers: Servers,
    accounts_there: Vec<Account>,
    bare: BareRows,
    _logs: TempDir,
}

impl Measured for SendFew {
    const NAME: &'static str = "send-few";
    const ABOUT: &'static str = "one-to-one messages of 200 B that are alone or almost: 1 sender × 1 in flight, 20 × 1; SQLite, PostgreSQL";

    async fn prepare(context: &Context) -> Result<Self> {
        let (data, logs) = (context.fresh()?, context.fresh()?);
        let accounts = users::installed(&context.binary, data.path(), "few", MANY.0 * 2).await?;
        let servers = Servers::start_over(database().await?, &context.binary, logs.path(), 1, vec![]).await?;
        let accounts_there = users::sign_up(&servers.server(0)?.http()?, "few", MANY.0 * 2).await?;
        let bare = BareRows::open(servers.database().new_database().await).await?;
        Ok(SendFew { accounts, data, servers, accounts_there, bare, _logs: logs })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = self.on_sqlite(context).await?;
        for (senders, each, _) in FEW {
            samples.extend(self.on_postgres(senders, context.scaled(each / PART)).await?);
        }
        Ok(samples)
    }
}

/// A rate, and the processor's time for one.
struct Cost {
    /// In a second.
    rate: f64,
    micros: f64,
}

impl SendFew {
    async fn on_sqlite(&self, context: &Context) -> Result<Vec<Sample>> {
        let (senders, in_flight, each) = MANY;
        let server = Server::start(&context.binary, self.data.path()).await?;
        let many = sent(&server, &self.accounts[..senders * 2], in_flight, context.scaled(each)).await?;
        let mut samples = Vec::new();
        for (senders, each, most) in FEW {
            let each = context.scaled(each);
            let few = sent(&server, &self.accounts[..senders * 2], 1, each).await?;
            let bare = synced(self.data.path(), senders * each)?;
            let shape = format!("SQLite: {senders} × 1 in flight");
            samples.push(
                Sample::new(format!("{shape}, processor a message"), few.micros, "µs")
                    .against(format!("{} × {in_flight} in flight", MANY.0), many.micros)
                    .target(Target::RatioAtMost(most)),
            );
            samples.push(
                Sample::new(format!("{shape}, processor of the server"), few.micros, "µs")
                    .against("append + fdatasync", bare.micros),
            );
            samples.push(Sample::new(shape, few.rate, "messages/s").against("append + fdatasync", bare.rate));
        }
        server.stop().await?;
        Ok(samples)
    }

    async fn on_postgres(&self, senders: usize, each: usize) -> Result<Vec<Sample>> {
        let accounts = &self.accounts_there[..senders * 2];
        let (server, database) = (self.servers.server(0)?, self.servers.database());
        let before = DatabaseWork::of(database).await?;
        let few = within_patience(sent(server, accounts, 1, each)).await?;
        let done = DatabaseWork::of(database).await?.since(before);
        let pairs: Vec<(u32, u32)> =
            accounts.chunks_exact(2).map(|pair| (pair[0].uid, pair[1].uid)).collect();
        let way = StoreWay { connections: senders, batch: 1 };
        let before = DatabaseWork::of(database).await?;
        let bare = within_patience(self.bare.store(&pairs, each, way)).await?;
        let theirs = DatabaseWork::of(database).await?.since(before);

        let (shape, total) = (format!("PostgreSQL: {senders} × 1 in flight"), (senders * each) as f64);
        let rate =
            Sample::new(shape.clone(), few.rate, "messages/s").against(format!("bare inserts, {way}"), bare);
        Ok(vec![
            if senders == 1 { rate.target(Target::RatioAtLeast(0.6)) } else { rate },
            Sample::new(format!("{shape}, processor of PostgreSQL"), done.seconds / total * 1e6, "µs")
                .against("bare inserts", theirs.seconds / total * 1e6),
            Sample::new(format!("{shape}, processor of the server"), few.micros, "µs"),
        ])
    }
}

/// The cost of messages between these pairs.
async fn sent(server: &Server, accounts: &[Account], in_flight: usize, each: usize) -> Result<Cost> {
    let before = server.processor_seconds()?;
    let rate = deliver(server, accounts, in_flight, each).await?;
    let seconds = server.processor_seconds()? - before;
    Ok(Cost { rate, micros: seconds / (accounts.len() / 2 * each) as f64 * 1e6 })
}

/// The cost of so many blocks that are appended and synced, one after the other.
fn synced(folder: &Path, count: usize) -> Result<Cost> {
    let own = || Ok::<f64, crate::Failure>(cpu::of_process(std::process::id())?.own);
    let before = own()?;
    let times = disk::append_and_sync(folder, count, 4_096)?;
    let seconds = own()? - before;
    Ok(Cost { rate: 1e9 / times.mean(), micros: seconds / count as f64 * 1e6 })
}
