//! A segment: what the texts of a range of ids have in them.
//!
//! Documents are numbered from the newest on. A part of terms has them in order, each with the letter of its class, with a
//! zero between two; the part of postings beside it has for each term the numbers of its documents, as differences. Stored; a change
//! needs another [`FORMAT`], with which everything is indexed again.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Indexed;
use super::bytes::{PackedNumbers, put};
use crate::domain::search::TermClass;
use crate::domain::{MessageId, Timestamp};
use crate::store::StoreError;

/// Of segments and of the terms in them.
pub const FORMAT: u8 = 1;

/// The build of segments of this format after so many rebuilds. Segments of a smaller one are made again.
pub fn build(rebuilds: u64) -> u64 {
    u64::from(FORMAT) << 48 | rebuilds
}

/// Bytes at which a part ends: of terms, and of postings beside them.
const TERMS: usize = 32 << 10;
const POSTINGS: usize = 64 << 10;

/// Milliseconds that a document's time is exact to.
const TIME_UNIT: i64 = 60_000;

/// The part with the documents.
pub const DOCUMENTS: u32 = 0;

/// Bytes of the checksum (CRC-32) at the end of a head and of each part.
const SUM: usize = 4;

/// Adds the checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// What was sealed.
fn opened(stored: &[u8]) -> Result<&[u8], StoreError> {
    let damaged = || StoreError::corrupt("the checksum of a part of the search index is wrong");
    let (bytes, sum) = stored.split_last_chunk::<SUM>().ok_or_else(damaged)?;
    if crc32fast::hash(bytes).to_le_bytes() == *sum { Ok(bytes) } else { Err(damaged()) }
}

/// A document: a row that can be found, or one that cannot be found any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// The id of the row.
    pub id: u64,
    /// When it was sent, in minutes since 1970 UTC, rounded down.
    pub minute: i64,
}

impl Document {
    /// That of a row.
    pub fn new(id: MessageId, sent_at: Timestamp) -> Document {
        Document { id: id.get(), minute: sent_at.0.div_euclid(TIME_UNIT) }
    }

    /// Whether it may have been sent in this time, from `from` to before `to`.
    pub fn may_be_within(minute: i64, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        from.is_none_or(|from| minute >= from.0.div_euclid(TIME_UNIT))
            && to.is_none_or(|to| minute * TIME_UNIT < to.0)
    }
}

/// What is known of a segment without its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentHead {
    /// [`FORMAT`].
    pub format: u8,
    /// The build that made it.
    pub build: u64,
    /// By which its parts are known.
    pub number: u64,
    /// It has all documents with ids from here …
    pub first_id: u64,
    /// … to here, as they stood when it was made.
    pub last_id: u64,
    /// How often it was merged.
    pub level: u8,
    /// Bytes of all parts.
    pub bytes: u64,
    /// Documents, also those with smaller ids that were changed after they were indexed.
    pub documents: u32,
    /// The smallest id of a document; `first_id` if there is none.
    pub least_id: u64,
    /// The time of the oldest document and that of the newest, in minutes.
    pub minutes: (i64, i64),
    /// The first term of each part of terms: `1, 3, 5 …`; the postings are the parts after them.
    pub first_terms: Vec<String>,
}

impl SegmentHead {
    /// The numbers of the parts of terms that may have terms from `from` to `to`, both inclusive.
    pub fn parts_between(&self, from: &str, to: &str) -> Vec<u32> {
        let begin = self.first_terms.partition_point(|first| **first <= *from).saturating_sub(1);
        let end = self.first_terms.partition_point(|first| **first <= *to);
        (begin..end).map(|at| 2 * at as u32 + 1).collect()
    }

    /// How far the inbox is indexed, if no segment is newer.
    pub fn indexed(&self) -> Indexed {
        Indexed { to: MessageId::new(self.last_id).unwrap_or(MessageId::MAX), build: self.build }
    }

