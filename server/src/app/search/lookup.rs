//! Which documents of a segment may be what is looked for.

use std::collections::BTreeMap;

use crate::domain::search::{TermClass, TermPart};
use crate::domain::{Timestamp, Uid};
use crate::store::search::segment::{DOCUMENTS, Document, Postings, SegmentHead, documents, terms};
use crate::store::{SearchIndex, StoreError};
use crate::workers::aside;

/// What a document must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Terms; those that are named whole first.
    pub(super) parts: &'a [TermPart],
    /// Sent then or later.
    pub(super) from: Option<Timestamp>,
    /// Sent before then.
    pub(super) to: Option<Timestamp>,
    /// With a smaller id.
    pub(super) below: u64,
}

impl Wanted<'_> {
    /// Whether a segment may have any such document.
    pub(super) fn may_be_in(&self, head: &SegmentHead) -> bool {
        let (oldest, newest) = head.minutes;
        head.documents > 0
            && head.least_id < self.below
            && Document::may_be_within(newest, self.from, None)
            && Document::may_be_within(oldest, None, self.to)
    }
}

/// The ids of such documents, the largest first, and how many bytes were read; `None`: the segment is not there any more.
///
/// # Errors
/// When the index does not answer, or it is damaged.
pub(super) async fn candidates(
    index: &dyn SearchIndex,
    uid: Uid,
    head: &SegmentHead,
    wanted: Wanted<'_>,
) -> Result<Option<(Vec<u64>, usize)>, StoreError> {
    let mut look = Look { index, uid, head, parts: BTreeMap::new() };
    let mut found: Option<Numbers> = None;
    for part in wanted.parts {
        let Some(places) = look.places(part).await? else { return Ok(None) };
        let Some(numbers) = look.numbers(&places).await? else { return Ok(None) };
        let both = found.map_or(numbers.clone(), |found| found.and(&numbers));
        if both.is_empty() {
            return Ok(Some((Vec::new(), look.all_bytes())));
        }
        found = Some(both);
    }
    if !look.fetch(&[DOCUMENTS]).await? {
        return Ok(None);
    }
    let part = look.part(DOCUMENTS)?;
    let is_wanted = |(number, document): &(usize, Document)| {
        document.id < wanted.below
            && Document::may_be_within(document.minute, wanted.from, wanted.to)
            && found.as_ref().is_none_or(|found| found.has(*number))
    };
    let ids = || {
        let documents = documents(part)?.into_iter().enumerate().filter(is_wanted);
        Ok(Some((documents.map(|(_, document)| document.id).collect(), look.all_bytes())))
    };
    aside(part.len(), ids).await
}

struct Look<'a> {
    index: &'a dyn SearchIndex,
    uid: Uid,
    head: &'a SegmentHead,
    /// Those that were read.
    parts: BTreeMap<u32, Vec<u8>>,
}

impl Look<'_> {
    /// Reads parts that are not read yet. `false`: the segment is not there any more.
    async fn fetch(&mut self, wanted: &[u32]) -> Result<bool, StoreError> {
        let missing: Vec<u32> =
            wanted.iter().copied().filter(|part| !self.parts.contains_key(part)).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let Some(read) = self.index.parts(self.uid, self.head.number, &missing).await? else {
            return Ok(false);
        };
        self.parts.extend(missing.into_iter().zip(read));
        Ok(true)
    }

    fn part(&self, part: u32) -> Result<&[u8], StoreError> {
        let part = self.parts.get(&part).map(|part| &**part);
        part.ok_or_else(|| StoreError::corrupt("a search index lacks a part"))
    }

    fn all_bytes(&self) -> usize {
        self.parts.values().map(Vec::len).sum()
    }

    fn bytes(&self, parts: &[u32]) -> Result<usize, StoreError> {
        parts.iter().map(|part| Ok(self.part(*part)?.len())).sum()
    }

    /// The terms that have it: their parts, and their places there.
    async fn places(&mut self, part: &TermPart) -> Result<Option<Vec<(u32, Vec<usize>)>>, StoreError> {
        let numbers = match part {
            TermPart::Whole(class, term) => {
                let term = term_of(*class, term);
                self.head.parts_between(&term, &term)
            }
            TermPart::Within(class, _) => {
                self.head.parts_between(&term_of(*class, ""), &term_of(*class, "\u{10ffff}"))
            }
        };
        if !self.fetch(&numbers).await? {
            return Ok(None);
        }
        let bytes = self.bytes(&numbers)?;
        let all = || {
            let mut found = Vec::new();
            for number in numbers {
                let terms = terms(self.part(number)?)?;
                let places = match part {
                    TermPart::Whole(class, term) => {
                        let term = term_of(*class, term);
                        terms.split('\0').position(|one| one == term).into_iter().collect()
                    }
                    TermPart::Within(class, part) => places_with(terms, class.letter(), part),
                };
                if !places.is_empty() {
                    found.push((number, places));
                }
            }
            Ok(Some(found))
        };
        aside(bytes, all).await
    }

    /// The documents of the terms at these places.
    async fn numbers(&mut self, places: &[(u32, Vec<usize>)]) -> Result<Option<Numbers>, StoreError> {
        let parts: Vec<u32> = places.iter().map(|(part, _)| part + 1).collect();
        if !self.fetch(&parts).await? {
            return Ok(None);
        }
        let bytes = self.bytes(&parts)?;
        let all = || {
            let mut numbers = Numbers::new(self.head.documents as usize);
            for (part, places) in places {
                let postings = Postings::new(self.part(part + 1)?)?;
                for place in places {
                    postings.of(*place, |number| numbers.add(number as usize))?;
                }
            }
            Ok(Some(numbers))
        };
        aside(bytes, all).await
    }
}

