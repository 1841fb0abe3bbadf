//! Tells authors how many members of a group have read their newest messages.
//!
//! A writer says when a read marker moved in a group ([`Marks::moved`]). One task waits a little, so that many reads are told together.
//! It then counts anew from the read markers as they stand, and puts one row into the inbox of each author. Nothing rests on its memory:
//! an author that it misses is told with the next read of one of their messages. After a retryable refusal it counts again a little
//! later. Users with [`Privacy::quiet`] are neither counted nor told.
//!
//! Other servers of the database tell the same authors. So each server asks for leave before it writes a row ([`SharedRates`]): all of them
//! together get leave for one row in each pause, for each author in each group. A server that gets none counts again when it may ask again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{QueueParts, Queues, Request};
use crate::domain::{
    ClientId, Content, Conversation, Entry, Group, GroupId, IdempotencyKey, Kind, MOST_COUNTED, MessageId,
    Privacy, RangeQuery, ReadCount, Setting, Uid, grown, read_counts_key, setting_key,
};
use crate::log_limit::LogLimit;
use crate::store::{MessageStore, SharedRates, StoreError};

/// Markers that may wait for the task.
const MOST_MARKS: usize = 4_096;

/// For how long it is waited, before authors in a group are told how many have read: at most one row in that time, over all servers.
const PAUSE: Duration = Duration::from_secs(1);

/// Groups that may wait for their turn, and readers of one of them; what is more is counted with the next read.
const MOST_GROUPS: usize = 10_000;
const MOST_READERS: usize = 16;

/// Markers that are remembered, to know which messages are newly read.
const REMEMBERED: usize = 100_000;

/// Rows of a group that are read at once.
const PAGE: usize = 100;

/// Pages of one reader that are searched for newly read messages. A reader with more to catch up with counts for the newest of them.
const MOST_PAGES: usize = 5;

/// Authors who are told at a time.
const MOST_AUTHORS: usize = 16;

/// Copies that are looked up for one author: in a large group only the newest messages are counted.
const MOST_COPIES: usize = 1_000;

/// A read marker that moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    gid: GroupId,
    reader: Uid,
    read_to: MessageId,
}

/// Where writers say that markers moved. A cheap clone.
#[derive(Clone, Debug)]
pub(super) struct Marks(mpsc::Sender<Mark>);

impl Marks {
    /// The way in, and what comes through it.
    pub(super) fn new() -> (Marks, mpsc::Receiver<Mark>) {
        let (marks, moved) = mpsc::channel(MOST_MARKS);
        (Marks(marks), moved)
    }

    /// Takes in what was stored, if it is a read marker of a group.
    pub(super) fn moved(&self, content: &Content) {
        if let (Conversation::Group(gid), Some(read_to)) = (content.target, content.read_to()) {
            // One that finds no room is counted with the next one.
            let _ = self.0.try_send(Mark { gid, reader: content.sender, read_to });
        }
    }
}

/// Groups with markers that moved, each until it is due.
#[derive(Debug, Default)]
struct DueCounts {
    due: BTreeSet<(Instant, GroupId)>,
    readers: HashMap<GroupId, HashMap<Uid, MessageId>>,
}