    /// Reads one that was stored.
    ///
    /// # Errors
    /// When it is damaged, or another version of the program made it.
    pub fn read(stored: &[u8]) -> Result<SegmentHead, StoreError> {
        if stored.first().is_some_and(|format| *format != FORMAT) {
            return Err(StoreError::unavailable("another version of the program made the search index"));
        }
        postcard::from_bytes(opened(stored)?)
            .map_err(|error| StoreError::corrupt(format!("a head of the search index: {error}")))
    }

    /// Its stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        sealed(postcard::to_stdvec(self).expect("plain values"))
    }
}

/// A segment with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSegment {
    /// Its head.
    pub head: SegmentHead,
    /// Its parts, from 0 on.
    pub parts: Vec<Vec<u8>>,
}

/// What a segment is made as.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// As in [`SegmentHead`].
    pub build: u64,
    /// Likewise.
    pub number: u64,
    /// The range of ids.
    pub ids: (u64, u64),
    /// Likewise.
    pub level: u8,
}

/// Takes terms in order and puts a segment together.
pub struct Writer {
    parts: Vec<Vec<u8>>,
    first_terms: Vec<String>,
    terms: Vec<u8>,
    lengths: Vec<u8>,
    postings: Vec<u8>,
    count: u64,
}

impl Writer {
    /// Of these documents, the newest first.
    pub fn new(documents: &[Document]) -> Writer {
        let mut part = Vec::with_capacity(4 * documents.len() + 4);
        put(&mut part, documents.len() as u64);
        let mut before = Document { id: 0, minute: 0 };
        for (at, document) in documents.iter().enumerate() {
            put(&mut part, if at == 0 { document.id } else { before.id - document.id });
            // Times need not fall with the ids.
            put(&mut part, zigzag(document.minute.wrapping_sub(before.minute)));
            before = *document;
        }
        Writer {
            parts: vec![sealed(part)],
            first_terms: Vec::new(),
            terms: Vec::new(),
            lengths: Vec::new(),
            postings: Vec::new(),
            count: 0,
        }
    }

    /// The next term, and the numbers of its documents in order.
    pub fn term(&mut self, term: &str, documents: &[u32]) {
        match self.count {
            0 => self.first_terms.push(term.to_owned()),
            _ => self.terms.push(0),
        }
        self.terms.extend_from_slice(term.as_bytes());
        let from = self.postings.len();
        let mut next = 0;
        for &number in documents {
            put(&mut self.postings, u64::from(number - next));
            next = number + 1;
        }
        put(&mut self.lengths, (self.postings.len() - from) as u64);
        self.count += 1;
        if self.terms.len() >= TERMS || self.postings.len() >= POSTINGS {
            self.end_part();
        }
    }

    fn end_part(&mut self) {
        if self.count > 0 {
            let mut postings = Vec::with_capacity(self.lengths.len() + self.postings.len() + 4);
            put(&mut postings, self.count);
            postings.append(&mut self.lengths);
            postings.append(&mut self.postings);
            self.parts.push(sealed(std::mem::take(&mut self.terms)));
            self.parts.push(sealed(postings));
            self.count = 0;
        }
    }

