//! The contract of the message store, asked of two servers of one database by turns: what one was told, the other knows.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::domain::{Entry, Group, PageLimit, RangeQuery, Timestamp};
use crate::store::conformance::Made;
use crate::store::{Expired, Forgotten, Health, Keeping, Page, Pending, StoreError, Summary};

/// Two servers; each call goes to the one that did not have the call before.
struct Turns {
    servers: [PostgresStore; 2],
    calls: AtomicUsize,
}

impl Turns {
    fn next(&self) -> &PostgresStore {
        &self.servers[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

#[async_trait]
impl MessageStore for Turns {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        self.next().commit(writes).await
    }

    fn unasked(&self) -> Option<Unused> {
        self.servers[0].unasked()
    }

    async fn keys(&self, keys: &[IdempotencyKey]) -> Result<Vec<KeyState>, StoreError> {
        self.next().keys(keys).await
    }

    async fn pending(&self, after: PendingKey, limit: usize) -> Result<Vec<Pending>, StoreError> {
        self.next().pending(after, limit).await
    }

    async fn latest_ids(&self, uids: &[Uid]) -> Result<Vec<MessageId>, StoreError> {
        self.next().latest_ids(uids).await
    }

    async fn watermark(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.next().watermark(uid).await
    }

    fn tail(&self, uid: Uid, cursor: MessageId, known: MessageId, limit: PageLimit) -> Option<Page> {
        self.next().tail(uid, cursor, known, limit)
    }

    async fn range(&self, uid: Uid, query: RangeQuery) -> Result<Page, StoreError> {
        self.next().range(uid, query).await
    }

    async fn entries(&self, rows: &[(Uid, MessageId)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.next().entries(rows).await
    }

    async fn newest(&self, of: &[(Uid, String)]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.next().newest(of).await
    }

    async fn newest_under(
        &self,
        uid: Uid,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        self.next().newest_under(uid, prefix, after, limit).await
    }

    async fn keys_under(&self, uid: Uid, prefix: &str, most: usize) -> Result<usize, StoreError> {
        self.next().keys_under(uid, prefix, most).await
    }

    async fn forget_rows(&self, uid: Uid, limit: usize) -> Result<Forgotten, StoreError> {
        self.next().forget_rows(uid, limit).await
    }

    async fn expire_rows(
        &self,
        after: Option<Uid>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired, StoreError> {
        self.next().expire_rows(after, sent_before, limit).await
    }

    async fn expire_records(
        &self,
        after: Option<IdempotencyKey>,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Expired<IdempotencyKey>, StoreError> {
        self.next().expire_records(after, sent_before, limit).await
    }

    async fn keeping(&self, after: Option<Uid>) -> Result<Keeping, StoreError> {
        self.next().keeping(after).await
    }

    async fn expire_conversation(
        &self,
        uid: Uid,
        of: Conversation,
        sent_before: Timestamp,
        limit: usize,
    ) -> Result<Forgotten, StoreError> {
        self.next().expire_conversation(uid, of, sent_before, limit).await
    }

    async fn expired_to(&self, uid: Uid) -> Result<MessageId, StoreError> {
        self.next().expired_to(uid).await
    }

    async fn copies(&self, key: IdempotencyKey, uids: &[Uid]) -> Result<Vec<Option<MessageId>>, StoreError> {
        self.next().copies(key, uids).await
    }

    async fn conversations(
        &self,
        uid: Uid,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        self.next().conversations(uid, before, limit).await
    }

    async fn conversation(
        &self,
        uid: Uid,
        conversation: Conversation,
        query: RangeQuery,
    ) -> Result<Page, StoreError> {
        self.next().conversation(uid, conversation, query).await
    }

    async fn have_messages(&self, of: &[(Uid, Conversation)]) -> Result<Vec<bool>, StoreError> {
        self.next().have_messages(of).await
    }

    async fn heard_from(&self, uid: Uid, others: &[Uid]) -> Result<Vec<bool>, StoreError> {
        self.next().heard_from(uid, others).await
    }

    async fn read_markers(&self, of: &[(Uid, Conversation)]) -> Result<Vec<MessageId>, StoreError> {
        self.next().read_markers(of).await
    }

    async fn groups(&self, gids: &[GroupId]) -> Result<Vec<Option<Arc<Group>>>, StoreError> {
        self.next().groups(gids).await
    }

    async fn inboxes(
        &self,
        from: (&str, i64),
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Uid>, StoreError> {
        self.next().inboxes(from, direction, limit).await
    }

    async fn largest_group_id(&self) -> Result<GroupId, StoreError> {
        self.next().largest_group_id().await
    }

    async fn history(&self) -> Result<HistoryId, StoreError> {
        self.next().history().await
    }

    fn health(&self) -> Health {
        self.next().health()
    }

    async fn close(&self) {
        for server in &self.servers {
            server.close().await;
        }
    }
}

async fn made() -> Made {
    let (one, other, _) = two().await;
    Made::new(Turns { servers: [one, other], calls: AtomicUsize::new(0) })
}
crate::message_store_conformance!(made);
