//! One page of a search.
//!
//! It goes down from the newest row: first through the rows that are not indexed yet, then through the candidates of one
//! segment after the other. A message that was edited after it was indexed is a candidate by the row of its edit: those that
//! are not indexed are looked through, and a segment that has them has the message among its documents, with its old id.

use std::collections::VecDeque;

use tokio::time::Instant;
use tracing::warn;

use super::lookup::{Wanted, candidates};
use super::{BYTES_OF_INDEX, Found, Search, SearchRequest};
use crate::domain::search::{TermClass, TermPart};
use crate::domain::{IdempotencyKey, MessageId, RangeQuery, Uid};
use crate::store::StoreError;
use crate::store::search::SegmentHead;

/// Rows of the first reading; each further one has twice as many, up to the most.
const FIRST_ROWS: usize = 128;
const MOST_ROWS: usize = 1_024;

/// Candidates that are read at once, at least and at most.
const CANDIDATES: (usize, usize) = (16, 128);

/// How often it begins again because segments were merged meanwhile.
const TRIES: usize = 5;

/// Edited messages that are not indexed yet of which one page takes notice.
const MOST_EDITED: usize = 200;

/// A search under way.
pub(super) struct Finder<'a> {
    search: &'a Search,
    who: Uid,
    request: &'a SearchRequest,
    parts: Vec<TermPart>,
    /// Everything from this id on is looked through.
    below: MessageId,
    found: Found,
    until: Instant,
    scanned: usize,
    read: usize,
}

/// Where it has come to.
enum Come {
    /// To the end of what it had to look through.
    Through,
    /// As far as a page goes.
    Enough,
    /// Segments were merged meanwhile.
    Again,
}