    /// The segment.
    pub fn finish(mut self, making: Making, documents: &[Document]) -> NewSegment {
        self.end_part();
        let Making { build, number, ids: (first_id, last_id), level } = making;
        let minutes = documents.iter().map(|document| document.minute);
        let head = SegmentHead {
            format: FORMAT,
            build,
            number,
            first_id,
            last_id,
            level,
            bytes: self.parts.iter().map(|part| part.len() as u64).sum(),
            documents: documents.len() as u32,
            least_id: documents.last().map_or(first_id, |last| last.id.min(first_id)),
            minutes: (minutes.clone().min().unwrap_or(0), minutes.max().unwrap_or(0)),
            first_terms: self.first_terms,
        };
        NewSegment { head, parts: self.parts }
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Takes documents in any order, with their terms in any order.
#[derive(Default)]
pub struct Builder {
    documents: Vec<Document>,
    terms: HashMap<String, Vec<u32>>,
    term: String,
}

impl Builder {
    /// Another document, whose terms follow.
    pub fn document(&mut self, document: Document) {
        self.documents.push(document);
    }

    /// A term of the document that came last.
    pub fn term(&mut self, class: TermClass, term: &str) {
        let number = self.documents.len() as u32 - 1;
        self.term.clear();
        self.term.push(class.letter());
        self.term.push_str(term);
        match self.terms.get_mut(&self.term) {
            Some(documents) if documents.last() == Some(&number) => {}
            Some(documents) => documents.push(number),
            None => {
                self.terms.insert(self.term.clone(), vec![number]);
            }
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The segment.
    pub fn finish(self, making: Making) -> NewSegment {
        let mut order: Vec<u32> = (0..self.documents.len() as u32).collect();
        order.sort_unstable_by_key(|at| std::cmp::Reverse(self.documents[*at as usize].id));
        let mut numbers = vec![0; order.len()];
        (0..).zip(&order).for_each(|(number, at)| numbers[*at as usize] = number);
        let documents: Vec<Document> = order.iter().map(|at| self.documents[*at as usize]).collect();
        let mut terms: Vec<(String, Vec<u32>)> = self.terms.into_iter().collect();
        terms.sort_unstable();
        let mut writer = Writer::new(&documents);
        for (term, mut of) in terms {
            of.iter_mut().for_each(|at| *at = numbers[*at as usize]);
            of.sort_unstable();
            writer.term(&term, &of);
        }
        writer.finish(making, &documents)
    }
}

/// The documents of a segment, from its part [`DOCUMENTS`].
///
/// # Errors
/// When the part is damaged.
pub fn documents(part: &[u8]) -> Result<Vec<Document>, StoreError> {
    let part = opened(part)?;
    let mut numbers = PackedNumbers(part);
    let count = numbers.take()? as usize;
    if count > part.len() {
        return Err(StoreError::corrupt("a search index has fewer documents than it says"));
    }
    let mut documents = Vec::with_capacity(count);
    let mut before = Document { id: 0, minute: 0 };
    for at in 0..count {
        let step = numbers.take()?;
        let id = if at == 0 { step } else { before.id.wrapping_sub(step) };
        before = Document { id, minute: before.minute.wrapping_add(unzigzag(numbers.take()?)) };
        documents.push(before);
    }
    Ok(documents)
}

/// The terms of a part.
///
/// # Errors
/// When it is damaged.
pub fn terms(part: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(opened(part)?).map_err(StoreError::corrupt)
}

/// The postings of one part.
pub struct Postings<'a> {
    /// Where those of each term end.
    ends: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> Postings<'a> {
    /// Of a part that was read.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn new(part: &'a [u8]) -> Result<Postings<'a>, StoreError> {
        let part = opened(part)?;
        let mut numbers = PackedNumbers(part);
        let count = numbers.take()? as usize;
        if count > part.len() {
            return Err(StoreError::corrupt("a search index has fewer postings than it says"));
        }
        let (mut ends, mut end) = (Vec::with_capacity(count), 0usize);
        for _ in 0..count {
            end = end.saturating_add(numbers.take()? as usize);
            ends.push(end);
        }
        let bytes = numbers.0;
        if end != bytes.len() {
            return Err(StoreError::corrupt("a search index has postings of another length than it says"));
        }
        Ok(Postings { ends, bytes })
    }

    /// Calls `each` with the documents of the term at this place, in order.
    ///
    /// # Errors
    /// When there is no such term, or they are damaged.
    pub fn of(&self, at: usize, mut each: impl FnMut(u32)) -> Result<(), StoreError> {
        let end = *self
            .ends
            .get(at)
            .ok_or_else(|| StoreError::corrupt("a term of a search index has no postings"))?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let (mut numbers, mut next) = (PackedNumbers(&self.bytes[start..end]), 0u64);
        while !numbers.0.is_empty() {
            let number = next.saturating_add(numbers.take()?);
            each(u32::try_from(number).map_err(StoreError::corrupt)?);
            next = number + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
