//! `download`: a file from the server to those who may read it, against a bare server that reads and sends it.

use tempfile::TempDir;
use tidemark_client::{Account, Draft, Recipient};

use super::super::Measured;
use super::{AT_A_TIME, BYTES, FILES, memory, rate, together};
use crate::bench::Context;
use crate::bench::baseline::process::BareProcess;
use crate::bench::report::{Sample, Target};
use crate::connection::client_id;
use crate::http::KeptAlive;
use crate::server::Server;
use crate::{Failure, Result, users};

/// The name of the file at the bare server.
const FILE: &str = "file";

pub(in crate::bench::scenario) struct Download {
    reader: Account,
    /// Where it is.
    path: String,
    data: TempDir,
    bare: BareProcess,
    _read: TempDir,
}

impl Measured for Download {
    const NAME: &'static str = "download";
    const ABOUT: &'static str =
        "a file of 100 MB, to 1 and 16 at a time, against a bare server that reads and sends";

    async fn prepare(context: &Context) -> Result<Self> {
        let (data, read) = (context.fresh()?, context.fresh()?);
        let mut accounts = users::installed(&context.binary, data.path(), "download", 2).await?;
        let (Some(other), Some(reader)) = (accounts.pop(), accounts.pop()) else {
            return Err(Failure::new("two accounts were asked for"));
        };
        let bytes = vec![1; context.scaled(BYTES)];
        let server = Server::start(&context.binary, data.path()).await?;
        let http = server.http()?.with_token(&reader.token);
        let file = http.upload("tide", &bytes).await?;
        let draft = Draft::text_as(client_id(), Recipient::User(other.uid), "").with_files(&[file]);
        let sent = http.send(&draft).await?;
        server.stop().await?;
        std::fs::write(read.path().join(FILE), &bytes)?;
        let bare = BareProcess::start(&["files", &read.path().to_string_lossy()]).await?;
        let path = format!("/files/{}/{}", sent.message_id, file.simple());
        Ok(Download { reader, path, data, bare, _read: read })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for at_a_time in AT_A_TIME {
            let shape = format!("at a time: {at_a_time}");
            let server = Server::start(&context.binary, self.data.path()).await?;
            let before = server.memory()?;
            let head = format!("host: {}\r\nauthorization: Bearer {}\r\n", server.host(), self.reader.token);
            let ours = read(context, server.host(), &self.path, &head, at_a_time).await?;
            let memory = memory(&shape, &server, before)?;
            server.stop().await?;
            let address = self.bare.address();
            let head = format!("host: {address}\r\n");
            let bare = read(context, address, &format!("/{FILE}"), &head, at_a_time).await?;
            samples.push(
                Sample::new(shape, ours, "MB/s")
                    .against("bare axum server that reads and sends", bare)
                    .target(Target::RatioAtLeast(0.7)),
            );
            samples.push(memory);
        }
        Ok(samples)
    }
}

/// Megabytes a second that so many clients at a time get from this path.
async fn read(context: &Context, host: &str, path: &str, head: &str, at_a_time: usize) -> Result<f64> {
    let request = format!("GET {path} HTTP/1.1\r\n{head}\r\n");
    let mut clients = Vec::new();
    for _ in 0..at_a_time {
        clients.push(KeptAlive::open(host).await?);
    }
    let (wanted, mut all) = (context.scaled(BYTES), 0.0);
    for _ in 0..FILES / at_a_time {
        let one = |mut client: KeptAlive| {
            let request = request.clone();
            async move {
                match client.count(request.as_bytes()).await? {
                    come if come == wanted => Ok(client),
                    come => Err(Failure::new(format!("{come} bytes of {wanted} came"))),
                }
            }
        };
        let (seconds, again) = together(clients, one).await?;
        (all, clients) = (all + seconds, again);
    }
    Ok(rate(context, all))
}