impl<'a> Finder<'a> {
    pub(super) fn new(search: &'a Search, who: Uid, request: &'a SearchRequest) -> Finder<'a> {
        let mut parts: Vec<TermPart> = Vec::new();
        if let Some(conversation) = request.conversation {
            parts.push(TermPart::Whole(TermClass::Conversation, conversation.to_string()));
        }
        if let Some(sender) = request.sender {
            parts.push(TermPart::Whole(TermClass::Sender, sender.to_string()));
        }
        parts.extend(request.words.iter().flat_map(|words| words.term_parts()));
        // Those that are named whole cost less, and may leave nothing to look for.
        parts.sort_by_key(|part| matches!(part, TermPart::Within(..)));
        Finder {
            search,
            who,
            request,
            parts,
            below: request.before.unwrap_or(MessageId::MAX),
            found: Found { is_complete: true, ..Found::default() },
            until: Instant::now() + search.options.takes,
            scanned: 0,
            read: 0,
        }
    }

    pub(super) async fn find(mut self) -> Result<Found, StoreError> {
        let mut come = Come::Again;
        for _ in 0..TRIES {
            come = match self.through_segments().await {
                Err(Trouble::Index(error)) => {
                    warn!(uid = %self.who, %error, "the search index cannot be read; reading the rows instead");
                    if matches!(error, StoreError::Corrupt(_)) {
                        self.search.due.note_damaged(self.who);
                    }
                    self.through_rows(MessageId::ZERO, &mut Vec::new()).await?
                }
                Err(Trouble::Store(error)) => return Err(error),
                Ok(come) => come,
            };
            if !matches!(come, Come::Again) {
                break;
            }
        }
        if !matches!(come, Come::Through) {
            self.found.next_before = Some(self.below);
        }
        Ok(self.found)
    }

    async fn through_segments(&mut self) -> Result<Come, Trouble> {
        let segments = self.search.index.segments(self.who).await.map_err(Trouble::Index)?;
        let indexed_to = segments.first().map_or(MessageId::ZERO, |newest| newest.indexed().to);
        let mut edited = Vec::new();
        let begin = self.below;
        if self.below.get() > indexed_to.get() + 1
            && let enough @ (Come::Enough | Come::Again) = self.through_rows(indexed_to, &mut edited).await?
        {
            return Ok(enough);
        }
        if segments.is_empty() {
            return Ok(Come::Through);
        }
        if begin < MessageId::MAX && self.request.words.is_some() {
            let from = MessageId::new(begin.get().saturating_sub(1)).unwrap_or_default();
            self.edited_after(indexed_to.max(from), &mut edited).await?;
        }
        let edited = self.copies_of(edited).await?;
        self.through_candidates(&segments, edited).await
    }

    /// Looks through the rows above `end`.
    async fn through_rows(
        &mut self,
        end: MessageId,
        edited: &mut Vec<IdempotencyKey>,
    ) -> Result<Come, StoreError> {
        let mut rows = FIRST_ROWS;
        loop {
            let before = (self.below < MessageId::MAX).then_some(self.below);
            let query = RangeQuery::before(before, rows).up_to(Some(end));
            let page = self.search.store.range(self.who, query).await?;
            self.scanned += page.rows.len();
            let last = page.rows.last().map(|row| row.message_id);
            if let Some(hit) = self.request.look_through(page.rows, &mut self.found, edited).await {
                self.below = hit.message_id;
                return Ok(Come::Enough);
            }
            self.below = last.unwrap_or(self.below);
            if !page.more {
                // Nothing is between it and the end.
                self.below = self.below.min(MessageId::new(end.get() + 1).unwrap_or(MessageId::MAX));
                return Ok(Come::Through);
            }
            if self.scanned >= self.search.options.scanned || Instant::now() >= self.until {
                return Ok(Come::Enough);
            }
            rows = (2 * rows).min(MOST_ROWS);
        }
    }

    /// Messages that got a new text by rows after `cursor`, which are not indexed and were looked through on an earlier page.
    async fn edited_after(
        &mut self,
        mut cursor: MessageId,
        edited: &mut Vec<IdempotencyKey>,
    ) -> Result<(), StoreError> {
        loop {
            let page = self.search.store.range(self.who, RangeQuery::after(cursor, MOST_ROWS)).await?;
            self.scanned += page.rows.len();
            let Some(last) = page.rows.last() else { return Ok(()) };
            cursor = last.message_id;
            edited.extend(page.rows.iter().filter_map(|row| self.request.edited(row)));
            if !page.more {
                return Ok(());
            }
            if self.scanned >= self.search.options.scanned {
                self.found.is_complete = false;
                return Ok(());
            }
        }
    }

    /// The person's copies of these messages, the largest id first.
    async fn copies_of(&mut self, edited: Vec<IdempotencyKey>) -> Result<Vec<u64>, StoreError> {
        self.found.is_complete &= edited.len() <= MOST_EDITED;
        let mut copies = Vec::new();
        for key in edited.into_iter().take(MOST_EDITED) {
            copies.extend(self.search.store.copies(key, &[self.who]).await?.into_iter().flatten());
        }
        let mut ids: Vec<u64> =
            copies.into_iter().filter(|id| *id < self.below).map(MessageId::get).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        Ok(ids)
    }

    /// Looks through what the segments name, newest first, and these ids.
    async fn through_candidates(
        &mut self,
        segments: &[SegmentHead],
        edited: Vec<u64>,
    ) -> Result<Come, Trouble> {
        let begin = self.below.get();
        let mut lists: Vec<VecDeque<u64>> = vec![edited.into()];
        let mut closed: VecDeque<&SegmentHead> = segments.iter().collect();
        let mut has_opened = false;
        loop {
            let largest = lists.iter().filter_map(|list| list.front().copied()).max();
            // A segment is opened before anything that may be older than a row of it is looked at.
            if let Some(next) =
                closed.front().filter(|next| largest.is_none_or(|largest| next.last_id >= largest))
            {
                let is_new = next.last_id < begin;
                self.below = self.below.min(MessageId::new(next.last_id + 1).unwrap_or(MessageId::MAX));
                if is_new && has_opened && Instant::now() >= self.until {
                    return Ok(Come::Enough);
                }
                let wanted = Wanted {
                    parts: &self.parts,
                    from: self.request.from,
                    to: self.request.to,
                    below: self.below.get(),
                };
                if wanted.may_be_in(next) {
                    let found = candidates(&*self.search.index, self.who, next, wanted).await;
                    let Some((ids, bytes)) = found.map_err(Trouble::Index)? else { return Ok(Come::Again) };
                    self.found.looked_through += bytes / BYTES_OF_INDEX;
                    has_opened |= is_new;
                    lists.push(ids.into());
                }
                closed.pop_front();
                continue;
            }
            if largest.is_none() {
                return Ok(Come::Through);
            }
            let floor = closed.front().map_or(0, |next| next.last_id);
            let ids = next_of(&mut lists, floor, self.room());
            if let come @ Come::Enough = self.read(ids).await? {
                return Ok(come);
            }
        }
    }

    /// How many candidates are read next.
    fn room(&self) -> usize {
        let (least, most) = CANDIDATES;
        (self.request.limit - self.found.hits.len()).clamp(least, most)
    }

    /// Reads candidates, and takes those that are what is looked for.
    async fn read(&mut self, ids: Vec<u64>) -> Result<Come, StoreError> {
        let ids: Vec<MessageId> = ids.into_iter().filter_map(MessageId::new).collect();
        let rows = self.search.store.entries_of(self.who, &ids).await?;
        self.read += ids.len();
        if let Some(hit) = self.request.look_through(rows, &mut self.found, &mut Vec::new()).await {
            self.below = hit.message_id;
            return Ok(Come::Enough);
        }
        self.below = ids.last().copied().unwrap_or(self.below);
        let enough = self.read >= self.search.options.candidates || Instant::now() >= self.until;
        Ok(if enough { Come::Enough } else { Come::Through })
    }
}

/// The largest ids of these lists above `floor`, at most so many, each once.
fn next_of(lists: &mut [VecDeque<u64>], floor: u64, most: usize) -> Vec<u64> {
    let mut ids = Vec::with_capacity(most);
    while ids.len() < most
        && let Some(largest) = lists.iter().filter_map(|list| list.front().copied()).max()
        && largest > floor
    {
        for list in &mut *lists {
            if list.front() == Some(&largest) {
                list.pop_front();
            }
        }
        ids.push(largest);
    }
    ids
}

/// What went wrong: without the index, rows are still there to be read.
enum Trouble {
    Index(StoreError),
    Store(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}
