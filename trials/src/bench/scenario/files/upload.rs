//! `upload`: files to the server by tus, against a bare server that hashes and writes them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tempfile::TempDir;
use tidemark_client::Account;

use super::super::Measured;
use super::client::Uploader;
use super::{AT_A_TIME, BYTES, FILES, memory, rate, together};
use crate::bench::Context;
use crate::bench::baseline::process::BareProcess;
use crate::bench::report::{Sample, Target};
use crate::server::Server;
use crate::{Result, users};

pub(in crate::bench::scenario) struct Upload {
    accounts: Vec<Account>,
    data: TempDir,
    bare: BareProcess,
    /// Where the bare server writes.
    written: TempDir,
    bytes: Arc<[u8]>,
}

impl Measured for Upload {
    const NAME: &'static str = "upload";
    const ABOUT: &'static str =
        "files of 100 MB by tus, 1 and 16 at a time, against a bare server that hashes and writes";

    async fn prepare(context: &Context) -> Result<Self> {
        let (data, written) = (context.fresh()?, context.fresh()?);
        let most = AT_A_TIME.into_iter().max().unwrap_or_default();
        let accounts = users::installed(&context.binary, data.path(), "upload", most).await?;
        let bare = BareProcess::start(&["files", &written.path().to_string_lossy()]).await?;
        Ok(Upload { accounts, data, bare, written, bytes: vec![1; context.scaled(BYTES)].into() })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for at_a_time in AT_A_TIME {
            let shape = format!("at a time: {at_a_time}");
            let server = Server::start(&context.binary, self.data.path()).await?;
            let mut clients = Vec::new();
            for account in &self.accounts[..at_a_time] {
                clients.push(Uploader::of(&server, account).await?);
            }
            let before = server.memory()?;
            let ours = rate(context, self.seconds(clients).await?);
            let memory = memory(&shape, &server, before)?;
            server.stop().await?;
            let written = rate(context, self.seconds(self.bare("written", at_a_time).await?).await?);
            let synced = rate(context, self.seconds(self.bare("synced", at_a_time).await?).await?);
            samples.push(
                Sample::new(shape.clone(), ours, "MB/s")
                    .against("bare axum server that hashes and writes", written)
                    .target(Target::RatioAtLeast(0.7)),
            );
            samples.push(
                Sample::new(format!("{shape}, on the disk"), ours, "MB/s")
                    .against("bare axum server that syncs the file, too", synced),
            );
            samples.push(memory);
        }
        Ok(samples)
    }
}

impl Upload {
    /// So many clients of the bare server.
    async fn bare(&self, how: &str, count: usize) -> Result<Vec<Uploader>> {
        let mut clients = Vec::new();
        for n in 0..count {
            let file = self.written.path().join(n.to_string());
            clients.push(Uploader::bare(&self.bare, format!("/{how}/{n}"), file).await?);
        }
        Ok(clients)
    }

    /// Seconds in which these clients upload all files of a run. They are removed between the rounds, which is not counted.
    async fn seconds(&self, mut clients: Vec<Uploader>) -> Result<f64> {
        let mut all = 0.0;
        for _ in 0..FILES / clients.len() {
            let upload = |mut client: Uploader| {
                let bytes = Arc::clone(&self.bytes);
                async move { client.upload(&bytes).await.map(|()| client) }
            };
            let (seconds, uploaded) = together(clients, upload).await?;
            all += seconds;
            let remove = async |mut client: Uploader| client.remove().await.map(|()| client);
            clients = try_join_all(uploaded.into_iter().map(remove)).await?;
        }
        Ok(all)
    }
}
