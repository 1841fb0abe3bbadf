//! Somebody joins a group whose history is visible: the copy of the row that says so comes after the newest messages of
//! the group, in one write.
//!
//! The acceptance owes the copy, which is resumed like any other, so the joiner gets all of it or has none of it yet (I5). The rows
//! before it are read when the copy is written: all that were accepted before the joining are there by then.
//! [`Earlier`](super::earlier) chooses them. Each such copy is a commit of its own.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::{error, warn};

use super::earlier::LookBack;
use super::numbering::{LeftBehind, Numbered, weight};
use super::plan::joiner;
use super::recovery::Setback;
use super::shard::QueueWriter;
use super::slices::Delivery;
use crate::domain::{Body, Content, Kind, MessageId, Uid};
use crate::store::{CommitError, CopyOutcome, Deliver, Earlier, Outcome, Recipient, Row, StoreError, Write};

/// How often the rows before the copy are read again, where the inbox gets other rows meanwhile.
const TRIES: usize = 8;

impl Delivery {
    /// Whether the copy for the one who joins is among them.
    pub(super) fn is_joining(&self) -> bool {
        joiner(&self.content).is_some_and(|joiner| self.to.iter().any(|to| to.uid == joiner))
    }

    /// The copy for the one who joins, if it is among them, and the others, if there are any.
    fn split(self) -> (Option<Delivery>, Option<Delivery>) {
        let joiner = joiner(&self.content);
        let (joining, others): (Vec<Recipient>, Vec<Recipient>) =
            self.to.into_iter().partition(|to| Some(to.uid) == joiner);
        let part = |to: Vec<Recipient>| {
            let (acceptance, content) = (self.acceptance, Arc::clone(&self.content));
            (!to.is_empty()).then_some(Delivery { acceptance, content, to })
        };
        (part(joining), part(others))
    }
}

