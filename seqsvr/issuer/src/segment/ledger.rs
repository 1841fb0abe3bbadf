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
pub(crate) enum Event {
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

const WORDS: [(Event, &str); 5] = [
    (Event::Ahead, "ahead"),
    (Event::Begun, "begun"),
    (Event::Extended, "extended"),
    (Event::Reported, "told"),
    (Event::Void, "void"),
];

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) event: Event,
    pub(crate) tag: Tag,
    pub(crate) range: Range,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
}

impl Entry {
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
pub(crate) struct Ledger {
    tags: BTreeMap<Tag, BTreeMap<u64, Held>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    range: Range,
    event: Event,
    at: u64,
}

impl Ledger {
    /// Takes note of a line.
    pub(crate) fn note(&mut self, entry: &Entry) {
        let held = Held { range: entry.range, event: entry.event, at: entry.at };
        let ranges = self.tags.entry(entry.tag.clone()).or_default();
        let known = ranges.entry(entry.range.first).or_insert(held);
        // A range only moves on: what was put in use is not ahead again.
        if rank(entry.event) > rank(known.event) {
            *known = held;
        }
    }

    /// The ranges of `tag` that were taken ahead and not put in use, in order.
    pub(crate) fn ahead(&self, tag: &Tag) -> VecDeque<Range> {
        self.of(tag, Event::Ahead).map(|held| held.range).collect()
    }

    /// The extensions of `tag` that the database must still be told about.
    pub(crate) fn unreported(&self, tag: &Tag) -> Vec<Extension> {
        let unreported = self.of(tag, Event::Extended);
        unreported.map(|held| Extension { tag: tag.clone(), range: held.range, used_at: held.at }).collect()
    }

    /// The lines that still matter.
    pub(crate) fn live(&self) -> Vec<Entry> {
        let mut live = Vec::new();
        for tag in self.tags.keys() {
            for event in [Event::Ahead, Event::Extended] {
                let entries = self.of(tag, event);
                live.extend(entries.map(|held| Entry {
                    event,
                    tag: tag.clone(),
                    range: held.range,
                    at: held.at,
                }));
            }
        }
        live
    }

    fn of(&self, tag: &Tag, event: Event) -> impl Iterator<Item = &Held> {
        self.tags.get(tag).into_iter().flat_map(BTreeMap::values).filter(move |held| held.event == event)
    }
}

fn rank(event: Event) -> u8 {
    match event {
        Event::Ahead => 0,
        Event::Begun | Event::Extended | Event::Void => 1,
        Event::Reported => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let event = proptest::sample::select(WORDS.map(|(event, _)| event).to_vec());
        let tag = proptest::sample::select(vec!["order", "user.id"]);
        (event, tag, 0_u64..5, any::<u64>()).prop_map(|(event, tag, part, at)| {
            let range = Range { first: part * 100 + 1, last: part * 100 + 100 };
            Entry { event, tag: Tag::new(tag).unwrap(), range, at }
        })
    }

    proptest! {
        #[test]
        fn a_line_reads_as_it_was_written(entry in entry()) {
            prop_assert_eq!(Entry::parse(entry.line().trim_end()), Some(entry));
        }

        #[test]
        fn a_line_with_a_wrong_byte_is_not_whole(entry in entry(), at: prop::sample::Index, byte in b' '..b'~') {
            let line = entry.line().trim_end().to_owned();
            let mut bytes = line.clone().into_bytes();
            bytes[at.index(line.len())] = byte;
            let changed = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(Entry::parse(&changed).is_some(), changed == line);
        }

        #[test]
        fn reading_the_same_lines_twice_changes_nothing(entries in prop::collection::vec(entry(), 0..30)) {
            let mut once = Ledger::default();
            entries.iter().for_each(|entry| once.note(entry));
            let mut twice = Ledger::default();
            entries.iter().chain(&entries).for_each(|entry| twice.note(entry));
            for tag in ["order", "user.id"].map(|name| Tag::new(name).unwrap()) {
                prop_assert_eq!(once.ahead(&tag), twice.ahead(&tag));
                prop_assert_eq!(once.unreported(&tag), twice.unreported(&tag));
            }
        }
    }
}
