//! A range over inboxes: inbox after inbox, in the order of their keys.

use tidemark_table::KeyValue;
use tidemark_table::rows::key::{INTEGER_TAG, encode};

use super::{key_of, stored};
use crate::domain::{Bound, Direction, Entry, MessageId, RangeQuery, Uid};
use crate::store::tables::{StoredRow, TableScan};
use crate::store::{MessageStore, StoreError};
use crate::workers::aside;

/// Inboxes that are asked for at once.
const INBOXES: usize = 256;

/// The rows of `scan`, and whether there may be more after them.
pub(super) async fn scan(
    messages: &dyn MessageStore,
    scan: &TableScan,
) -> Result<(Vec<StoredRow>, bool), StoreError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let (key, uid) = first_place(&scan.start, scan.direction);
    let (mut key, mut uid) = (key, uid);
    loop {
        let inboxes = messages.inboxes((&key, uid), scan.direction, INBOXES).await?;
        for &inbox in &inboxes {
            let ids = InboxIds::of(scan, inbox);
            if ids.is_beyond_the_end {
                return Ok((rows, false));
            }
            let mut from = ids.query(scan.direction, scan.rows - rows.len());
            while let Some(query) = from {
                let room = scan.bytes.saturating_sub(bytes).max(1);
                let page = messages.range(inbox, query.within(room)).await?;
                let last = page.rows.last().map(|entry| entry.message_id);
                let fills = |entry: &Entry| {
                    let row = stored(entry);
                    bytes += row.key.len() + row.row.len();
                    rows.push(row);
                    rows.len() >= scan.rows || bytes >= scan.bytes
                };
                let work = page.rows.iter().map(Entry::weight).sum();
                if aside(work, || page.rows.iter().any(fills)).await {
                    return Ok((rows, true));
                }
                let rest = || ids.after(last?, scan.direction, scan.rows - rows.len());
                from = if page.more { rest() } else { None };
            }
        }
        let Some(last) = inboxes.last().filter(|_| inboxes.len() == INBOXES) else {
            return Ok((rows, false));
        };
        key = last.partition_key().as_str().to_owned();
        uid = match scan.direction {
            Direction::Forward => i64::from(last.0) + 1,
            Direction::Backward => i64::from(last.0) - 1,
        };
    }
}

/// Where to look for the first inbox of a range that begins at these bytes: no inbox of the range lies before it.
fn first_place(start: &[u8], direction: Direction) -> (String, i64) {
    let (unknown, any_uid) = match direction {
        Direction::Forward => (String::new(), i64::MIN),
        Direction::Backward => (char::MAX.to_string(), i64::MAX),
    };
    let no_text = encode(&[KeyValue::String(String::new())]);
    let (tag, end_of_text) = no_text.split_at(1);
    let Some(rest) = start.strip_prefix(tag) else { return (unknown, any_uid) };
    // No partition key has a zero byte, so what follows the first one tells nothing about a partition.
    let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (text, rest) = rest.split_at(length);
    let Ok(partition) = str::from_utf8(text) else { return (unknown, any_uid) };
    let uid = match rest.strip_prefix(end_of_text) {
        Some([INTEGER_TAG, number @ ..]) => number.first_chunk::<8>(),
        _ => None,
    };
    let uid = uid.map_or(any_uid, |bytes| (u64::from_be_bytes(*bytes) ^ (1 << 63)).cast_signed());
    (partition.to_owned(), uid)
}

/// Which ids of one inbox are in a range: those from `low` on and below `high`.
struct InboxIds {
    low: u64,
    high: u64,
    /// No inbox after this one has any, either.
    is_beyond_the_end: bool,
}

impl InboxIds {
    fn of(scan: &TableScan, inbox: Uid) -> InboxIds {
        let (start, end) = (first_from(&scan.start, inbox), first_from(&scan.end, inbox));
        let is_key = |bytes: &[u8], id| bytes == key_of(inbox, id);
        match scan.direction {
            Direction::Forward => InboxIds { low: start, high: end, is_beyond_the_end: end == 0 },
            Direction::Backward => InboxIds {
                low: end + u64::from(is_key(&scan.end, end)),
                high: start + u64::from(is_key(&scan.start, start)),
                is_beyond_the_end: end > MessageId::MAX.get(),
            },
        }
    }

    fn query(&self, direction: Direction, rows: usize) -> Option<RangeQuery> {
        let (start, end) = match direction {
            Direction::Forward => (Bound::Id(self.low), Bound::Id(self.high)),
            Direction::Backward => {
                let end = self.low.checked_sub(1).map_or(Bound::InfMin, Bound::Id);
                (Bound::Id(self.high.checked_sub(1)?), end)
            }
        };
        if self.low >= self.high {
            return None;
        }
        RangeQuery::new(start, end, direction, rows).ok()
    }

    /// The rest behind `last`.
    fn after(&self, last: MessageId, direction: Direction, rows: usize) -> Option<RangeQuery> {
        let rest = match direction {
            Direction::Forward => InboxIds { low: last.get() + 1, ..*self },
            Direction::Backward => InboxIds { high: last.get(), ..*self },
        };
        rest.query(direction, rows)
    }
}

/// The smallest id of `inbox` whose key is not below these bytes: 0 where all are above, and one above the largest id where none is.
fn first_from(bytes: &[u8], inbox: Uid) -> u64 {
    let beyond = MessageId::MAX.get() + 1;
    if key_of(inbox, 0).as_slice() >= bytes {
        return 0;
    }
    if key_of(inbox, beyond).as_slice() < bytes {
        return beyond;
    }
    // The keys of one inbox grow with the ids.
    let (mut low, mut high) = (0, beyond);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if key_of(inbox, middle).as_slice() >= bytes { high = middle } else { low = middle }
    }
    high
}