/// As it stands in a segment.
fn term_of(class: TermClass, term: &str) -> String {
    format!("{}{term}", class.letter())
}

/// The places of those terms of this class that have `part` in them.
fn places_with(terms: &str, class: char, part: &str) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let (mut place, mut from) = (0, 0);
    for (at, _) in terms.match_indices(part) {
        place += terms[from..at].bytes().filter(|byte| *byte == 0).count();
        from = at;
        if places.last() != Some(&place) {
            let start = terms[..at].rfind('\0').map_or(0, |zero| zero + 1);
            if terms[start..].starts_with(class) {
                places.push(place);
            }
        }
    }
    places
}

/// A set of numbers of documents.
#[derive(Clone, Debug)]
struct Numbers(Vec<u64>);

impl Numbers {
    /// Below `count`, none yet.
    fn new(count: usize) -> Numbers {
        Numbers(vec![0; count.div_ceil(64)])
    }

    fn add(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn and(mut self, other: &Numbers) -> Numbers {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
        self
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::search::{SearchWords, each_term, fold};
    use crate::store::search::MemoryIndex;
    use crate::store::search::segment::{Builder, Making};

    fn parts_of(search: &str) -> Vec<TermPart> {
        SearchWords::new(search).expect(search).term_parts()
    }

    /// The third character of a text is its minute; ids fall from 100 on.
    async fn found(
        texts: &[&str],
        parts: &[TermPart],
        from: Option<i64>,
        to: Option<i64>,
        below: u64,
    ) -> Vec<u64> {
        let (index, uid) = (MemoryIndex::default(), Uid(1));
        let mut builder = Builder::default();
        for (minute, text) in texts.iter().enumerate() {
            builder.document(Document { id: 100 + minute as u64, minute: minute as i64 });
            each_term(&fold(text), |class, term| builder.term(class, term));
        }
        let segment = builder.finish(Making { build: 0, number: 7, ids: (100, 199), level: 0 });
        let head = segment.head.clone();
        assert_eq!(index.replace(uid, &[], Some(segment)).await, Ok(true));
        let time = |minute: Option<i64>| minute.map(|minute| Timestamp(minute * 60_000));
        let wanted = Wanted { parts, from: time(from), to: time(to), below };
        candidates(&index, uid, &head, wanted).await.expect("whole").expect("there").0
    }

    const TEXTS: [&str; 6] = ["low tide", "High tides", "去北京", "北 京", "wwww aide-de-camp", "Wide"];

    #[tokio::test]
    async fn a_segment_names_the_documents_with_all_words() {
        for (search, ids) in [
            ("tide", vec![101, 100]),
            ("IDE", vec![105, 104, 101, 100]),
            ("hi ide", vec![101]),
            ("www", vec![104]),
            ("北京", vec![102]),
            ("京", vec![103, 102]),
            ("no", vec![]),
        ] {
            assert_eq!(found(&TEXTS, &parts_of(search), None, None, 999).await, ids, "{search}");
        }
        assert_eq!(found(&TEXTS, &[], None, None, 103).await, [102, 101, 100]);
    }

    #[tokio::test]
    async fn times_and_ids_bound_them() {
        let ide = parts_of("ide");
        assert_eq!(found(&TEXTS, &ide, Some(1), Some(5), 999).await, [104, 101]);
        assert_eq!(found(&TEXTS, &ide, None, None, 104).await, [101, 100]);
    }

    #[tokio::test]
    async fn a_segment_that_is_gone_is_told() {
        let head = Builder::default().finish(Making { build: 0, number: 7, ids: (1, 9), level: 0 }).head;
        let head = SegmentHead { documents: 1, first_terms: vec!["Wa".to_owned()], ..head };
        let wanted = Wanted { parts: &parts_of("a"), from: None, to: None, below: 9 };
        assert_eq!(candidates(&MemoryIndex::default(), Uid(1), &head, wanted).await, Ok(None));
    }
}
