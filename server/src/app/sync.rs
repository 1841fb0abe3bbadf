//! Keeping a device in step: "I have up to 41" is answered from memory, or with rows 42 and up (S2, S20).

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::domain::{Entry, HistoryId, MessageId, PageLimit, RangeQuery, Uid};
use crate::log_limit::LogLimit;
use crate::notify::{Notifier, Wake};
use crate::queue::{Watermark, Watermarks};
use crate::store::{MessageStore, Page, StoreError};

/// Bytes of the rows that a device gets at once, roughly; one row always goes.
pub const ENTRIES_BYTES: usize = 256 << 10;

/// How often the log tells of devices that are ahead.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The rows that a device missed, or the first part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Rows newer than the cursor, in id order.
    pub entries: Vec<Entry>,
    /// The device's cursor once it has stored them (I2).
    pub synced: MessageId,
    /// Whether there is more behind `synced`.
    pub more: bool,
}

/// Watermarks, wake-ups and pulls.
#[derive(Clone)]
pub struct InboxSync {
    store: Arc<dyn MessageStore>,
    watermarks: Watermarks,
    notifier: Arc<dyn Notifier>,
    history: HistoryId,
    /// How much one pull may carry.
    limit: PageLimit,
    /// For lines about devices that are ahead.
    log: Arc<LogLimit>,
}

impl InboxSync {
    /// Use cases over the rows of one `history`.
    pub fn new(
        store: Arc<dyn MessageStore>,
        watermarks: Watermarks,
        notifier: Arc<dyn Notifier>,
        history: HistoryId,
        limit: PageLimit,
    ) -> InboxSync {
        InboxSync { store, watermarks, notifier, history, limit, log: Arc::new(LogLimit::every(TELL_EVERY)) }
    }

    /// The watermark of `uid`. Loaded from storage at the first asking only, or at each where other servers write, too.
    pub async fn watermark(&self, uid: Uid) -> Result<Watermark, StoreError> {
        self.watermarks.watermark(uid).await
    }

    /// Wake-ups for `uid` until dropped.
    pub fn watch(&self, uid: Uid) -> Wake {
        self.notifier.subscribe(uid)
    }

    /// Rows after `cursor`; from memory where all of them up to the newest known id lie there.
    pub async fn pull(&self, watermark: &Watermark, cursor: MessageId) -> Result<Pulled, StoreError> {
        // Read before the rows: one that commits in between must not be skipped (I2).
        let (latest, hinted) = (watermark.latest(), watermark.hinted());
        let known = MessageId::new(hinted).map_or(latest, |hinted| latest.max(hinted));
        let page = match self.store.tail(watermark.uid(), cursor, known, self.limit) {
            Some(page) => page,
            None => {
                let query = RangeQuery::after(cursor, self.limit.rows).within(self.limit.bytes);
                self.store.range(watermark.uid(), query).await?
            }
        };
        let Page { rows: entries, more } = page;
        if !more {
            watermark.looked_up(hinted);
        }
        let synced = match entries.last() {
            Some(last) => {
                // Visible means committed: a device that has this row must not be told that it is ahead.
                watermark.raise(last.message_id);
                last.message_id
            }
            None => latest,
        };
        Ok(Pulled { entries, synced, more })
    }

    /// Whether rows after `cursor` have expired: a device that has come no further may lack some of them for good, and starts over. One that has
    /// nothing lacks nothing.
    pub async fn has_expired_after(&self, uid: Uid, cursor: MessageId) -> Result<bool, StoreError> {
        Ok(cursor > MessageId::ZERO && cursor < self.expired_to(uid).await?)
    }

    /// Up to which id rows of `uid` have expired; zero: none has.
    pub async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.store.expired_to(uid).await
    }

    /// The latest committed id, for a device that claims rows up to `cursor`, beyond the watermark. Another server may have written them,
    /// so the database is asked. If it does not answer, the device is believed, for it may have them from there.
    pub async fn look_ahead(&self, watermark: &Watermark, cursor: u64) -> MessageId {
        let looked = self.watermarks.reread(watermark).await;
        let latest = watermark.latest();
        if cursor <= latest.get() {
            return latest;
        }
        match looked {
            Ok(()) => {
                self.note_ahead(watermark, cursor);
                latest
            }
            Err(_) => MessageId::new(cursor).unwrap_or(latest),
        }
    }

    /// A device says that it has rows beyond the newest one: proof that older files were restored without `tidemark restored`, unless the
    /// device is wrong. Logged once a minute at most, over all devices.
    fn note_ahead(&self, watermark: &Watermark, cursor: u64) {
        let Some(left_out) = self.log.pass() else { return };
        warn!(
            uid = %watermark.uid(), cursor, latest = %watermark.latest(), left_out,
            "a device has rows that this server does not have; if older files were restored, stop and run `tidemark restored`"
        );
    }

    /// GetRange over the caller's own rows.
    pub async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        self.store.range(uid, query).await
    }

    /// The name of this unbroken life of the data (I14).
    pub fn history(&self) -> HistoryId {
        self.history
    }
}
