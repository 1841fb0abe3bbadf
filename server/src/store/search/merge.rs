//! Several neighbouring segments into one. Pure.

use std::collections::HashMap;

use super::segment::{
    DOCUMENTS, Document, Making, NewSegment, Postings, SegmentHead, Writer, documents, terms,
};
use crate::store::StoreError;

/// Neighbours of one level become one segment of the next when there are so many.
pub const FAN: usize = 16;

/// Segments of this level stay as they are.
const HIGHEST: u8 = 2;

/// Bytes of the segments that are merged at once, unless they are two.
const MOST_BYTES: u64 = 32 << 20;

/// Which of these segments, newest first, are to be merged into one, if any: the oldest first.
pub fn due(segments: &[SegmentHead]) -> Vec<&SegmentHead> {
    let mut run: Vec<&SegmentHead> = Vec::new();
    for head in segments.iter().rev() {
        if run.first().is_some_and(|first| first.level != head.level) {
            run.clear();
        }
        if head.level < HIGHEST {
            run.push(head);
        }
        if run.len() == FAN {
            let mut bytes = 0;
            let fits = |(at, head): &(usize, &&SegmentHead)| {
                bytes += head.bytes;
                bytes <= MOST_BYTES || *at < 2
            };
            let count = run.iter().enumerate().take_while(fits).count();
            run.truncate(count);
            return run;
        }
    }
    Vec::new()
}

/// What a merged segment is made as.
pub fn making(run: &[&SegmentHead], build: u64, number: u64) -> Option<Making> {
    let (first, last) = (run.first()?, run.last()?);
    Some(Making { build, number, ids: (first.first_id, last.last_id), level: first.level + 1 })
}

/// Merges segments, given by their parts, the oldest first. Of a document that several have the newest counts. Documents up to `gone` have
/// expired and are left out, and so are those that cannot be found any more, unless an older segment has them, too.
///
/// # Errors
/// When one of them is damaged.
pub fn merge(segments: &[Vec<Vec<u8>>], making: Making, gone: u64) -> Result<NewSegment, StoreError> {
    let mut newest: HashMap<u64, usize> = HashMap::new();
    let mut lists = Vec::with_capacity(segments.len());
    for (at, parts) in segments.iter().enumerate() {
        let part = parts
            .get(DOCUMENTS as usize)
            .ok_or_else(|| StoreError::corrupt("a search index lacks a part"))?;
        let list = documents(part)?;
        newest.extend(list.iter().map(|document| (document.id, at)));
        lists.push(list);
    }
    let mut kept: Vec<(usize, u32, Document)> = Vec::with_capacity(newest.len());
    for (at, list) in lists.iter().enumerate() {
        let of = (0..).zip(list).filter(|(_, document)| newest[&document.id] == at && document.id > gone);
        kept.extend(of.map(|(number, document)| (at, number, *document)));
    }
    let all = terms_of(segments)?;
    let postings = postings_of(segments)?;
    let mut has_terms: Vec<Vec<bool>> = lists.iter().map(|list| vec![false; list.len()]).collect();
    for (_, segment, part, place) in &all {
        postings_in(&postings, *segment, *part)?.of(*place, |number| {
            if let Some(has) = has_terms[*segment].get_mut(number as usize) {
                *has = true;
            }
        })?;
    }
    kept.retain(|(at, number, document)| has_terms[*at][*number as usize] || document.id < making.ids.0);
    kept.sort_unstable_by_key(|(_, _, document)| std::cmp::Reverse(document.id));
    let mut numbers: Vec<Vec<Option<u32>>> = lists.iter().map(|list| vec![None; list.len()]).collect();
    for (number, (at, before, _)) in (0..).zip(&kept) {
        numbers[*at][*before as usize] = Some(number);
    }
    let merged: Vec<Document> = kept.into_iter().map(|(_, _, document)| document).collect();
    let mut writer = Writer::new(&merged);
    let (mut at, mut of) = (0, Vec::new());
    while let Some((term, ..)) = all.get(at) {
        of.clear();
        while let Some((next, segment, part, place)) = all.get(at)
            && next == term
        {
            let (numbers, postings) = (&numbers[*segment], postings_in(&postings, *segment, *part)?);
            postings.of(*place, |number| of.extend(numbers.get(number as usize).copied().flatten()))?;
            at += 1;
        }
        of.sort_unstable();
        if !of.is_empty() {
            writer.term(term, &of);
        }
    }
    Ok(writer.finish(making, &merged))
}

