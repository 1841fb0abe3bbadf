//! Fills the index: new rows when an inbox has enough of them, and everything that is missing on a walk over all inboxes.
//!
//! It works beside the queues and pauses after each step for some times as long as it took, so it uses a part of one
//! processor. It owns nothing that lasts: how far an inbox is indexed stands in the index. Several servers may work at a
//! time; of two segments of the same rows the index takes one.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::Due;
use super::scan::is_searched;
use crate::domain::search::{TermClass, each_term, fold};
use crate::domain::{Direction, Entry, MessageId, RangeQuery, Uid};
use crate::log_limit::LogLimit;
use crate::store::search::merge;
use crate::store::search::segment::{Builder, DOCUMENTS, Document, Making, NewSegment, SegmentHead, build};
use crate::store::search::{Indexed, Rebuild};
use crate::store::{MessageStore, SearchIndex, StoreError};

/// Inboxes that are looked at together.
const AT_ONCE: usize = 200;

/// Between two walks over all inboxes: they find what nobody told of, such as what a server that was killed had not indexed.
const WALK_EVERY: Duration = Duration::from_secs(3_600);

/// How often it looks whether a rebuild was asked for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Less than this part of a segment's rows are not indexed.
const FEW: usize = 16;

/// How soon it goes on after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// How it works.
#[derive(Clone, Copy, Debug)]
pub struct IndexerOptions {
    /// Rows of a first segment. Fewer are not indexed: searches read them.
    pub rows: usize,
    /// It pauses so many times as long as it worked.
    pub pause: u32,
    /// Whether rows expire.
    pub expires: bool,
}

impl Default for IndexerOptions {
    fn default() -> IndexerOptions {
        IndexerOptions { rows: 1_024, pause: 9, expires: false }
    }
}

/// See the module.
pub struct Indexer {
    /// Where the rows are.
    pub store: Arc<dyn MessageStore>,
    /// Where segments go.
    pub index: Arc<dyn SearchIndex>,
    /// Which inboxes have new rows.
    pub due: Arc<Due>,
    /// Numbers of segments.
    pub new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// How it works.
    pub options: IndexerOptions,
}

