//! `upload` and `download`: how fast files go to the server and back, and what memory that takes. `send-files`: what uploads and pictures
//! cost those who send meanwhile.

mod client;
mod download;
mod picture;
mod send;
mod upload;

pub(super) use download::Download;
pub(super) use picture::jpeg;
pub(super) use send::SendFiles;
pub(super) use upload::Upload;

use std::time::Instant;

use futures_util::future::try_join_all;

use crate::Result;
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, mib};
use crate::server::Server;

/// Bytes of a file.
const BYTES: usize = 100_000_000;
/// How many files are on their way at a time.
const AT_A_TIME: [usize; 2] = [1, 16];
/// How many go one way or the other in a run, however many at a time.
const FILES: usize = 16;
/// MiB by which the memory of the server may grow meanwhile.
const MORE_MEMORY: f64 = 32.0;

/// Does something with all clients at the same time. Answers the seconds that it took, and the clients.
async fn together<C, F>(clients: Vec<C>, one: impl Fn(C) -> F) -> Result<(f64, Vec<C>)>
where
    C: Send + 'static,
    F: Future<Output = Result<C>> + Send + 'static,
{
    let began = Instant::now();
    let tasks = clients.into_iter().map(|client| tokio::spawn(one(client)));
    let clients = try_join_all(tasks).await?.into_iter().collect::<Result<_>>()?;
    Ok((began.elapsed().as_secs_f64(), clients))
}

/// Megabytes of a second in which all files of a run went their way in so many seconds.
fn rate(context: &Context, seconds: f64) -> f64 {
    (FILES * context.scaled(BYTES)) as f64 / 1e6 / seconds
}

/// The most memory that a server ever had, against what it had before there were files.
fn memory(shape: &str, server: &Server, before: u64) -> Result<Sample> {
    let peak = mib(server.peak_memory()?);
    Ok(Sample::new(format!("{shape}, peak server memory"), peak, "MiB")
        .against("before", mib(before))
        .target(Target::MoreByAtMost(MORE_MEMORY)))
}