/// The postings of all segments, those of each in the order of their parts.
fn postings_of(segments: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<Postings<'_>>>, StoreError> {
    segments
        .iter()
        .map(|parts| parts.iter().skip(2).step_by(2).map(|part| Postings::new(part)).collect())
        .collect()
}

fn postings_in<'a>(
    postings: &'a [Vec<Postings<'a>>],
    segment: usize,
    part: usize,
) -> Result<&'a Postings<'a>, StoreError> {
    postings[segment].get(part).ok_or_else(|| StoreError::corrupt("a search index lacks a part"))
}

/// A term, in which segment it is, by which of its parts of postings, and its place there.
type PlacedTerm<'a> = (&'a str, usize, usize, usize);

/// The terms of all segments in order.
fn terms_of(segments: &[Vec<Vec<u8>>]) -> Result<Vec<PlacedTerm<'_>>, StoreError> {
    let mut all = Vec::new();
    for (at, parts) in segments.iter().enumerate() {
        for (part, bytes) in parts.iter().skip(1).step_by(2).enumerate() {
            all.extend(terms(bytes)?.split('\0').enumerate().map(|(place, term)| (term, at, part, place)));
        }
    }
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::search::TermClass;
    use crate::store::search::segment::Builder;

    fn head(number: u64, level: u8, bytes: u64) -> SegmentHead {
        let making = Making { build: 0, number, ids: (number, number), level };
        let head = Builder::default().finish(making).head;
        SegmentHead { bytes, ..head }
    }

    fn numbers(due: &[&SegmentHead]) -> Vec<u64> {
        due.iter().map(|head| head.number).collect()
    }

    #[test]
    fn sixteen_neighbours_of_a_level_are_merged_and_the_highest_stay() {
        let newest_first = |levels: &[u8]| -> Vec<SegmentHead> {
            (1..)
                .zip(levels)
                .map(|(number, level)| head(number, *level, 1))
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect()
        };
        assert!(due(&newest_first(&[0; 15])).is_empty());
        assert_eq!(numbers(&due(&newest_first(&[0; 17]))), (1..=16).collect::<Vec<_>>());
        let mut levels = vec![2; 40];
        levels.extend([1; 3]);
        levels.extend([0; 16]);
        assert_eq!(numbers(&due(&newest_first(&levels))), (44..=59).collect::<Vec<_>>());
        let large: Vec<_> = (1..=16).rev().map(|number| head(number, 1, 20 << 20)).collect();
        assert_eq!(numbers(&due(&large)), [1, 2], "bounded, and never one alone");
    }

    fn segment(ids: (u64, u64), texts: &[(u64, &[&str])]) -> Vec<Vec<u8>> {
        let mut builder = Builder::default();
        for (id, words) in texts {
            builder.document(Document { id: *id, minute: 0 });
            words.iter().for_each(|word| builder.term(TermClass::Word, word));
        }
        builder.finish(Making { build: 0, number: 1, ids, level: 0 }).parts
    }

    fn merged(segments: &[Vec<Vec<u8>>], ids: (u64, u64), gone: u64) -> NewSegment {
        merge(segments, Making { build: 0, number: 9, ids, level: 1 }, gone).expect("whole")
    }

    #[test]
    fn the_newest_form_of_a_document_counts_and_what_is_gone_goes() {
        let old = segment((10, 19), &[(10, &["a", "b"]), (11, &["a"]), (12, &["a", "secret"])]);
        let new = segment((20, 29), &[(20, &["b"]), (11, &["c"]), (12, &[]), (4, &[]), (5, &["a"])]);
        let both = merged(&[old.clone(), new.clone()], (10, 29), 0);
        // 12 was taken back; 4, too, but an older segment may have it.
        assert_eq!(
            both.parts,
            segment((10, 29), &[(4, &[]), (5, &["a"]), (10, &["a", "b"]), (11, &["c"]), (20, &["b"])])
        );
        assert_eq!(
            (both.head.first_id, both.head.last_id, both.head.least_id, both.head.level),
            (10, 29, 4, 1)
        );
        let later = merged(&[old, new], (10, 29), 10);
        assert_eq!(later.parts, segment((10, 29), &[(11, &["c"]), (20, &["b"])]));
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let mut damaged = segment((1, 9), &[(1, &["a"]), (2, &["b"])]);
        damaged[2].pop();
        let making = Making { build: 0, number: 9, ids: (1, 9), level: 1 };
        assert!(merge(&[damaged], making, 0).is_err());
        assert!(merge(&[Vec::new()], making, 0).is_err());
    }
}
