//! `send-files`: the time to sent while others upload files and pictures, beside sends alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use tempfile::TempDir;
use tidemark_client::Account;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::super::Measured;
use super::super::retention::times;
use super::BYTES;
use super::client::Uploader;
use super::picture::jpeg;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Senders and their receivers.
const PEOPLE: usize = 40;
/// Messages of each sender.
const EACH: usize = 5_000;
/// Clients that upload files, and as many that upload pictures, one after the other.
const UPLOADERS: usize = 8;
/// The pixels of a picture each way: 24 million.
const PIXELS: (u32, usize) = (6_000, 4_000);

pub(in crate::bench::scenario) struct SendFiles {
    server: Server,
    accounts: Vec<Account>,
    file: Arc<[u8]>,
    picture: Arc<[u8]>,
    _data: TempDir,
}

/// Uploads that ended meanwhile.
#[derive(Default)]
struct Meanwhile {
    files: AtomicUsize,
    pictures: AtomicUsize,
    /// Tells of each.
    one_more: Notify,
    is_over: AtomicBool,
}

impl Measured for SendFiles {
    const NAME: &'static str = "send-files";
    const ABOUT: &'static str = "20 senders × 16 in flight beside eight uploads and eight pictures of 24 megapixels, against `send` alone";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let count = PEOPLE + 2 * UPLOADERS;
        let accounts = users::installed(&context.binary, data.path(), "file", count).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let height = u32::try_from(context.scaled(PIXELS.1)).unwrap_or(u32::MAX);
        let picture = jpeg(PIXELS.0, height)?.into();
        let file = vec![1; context.scaled(BYTES)].into();
        Ok(SendFiles { server, accounts, file, picture, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let each = context.scaled(EACH);
        let (people, uploaders) = self.accounts.split_at(PEOPLE);
        let alone = times(&self.server, people, each).await?;
        let (meanwhile, mut uploading) = (Arc::new(Meanwhile::default()), JoinSet::new());
        for (n, account) in uploaders.iter().enumerate() {
            let uploader = Uploader::of(&self.server, account).await?;
            let is_picture = n < UPLOADERS;
            let bytes = Arc::clone(if is_picture { &self.picture } else { &self.file });
            uploading.spawn(upload(uploader, bytes, is_picture, Arc::clone(&meanwhile)));
        }
        let measuring = async {
            // The first of each shows that all are under way.
            while meanwhile.so_far().contains(&0) {
                meanwhile.one_more.notified().await;
            }
            let (before, began) = (meanwhile.so_far(), Instant::now());
            let times = times(&self.server, people, each).await?;
            let (after, seconds) = (meanwhile.so_far(), began.elapsed().as_secs_f64());
            let [files, pictures] = [0, 1].map(|kind| (after[kind] - before[kind]) as f64 / seconds);
            Ok::<_, Failure>((times, files, pictures))
        };
        let (beside, files, pictures) = tokio::select! {
            measured = measuring => measured?,
            Some(ended) = uploading.join_next() => {
                ended??;
                return Err(Failure::new("an uploader has ended too early"));
            }
        };
        meanwhile.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = uploading.join_next().await {
            ended??;
        }
        let of = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1e6;
        let sample = |metric, quantile| {
            Sample::new(metric, of(&beside, quantile), "ms").against("send alone", of(&alone, quantile))
        };
        Ok(vec![
            sample("to sent, p50", 0.5),
            sample("to sent, p99", 0.99).target(Target::RatioAtMost(2.0)),
            sample("to sent, the longest", 1.0),
            Sample::new("files meanwhile", files * self.file.len() as f64 / 1e6, "MB/s"),
            Sample::new("pictures meanwhile", pictures, "pictures/s"),
        ])
    }
}

impl Meanwhile {
    /// Files and pictures.
    fn so_far(&self) -> [usize; 2] {
        [&self.files, &self.pictures].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Uploads the same again and again, and removes it each time, until it is over.
async fn upload(
    mut uploader: Uploader,
    bytes: Arc<[u8]>,
    is_picture: bool,
    meanwhile: Arc<Meanwhile>,
) -> Result<()> {
    while !meanwhile.is_over.load(Ordering::Relaxed) {
        uploader.upload(&bytes).await?;
        uploader.remove().await?;
        let count = if is_picture { &meanwhile.pictures } else { &meanwhile.files };
        count.fetch_add(1, Ordering::Relaxed);
        meanwhile.one_more.notify_one();
    }
    Ok(())
}
