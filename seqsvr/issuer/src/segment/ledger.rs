//! The contents of the journal, line by line: which ranges a process took ahead, which of these it began, and which it used while the
//! database was away. Pure; `journal` keeps the lines in a file.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::range::Range;
use crate::repository::Extension;
use crate::tag::Tag;

/// Begins every line; stored, must stay stable.
const VERSION: &str = "1";

/// An event of a range. Its words are stored and must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeEvent {
    /// Taken from the database ahead of need.
    Ahead,
    /// Put in use, with the database there.
    Begun,
    /// Put in use while the database was away: the database must be told.
    Extended,
    /// The database was told.
    Reported,
    /// Given up unused.
    Void,
}

const WORDS: [(RangeEvent, &str); 5] = [
    (RangeEvent::Ahead, "ahead"),
    (RangeEvent::Begun, "begun"),
    (RangeEvent::Extended, "extended"),
    (RangeEvent::Reported, "told"),
    (RangeEvent::Void, "void"),
];

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub(crate) event: RangeEvent,
    pub(crate) tag: Tag,
    pub(crate) range: Range,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
}

impl JournalEntry {
    /// The line, with its checksum and its end.
    pub(crate) fn line(&self) -> String {
        let word = WORDS.iter().find(|(event, _)| *event == self.event).map_or("", |(_, word)| word);
        let Range { first, last } = self.range;
        let mut line = format!("{VERSION} {word} {} {first} {last} {}", self.tag, self.at);
        let checksum = checksum(&line);
        // Writing to a string cannot fail.
        let _ = writeln!(line, " {checksum}");
        line
    }

    /// Reads a line without its end; `None`: it is not whole.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (body, sum) = line.rsplit_once(' ')?;
        if sum != checksum(body) {
            return None;
        }
        let mut words = body.split(' ');
        let mut next = || words.next();
        if next()? != VERSION {
            return None;
        }
        let word = next()?;
        let (event, _) = WORDS.iter().find(|(_, known)| *known == word)?;
        let tag = Tag::new(next()?).ok()?;
        let (first, last, at) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        (first <= last).then_some(Self { event: *event, tag, range: Range { first, last }, at })
    }
}

/// The first 8 hexadecimal digits of the SHA-256.
fn checksum(body: &str) -> String {
    let digest = Sha256::digest(body.as_bytes());
    digest[..4].iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// The state after all lines, for each tag. Reading the same lines twice changes nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeLedger {
    tags: BTreeMap<Tag, BTreeMap<u64, HeldRange>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeldRange {
    range: Range,
    event: RangeEvent,
    at: u64,
}

impl RangeLedger {
    /// Takes note of a line.
    pub(crate) fn note(&mut self, entry: &JournalEntry) {
        let held = HeldRange { range: entry.range, event: entry.event, at: entry.at };
        let ranges = self.tags.entry(entry.tag.clone()).or_default();
        let known = ranges.entry(entry.range.first).or_insert(held);
        // A range only moves on: what was put in use is not ahead again.
        if rank(entry.event) > rank(known.event) {
            *known = held;
        }
    }

    /// The ranges of `tag` that were taken ahead and not put in use, in order.
    pub(crate) fn ahead(&self, tag: &Tag) -> VecDeque<Range> {
        self.of(tag, RangeEvent::Ahead).map(|held| held.range).collect()
    }

    /// The extensions of `tag` that the database must still be told about.
    pub(crate) fn unreported(&self, tag: &Tag) -> Vec<Extension> {
        let unreported = self.of(tag, RangeEvent::Extended);
        unreported.map(|held| Extension { tag: tag.clone(), range: held.range, used_at: held.at }).collect()
    }

    /// The lines that still matter.
    pub(crate) fn live(&self) -> Vec<JournalEntry> {
        let mut live = Vec::new();
        for tag in self.tags.keys() {
            for event in [RangeEvent::Ahead, RangeEvent::Extended] {
                let entries = self.of(tag, event);
                live.extend(entries.map(|held| JournalEntry {
                    event,
                    tag: tag.clone(),
                    range: held.range,
                    at: held.at,
                }));
            }
        }
        live
    }

    fn of(&self, tag: &Tag, event: RangeEvent) -> impl Iterator<Item = &HeldRange> {
        self.tags.get(tag).into_iter().flat_map(BTreeMap::values).filter(move |held| held.event == event)
    }
}

fn rank(event: RangeEvent) -> u8 {
    match event {
        RangeEvent::Ahead => 0,
        RangeEvent::Begun | RangeEvent::Extended | RangeEvent::Void => 1,
        RangeEvent::Reported => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = JournalEntry> {
        let event = proptest::sample::select(WORDS.map(|(event, _)| event).to_vec());
        let tag = proptest::sample::select(vec!["order", "user.id"]);
        (event, tag, 0_u64..5, any::<u64>()).prop_map(|(event, tag, part, at)| {
            let range = Range { first: part * 100 + 1, last: part * 100 + 100 };
            JournalEntry { event, tag: Tag::new(tag).unwrap(), range, at }
        })
    }

    proptest! {
        #[test]
        fn a_line_reads_as_it_was_written(entry in entry()) {
            prop_assert_eq!(JournalEntry::parse(entry.line().trim_end()), Some(entry));
        }

        #[test]
        fn a_line_with_a_wrong_byte_is_not_whole(entry in entry(), at: prop::sample::Index, byte in b' '..b'~') {
            let line = entry.line().trim_end().to_owned();
            let mut bytes = line.clone().into_bytes();
            bytes[at.index(line.len())] = byte;
            let changed = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(JournalEntry::parse(&changed).is_some(), changed == line);
        }

        #[test]
        fn reading_the_same_lines_twice_changes_nothing(entries in prop::collection::vec(entry(), 0..30)) {
            let mut once = RangeLedger::default();
            entries.iter().for_each(|entry| once.note(entry));
            let mut twice = RangeLedger::default();
            entries.iter().chain(&entries).for_each(|entry| twice.note(entry));
            for tag in ["order", "user.id"].map(|name| Tag::new(name).unwrap()) {
                prop_assert_eq!(once.ahead(&tag), twice.ahead(&tag));
                prop_assert_eq!(once.unreported(&tag), twice.unreported(&tag));
            }
        }
    }
}