impl QueueWriter<'_> {
    /// Writes copies of earlier acceptances, in their order.
    pub(super) async fn write_copies(
        &mut self,
        behind: &HashSet<Uid>,
        deliveries: Vec<Delivery>,
    ) -> Result<LeftBehind, Setback> {
        if !deliveries.iter().any(Delivery::is_joining) {
            return self.write_plain(behind, deliveries).await;
        }
        let (mut behind, mut left, mut plain) = (behind.clone(), LeftBehind::default(), Vec::new());
        for delivery in deliveries {
            let (joining, others) = delivery.split();
            plain.extend(others);
            let Some(joining) = joining else { continue };
            left.add(self.write_plain(&behind, std::mem::take(&mut plain)).await?);
            behind.extend(&left.receivers);
            left.add(self.write_joining(&behind, joining).await?);
            behind.extend(&left.receivers);
        }
        left.add(self.write_plain(&behind, plain).await?);
        Ok(left)
    }

    /// The same between two batches; what cannot be written is recovered.
    pub(super) async fn write_or_recover(&mut self, deliveries: Vec<Delivery>) {
        let behind = self.shard.behind.clone();
        match self.write_copies(&behind, deliveries).await {
            Ok(left) => self.leave_behind(left),
            Err(setback) => {
                warn!(%setback, queue = self.shard.index, "a copy for a joining member is not written yet");
                self.recover(true).await;
            }
        }
    }

    async fn write_plain(
        &mut self,
        behind: &HashSet<Uid>,
        deliveries: Vec<Delivery>,
    ) -> Result<LeftBehind, Setback> {
        let Numbered { copies, left, .. } = self.number(behind, deliveries, Vec::new()).await;
        self.commit(copies).await?;
        Ok(left)
    }

    /// Writes one copy, after the earlier messages. The inbox must get nothing else in between: an edit of one of them could be missed.
    async fn write_joining(
        &mut self,
        behind: &HashSet<Uid>,
        delivery: Delivery,
    ) -> Result<LeftBehind, Setback> {
        let Delivery { acceptance, content, to } = delivery;
        let Some(&to) = to.first() else { return Ok(LeftBehind::default()) };
        let late = || LeftBehind { receivers: HashSet::from([to.uid]), weight: weight(&content, 1) };
        let store = Arc::clone(&self.parts.store);
        for _ in 0..TRIES {
            let latest = store.latest_ids(&[to.uid]).await?.pop().unwrap_or_default();
            let before = self.look_back(&content, to).await?;
            // A read marker comes first, so that nothing of it counts as unread.
            let rows = if before.is_empty() { 1 } else { before.len() + 2 };
            let Some(ids) = self.ids(behind, to.uid, latest, rows).await else { return Ok(late()) };
            let earlier = earlier(to, &content, before, &ids);
            let bytes = earlier.iter().map(|earlier| earlier.content.body.as_json().len()).sum::<usize>();
            let count = earlier.len();
            let Some(&last) = ids.last() else { return Ok(late()) };
            let rows = vec![to.row(last)];
            let write = Deliver { acceptance, content: Arc::clone(&content), rows, earlier };
            match self.commit(vec![Write::Deliver(write)]).await {
                Ok(outcomes) => {
                    let is_stored = |(_, copy): &(Row, CopyOutcome)| *copy == CopyOutcome::Stored;
                    if outcomes.iter().flat_map(Outcome::copies).any(is_stored) {
                        self.fan_out.charge_bytes(content.sender, count, bytes, Instant::now());
                    }
                    return Ok(LeftBehind::default());
                }
                Err(CommitError::Behind(behind)) => {
                    let refused = |error| CommitError::Refused(StoreError::unavailable(error));
                    self.parts.numbers.overtake(&behind.latest).await.map_err(refused)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::unavailable("the inbox of a joining member keeps getting rows").into())
    }

    /// The rows before the copy; none if they can never be read: the joining must not wait for them for ever.
    async fn look_back(
        &self,
        content: &Arc<Content>,
        to: Recipient,
    ) -> Result<Vec<Arc<Content>>, StoreError> {
        let look = LookBack {
            store: &*self.parts.store,
            rows: self.options.history_messages,
            bytes: self.options.history_bytes,
            is_near: &|uid| {
                self.parts.numbers.come_from_the_store() || self.is_mine_like(uid, content.sender)
            },
        };
        match look.run(content, to).await {
            Err(error) if !error.is_retryable() => {
                error!(%error, receiver = %to.uid, "a member joins a group without its history, which cannot be read");
                Ok(Vec::new())
            }
            looked => looked,
        }
    }

    /// Whether the rows of both are written by one writer.
    fn is_mine_like(&self, uid: Uid, other: Uid) -> bool {
        self.queue_of(uid) == self.queue_of(other)
    }

    /// So many growing ids for one inbox; `None`: there are none now.
    async fn ids(
        &self,
        behind: &HashSet<Uid>,
        uid: Uid,
        latest: MessageId,
        count: usize,
    ) -> Option<Vec<MessageId>> {
        if self.parts.numbers.come_from_the_store() {
            return (1..=count as u64).map(|plus| MessageId::new(latest.get() + plus)).collect();
        }
        self.numbers_of(behind, uid, count).await
    }
}

/// The rows before the copy, with their ids; `ids` has one more, for the copy.
fn earlier(to: Recipient, joined: &Content, before: Vec<Arc<Content>>, ids: &[MessageId]) -> Vec<Earlier> {
    let [_, .., last, _] = ids else { return Vec::new() };
    let marker = Content {
        kind: Kind::ReadMarker,
        sender: to.uid,
        target: joined.target,
        client_id: None,
        body: Body::read_marker(*last),
        sent_at: joined.sent_at,
    };
    let contents = std::iter::once(Arc::new(marker)).chain(before);
    contents.zip(ids).map(|(content, message_id)| Earlier { content, message_id: *message_id }).collect()
}
