//! `table-put`: PutRow with the placeholder over the real server's listener, against a bare server that parses and signs the same bytes.

use tidemark_client::Account;

use super::{Bodies, TableWorld, rate};
use crate::bench::baseline::process::BareProcess;
use crate::bench::baseline::table::http::credentials;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::send::deliver;
use crate::bench::{Context, peak_memory, tables};
use crate::{Result, users};

/// Bytes of the text of a row, as a message of `send` has.
const BODY_BYTES: usize = 200;
/// Values of the first key column.
const KEYS: usize = 10_000;
/// Clients, and how many rows each puts in a run.
const CLIENTS: [(usize, usize); 2] = [(1, 10_000), (64, 4_000)];
/// Senders of messages, each with one in flight, and how many each sends in a run.
const SENDERS: (usize, usize) = (64, 1_000);

pub(in crate::bench::scenario) struct TablePut {
    world: TableWorld,
    accounts: Vec<Account>,
    bare: BareProcess,
    /// The same, with a file that it syncs.
    durable: BareProcess,
}

impl Measured for TablePut {
    const NAME: &'static str = "table-put";
    const ABOUT: &'static str =
        "rows of 200 B with the placeholder, 1 and 64 clients, against a bare signing server";

    async fn prepare(context: &Context) -> Result<Self> {
        let world = TableWorld::new(context, None).await?;
        let accounts = users::installed(&context.binary, world.data.path(), "put", SENDERS.0 * 2).await?;
        let bare = BareProcess::start(&["table"]).await?;
        let file = world.data.path().join("appended");
        let durable = BareProcess::start(&["table", &file.to_string_lossy()]).await?;
        Ok(TablePut { world, accounts, bare, durable })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let (mut samples, mut last) = (Vec::new(), 0.0);
        let server = self.world.start().await?;
        for (clients, each) in CLIENTS {
            let each = context.scaled(each);
            let bare = rate(self.bare.address(), &credentials(), "PutRow", puts(clients), each).await?;
            let before = server.processor_seconds()?;
            let ours =
                rate(&self.world.address, &self.world.credentials, "PutRow", puts(clients), each).await?;
            let seconds = server.processor_seconds()? - before;
            let shape = format!("clients: {clients}");
            let sample = Sample::new(shape.clone(), ours, "rows/s").against("bare hyper server", bare);
            samples.push(match clients {
                1 => sample,
                _ => sample.target(Target::RatioAtLeast(0.5)),
            });
            let total = (clients * each) as f64;
            samples.push(Sample::new(
                format!("{shape}, processor of the server"),
                seconds / total * 1e6,
                "µs",
            ));
            let (durable, puts) = (self.durable.address(), puts(clients));
            let least = rate(durable, &credentials(), "PutRow", puts, each).await?;
            samples.push(
                Sample::new(format!("{shape}, rows that are durable"), ours, "rows/s")
                    .against("bare hyper server that syncs a file", least),
            );
            samples.push(
                Sample::new(format!("{shape}, bare hyper server that syncs a file"), least, "rows/s")
                    .against("bare hyper server", bare),
            );
            last = ours;
        }
        let (senders, each) = SENDERS;
        let sent = deliver(&server, &self.accounts, 1, context.scaled(each)).await?;
        samples.push(
            Sample::new("clients: 64, beside messages", last, "rows/s")
                .against(format!("send, {senders} × 1 in flight"), sent),
        );
        samples.push(peak_memory("peak server memory", &server)?);
        server.stop().await?;
        Ok(samples)
    }
}

/// The bodies of PutRow for so many clients, each with its share of the values of the first key column.
fn puts(clients: usize) -> Bodies {
    let own = |client: usize| {
        let share = (client..KEYS).step_by(clients);
        share.map(|key| tables::put(&tables::first(key), BODY_BYTES)).collect()
    };
    (0..clients).map(own).collect()
}