impl Indexer {
    /// Keeps the index up to date until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        stopping
            .run_until_cancelled(async { tokio::join!(self.follow(), self.walk_again_and_again()) })
            .await;
    }

    /// Indexes what the queues tell of.
    async fn follow(&self) {
        let log = LogLimit::default();
        loop {
            self.due.changed().await;
            if let Err(error) = self.index_due().await {
                complain(&log, &error);
                sleep(AGAIN).await;
            }
        }
    }

    /// Indexes the inboxes that wait.
    ///
    /// # Errors
    /// Those of the store and the index. What is not done waits again.
    pub async fn index_due(&self) -> Result<(), StoreError> {
        loop {
            let (waiting, damaged) = self.due.take(AT_ONCE);
            for uid in &damaged {
                self.index.renew(*uid).await?;
                self.due.note_lost();
            }
            if waiting.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.index_inboxes(&waiting).await {
                self.due.note(&waiting);
                return Err(error);
            }
        }
    }

    async fn index_inboxes(&self, inboxes: &[(Uid, MessageId)]) -> Result<(), StoreError> {
        let build = build(self.index.rebuild().await?.wanted);
        let uids: Vec<Uid> = inboxes.iter().map(|(uid, _)| *uid).collect();
        let indexed = self.index.indexed(&uids).await?;
        for ((uid, latest), indexed) in inboxes.iter().zip(indexed) {
            self.index_inbox(*uid, *latest, indexed, build).await?;
        }
        Ok(())
    }

    async fn walk_again_and_again(&self) {
        let log = LogLimit::default();
        loop {
            match self.walk().await {
                Ok(()) => {
                    let began = Instant::now();
                    while began.elapsed() < WALK_EVERY && !self.is_walk_wanted(&log).await {}
                }
                Err(error) => {
                    complain(&log, &error);
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// Waits a little, and says whether a rebuild was asked for or something was lost.
    async fn is_walk_wanted(&self, log: &LogLimit) -> bool {
        if timeout(LOOK_EVERY, self.due.lost()).await.is_ok() {
            return true;
        }
        match self.index.rebuild().await {
            Ok(Rebuild { wanted, walked, .. }) => wanted > walked,
            Err(error) => {
                complain(log, &error);
                false
            }
        }
    }

    /// Indexes what is missing in all inboxes, and makes anew what was made before a rebuild was asked for.
    ///
    /// # Errors
    /// Those of the store and the index.
    pub async fn walk(&self) -> Result<(), StoreError> {
        let Rebuild { wanted, walked, .. } = self.index.rebuild().await?;
        let build = build(wanted);
        let mut from = (String::new(), 0);
        loop {
            let began = Instant::now();
            let uids = self.store.inboxes((&from.0, from.1), Direction::Forward, AT_ONCE).await?;
            let Some(last) = uids.last() else { break };
            from = (last.partition_key().as_str().to_owned(), i64::from(last.0) + 1);
            let latest = self.store.latest_ids(&uids).await?;
            let indexed = self.index.indexed(&uids).await?;
            self.pause(began).await;
            for ((uid, latest), indexed) in uids.iter().zip(latest).zip(indexed) {
                self.index_inbox(*uid, latest, indexed, build).await?;
                if self.options.expires && indexed.to > MessageId::ZERO {
                    self.drop_expired(*uid).await?;
                }
            }
            // Partition keys are spread evenly over their range.
            let share = u32::from_str_radix(&from.0, 16).unwrap_or(0) * 10_000 / 0x1_0000;
            self.due.note_walked(share);
            if wanted > walked {
                self.index.note_walk(walked, share).await?;
            }
        }
        self.due.note_walked(10_000);
        if wanted > walked {
            self.index.note_walk(wanted, 10_000).await?;
            info!("the search index is rebuilt");
        }
        Ok(())
    }

    /// Indexes an inbox up to `latest`, but for the last few rows.
    async fn index_inbox(
        &self,
        uid: Uid,
        latest: MessageId,
        mut indexed: Indexed,
        build: u64,
    ) -> Result<(), StoreError> {
        let rows = self.options.rows as u64;
        if indexed.to > MessageId::ZERO && indexed.build < build {
            self.index.forget(uid).await?;
            indexed = Indexed::default();
        }
        while latest.get().saturating_sub(indexed.to.get()) >= rows {
            let began = Instant::now();
            let Some(segment) = self.segment(uid, indexed.to, build).await? else {
                indexed.to = latest;
                break;
            };
            let (to, documents) = (segment.head.indexed().to, segment.head.documents);
            if self.index.replace(uid, &[], Some(segment)).await? {
                self.due.count(documents.into());
                indexed.to = to;
                self.merge(uid).await?;
            } else {
                // Another server indexes it, too.
                let now = self.index.indexed(&[uid]).await?.pop().unwrap_or_default();
                if now.to <= indexed.to {
                    break;
                }
                indexed = now;
            }
            self.pause(began).await;
        }
        self.due.again_at(uid, indexed.to.get() + rows);
        Ok(())
    }

    /// The rows after `to` as a segment; `None`: there are too few. Ids may go far without rows: a restore skips millions of each inbox.
    async fn segment(&self, uid: Uid, to: MessageId, build: u64) -> Result<Option<NewSegment>, StoreError> {
        let page = self.store.range(uid, RangeQuery::after(to, self.options.rows)).await?;
        let Some(last) = page.rows.last().map(|row| row.message_id) else { return Ok(None) };
        if !page.more && page.rows.len() < self.options.rows / FEW {
            return Ok(None);
        }
        let mut rows = self.changed(uid, &page.rows, to).await?;
        rows.extend(page.rows.into_iter().filter(|row| is_searched(&row.content)));
        let making = Making { build, number: self.number(), ids: (to.get() + 1, last.get()), level: 0 };
        let segment =
            spawn_blocking(move || segment_of(&rows, making)).await.map_err(StoreError::unavailable)?;
        Ok(Some(segment))
    }

    /// Messages up to `to` that these rows have changed, as they stand.
    async fn changed(&self, uid: Uid, rows: &[Entry], to: MessageId) -> Result<Vec<Entry>, StoreError> {
        let mut ids = Vec::new();
        for key in rows.iter().filter_map(|row| row.content.changes_message()) {
            ids.extend(self.store.copies(key, &[uid]).await?.into_iter().flatten().filter(|id| *id <= to));
        }
        ids.sort_unstable();
        ids.dedup();
        self.store.entries_of(uid, &ids).await
    }

    fn number(&self) -> u64 {
        ((self.new_uuid)().as_u128() as u64) >> 1
    }

    /// Merges neighbouring segments where there are enough of them.
    async fn merge(&self, uid: Uid) -> Result<(), StoreError> {
        loop {
            let segments = self.index.segments(uid).await?;
            let run = merge::due(&segments);
            let build = run.first().map_or(0, |first| first.build);
            let Some(making) = merge::making(&run, build, self.number()) else { return Ok(()) };
            let gone = if self.options.expires { self.store.expired_to(uid).await?.get() } else { 0 };
            let mut whole = Vec::with_capacity(run.len());
            for head in &run {
                let all: Vec<u32> = (DOCUMENTS..=2 * head.first_terms.len() as u32).collect();
                let Some(parts) = self.index.parts(uid, head.number, &all).await? else { return Ok(()) };
                whole.push(parts);
            }
            let old: Vec<u64> = run.iter().map(|head| head.number).collect();
            let merged = spawn_blocking(move || merge::merge(&whole, making, gone)).await;
            let merged = match merged.map_err(StoreError::unavailable)? {
                Ok(merged) => merged,
                Err(error) => {
                    self.due.note_damaged(uid);
                    return Err(error);
                }
            };
            if !self.index.replace(uid, &old, Some(merged)).await? {
                // Another server has merged them.
                return Ok(());
            }
        }
    }

    /// Throws away segments all of whose rows have expired; the newest one stays and says how far the inbox is indexed.
    async fn drop_expired(&self, uid: Uid) -> Result<(), StoreError> {
        let gone = self.store.expired_to(uid).await?.get();
        let segments = self.index.segments(uid).await?;
        let old = segments.iter().skip(1).filter(|head: &&SegmentHead| head.last_id <= gone);
        let old: Vec<u64> = old.map(|head| head.number).collect();
        if !old.is_empty() {
            self.index.replace(uid, &old, None).await?;
        }
        Ok(())
    }

    async fn pause(&self, began: Instant) {
        sleep(began.elapsed() * self.options.pause).await;
    }
}

fn complain(log: &LogLimit, error: &StoreError) {
    if let Some(left_out) = log.pass() {
        warn!(%error, left_out, "the search index cannot be brought up to date; searches read the rows instead, trying again");
    }
}

/// A segment of these rows: those that can be found with their terms, others without.
fn segment_of(rows: &[Entry], making: Making) -> NewSegment {
    let mut builder = Builder::default();
    for row in rows {
        builder.document(Document::new(row.message_id, row.content.sent_at));
        if !is_searched(&row.content) {
            continue;
        }
        builder.term(TermClass::Conversation, &row.conversation().to_string());
        builder.term(TermClass::Sender, &row.content.sender.to_string());
        if let Some(text) = row.content.body.said() {
            each_term(&fold(&text), |class, term| builder.term(class, term));
        }
    }
    builder.finish(making)
}