impl DueCounts {
    fn add(&mut self, mark: Mark, due: Instant) {
        let Mark { gid, reader, read_to } = mark;
        if !self.readers.contains_key(&gid) {
            if self.readers.len() >= MOST_GROUPS {
                return;
            }
            self.due.insert((due, gid));
        }
        let readers = self.readers.entry(gid).or_default();
        if readers.len() < MOST_READERS || readers.contains_key(&reader) {
            let known = readers.entry(reader).or_default();
            *known = read_to.max(*known);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    fn take(&mut self) -> Option<(GroupId, HashMap<Uid, MessageId>)> {
        let (_, gid) = self.due.pop_first()?;
        Some((gid, self.readers.remove(&gid).unwrap_or_default()))
    }
}

/// The task.
pub(super) struct Counter {
    store: Arc<dyn MessageStore>,
    queues: Queues,
    /// Gives leave to all servers of the database; `None` where this one is alone.
    rates: Option<Arc<dyn SharedRates>>,
    /// Between two rows for one author in one group.
    /// How far people had read when they were looked at last.
    seen: Cache<(Uid, GroupId), MessageId>,
    log: LogLimit,
}

/// The key of the rate of these rows: the hash of a text that begins unlike the text of any other rate.
fn caller(author: Uid, gid: GroupId) -> [u8; 32] {
    Sha256::digest(format!("read counts for {author} in group {}", gid.0)).into()
}

impl Counter {
    pub(super) fn new(parts: &QueueParts, queues: Queues) -> Counter {
        let (store, rates) = (Arc::clone(&parts.store), parts.rates.clone());
        Counter { store, queues, rates, seen: Cache::new(REMEMBERED), log: LogLimit::default() }
    }

    /// Works until the queues close.
    pub(super) async fn run(self, mut moved: mpsc::Receiver<Mark>, closing: CancellationToken) {
        let mut waiting = DueCounts::default();
        loop {
            let next = waiting.next();
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                Some(mark) = moved.recv() => waiting.add(mark, Instant::now() + PAUSE),
                () = async { sleep_until(next.expect("guarded")).await }, if next.is_some() => {
                    let Some((gid, readers)) = waiting.take() else { continue };
                    let told = tokio::select! {
                        () = closing.cancelled() => return,
                        told = self.tell(gid, &readers) => told,
                    };
                    let again = told.unwrap_or_else(|error| {
                        if let Some(left_out) = self.log.pass() {
                            warn!(%error, left_out, "read counts are delayed: storage does not answer");
                        }
                        Some(PAUSE)
                    });
                    if let Some(wait) = again {
                        let due = Instant::now() + wait;
                        for (reader, read_to) in readers {
                            waiting.add(Mark { gid, reader, read_to }, due);
                        }
                    }
                }
            }
        }
    }

    /// Tells the authors of what these have read. `Some`: not all are told, and it is tried again after this time.
    async fn tell(
        &self,
        gid: GroupId,
        readers: &HashMap<Uid, MessageId>,
    ) -> Result<Option<Duration>, StoreError> {
        let Some(group) = self.store.group(gid).await? else { return Ok(None) };
        let authors = self.authors(&group, readers).await?;
        let mut again = None;
        if !authors.is_empty() {
            let members: Vec<Uid> = group.active().map(|member| member.uid).collect();
            let open = self.open(&members).await?;
            let conversation = Conversation::Group(gid);
            let markers: Vec<_> = open.iter().map(|uid| (*uid, conversation)).collect();
            let markers = self.store.read_markers(&markers).await?;
            let read: Vec<(Uid, MessageId)> = open.iter().copied().zip(markers).collect();
            for (author, newly) in authors.into_iter().filter(|(author, _)| open.contains(author)) {
                again = again.max(self.tell_one(author, gid, newly, &read).await?);
            }
        }
        if again.is_none() {
            for (reader, read_to) in readers {
                self.seen.insert((*reader, gid), *read_to);
            }
        }
        Ok(again)
    }

    /// Tells one author. `Some`: this one is not told, and may be after this time.
    async fn tell_one(
        &self,
        author: Uid,
        gid: GroupId,
        newly: Vec<ClientId>,
        read: &[(Uid, MessageId)],
    ) -> Result<Option<Duration>, StoreError> {
        let known = self.known(author, gid).await?;
        let counts = self.counts(author, gid, newly, &known, read).await?;
        // Counts that have not grown need no leave, so that they delay nobody.
        if grown(&known, &counts).is_none() {
            return Ok(None);
        }
        if let Some(rates) = &self.rates
            && let Some(wait) = rates.take(&caller(author, gid), PAUSE, PAUSE).await?
        {
            return Ok(Some(wait.min(PAUSE)));
        }
        let told = self.queues.submit(author, Request::ReadCounts { gid, counts }).await;
        // Refused for good: the author has left meanwhile.
        Ok(told.is_err_and(|refusal| refusal.is_retryable()).then_some(PAUSE))
    }

    /// The counts that the author knows already.
    async fn known(&self, author: Uid, gid: GroupId) -> Result<Vec<ReadCount>, StoreError> {
        let told = self.store.newest(&[(author, read_counts_key(gid))]).await?.pop().flatten();
        Ok(told.map(|row| row.content.body.counts()).unwrap_or_default())
    }

    /// The authors of newly read messages that are still in the group, with the newest of those messages.
    async fn authors(
        &self,
        group: &Group,
        readers: &HashMap<Uid, MessageId>,
    ) -> Result<HashMap<Uid, Vec<ClientId>>, StoreError> {
        let mut authors: HashMap<Uid, Vec<ClientId>> = HashMap::new();
        for (reader, read_to) in readers {
            let from = self.seen.get(&(*reader, group.gid)).unwrap_or_default();
            let mut before = MessageId::new(read_to.get() + 1);
            for _ in 0..MOST_PAGES {
                let conversation = Conversation::Group(group.gid);
                let page =
                    self.store.conversation(*reader, conversation, RangeQuery::before(before, PAGE)).await?;
                let new = page.rows.iter().take_while(|row| row.message_id > from);
                for row in new.filter(|row| row.content.kind == Kind::Message) {
                    let Some((author, client_id)) = row.content.key() else { continue };
                    let is_one = author != *reader && group.epoch_of(author).is_some();
                    if is_one && (authors.len() < MOST_AUTHORS || authors.contains_key(&author)) {
                        let read = authors.entry(author).or_default();
                        if read.len() < MOST_COUNTED && !read.contains(&client_id) {
                            read.push(client_id);
                        }
                    }
                }
                before = page.rows.last().map(|row| row.message_id).filter(|last| page.more && *last > from);
                if before.is_none() {
                    break;
                }
            }
        }
        Ok(authors)
    }

    /// Those of these people who are not quiet.
    async fn open(&self, members: &[Uid]) -> Result<Vec<Uid>, StoreError> {
        let key = |uid: &Uid| (*uid, setting_key(Setting::Privacy, Conversation::User(*uid)));
        let keys: Vec<_> = members.iter().map(key).collect();
        let rows = self.store.newest(&keys).await?;
        let is_open = |row: &Option<Entry>| !Privacy::read(row.as_ref().map(|row| &*row.content)).quiet;
        Ok(members.iter().zip(&rows).filter(|(_, row)| is_open(row)).map(|(uid, _)| *uid).collect())
    }

    /// How many of these have read each of the newest messages of an author, the newest first: of those among the newest rows, of those
    /// that are `known` already, and of those that were `newly` read, however much others have said since.
    async fn counts(
        &self,
        author: Uid,
        gid: GroupId,
        newly: Vec<ClientId>,
        known: &[ReadCount],
        read: &[(Uid, MessageId)],
    ) -> Result<Vec<ReadCount>, StoreError> {
        let read: Vec<_> = read.iter().filter(|(uid, marker)| *uid != author && marker.get() > 0).collect();
        let people: Vec<Uid> = read.iter().map(|(uid, _)| *uid).collect();
        let most = (MOST_COPIES / people.len().max(1)).clamp(1, MOST_COUNTED);
        let mut counts = Vec::new();
        for key in self.newest_of(author, gid, newly, known).await?.into_iter().take(most) {
            let copies = self.store.copies(key, &people).await?;
            let has_read = |(copy, (_, marker)): &(Option<MessageId>, &&(Uid, MessageId))| {
                copy.is_some_and(|copy| copy <= *marker)
            };
            let count = copies.into_iter().zip(&read).filter(has_read).count();
            counts.push(ReadCount { client_id: key.1, count: u32::try_from(count).unwrap_or(u32::MAX) });
        }
        Ok(counts)
    }

    /// The messages of an author that are counted, the newest first.
    async fn newest_of(
        &self,
        author: Uid,
        gid: GroupId,
        newly: Vec<ClientId>,
        known: &[ReadCount],
    ) -> Result<Vec<IdempotencyKey>, StoreError> {
        let all = newly.into_iter().chain(known.iter().map(|one| one.client_id));
        let keys: Vec<IdempotencyKey> = all.map(|client_id| (author, client_id)).collect();
        let records = self.store.keys(&keys).await?.into_iter();
        let copies: Vec<_> = records.filter_map(|state| Some((author, state.record()?.message_id))).collect();
        let mut rows: Vec<Entry> = self.store.entries(&copies).await?.into_iter().flatten().collect();
        let newest = RangeQuery::before(None, PAGE);
        rows.extend(self.store.conversation(author, Conversation::Group(gid), newest).await?.rows);
        rows.retain(|row| {
            let Content { kind, sender, target, .. } = *row.content;
            kind == Kind::Message && sender == author && target == Conversation::Group(gid)
        });
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.message_id));
        rows.dedup_by_key(|row| row.message_id);
        Ok(rows.iter().filter_map(|row| row.content.key()).collect())
    }
}
