//! The promises of tables, over what everybody saw: plain functions over plain values.
//!
//! - An acknowledged row is there, under the id that was told, with the cells that were put.
//! - An attempt without an answer led to one row or none, one that was refused to none. Nothing else is there.
//! - Within a group ids grow: a put that begins after an acknowledgement has a larger id.
//! - A reader that reads on from the last id has read everything, each row once.

use std::collections::HashMap;

/// A put.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Its own; the row says it.
    pub(super) number: i64,
    /// Into which group.
    pub(super) group: usize,
    /// When.
    pub(super) begun: u64,
    pub(super) fate: Fate,
}

/// The answer to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is durable, under this id.
    Acknowledged {
        /// The id.
        id: i64,
        /// When that was told.
        answered: u64,
    },
    /// Nothing was done.
    Refused,
    /// No answer, or one that leaves it open.
    Unknown,
}

/// A row that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRow {
    /// Its assigned number.
    pub(super) id: i64,
    /// The attempt that it names.
    pub(super) attempt: i64,
    /// Whether it has the text of this attempt.
    pub(super) whole: bool,
}

/// The attempts of a fault run, and the rows that were read; rows by group.
#[derive(Clone, Debug, Default)]
pub struct TableLedger {
    pub(super) attempts: Vec<Attempt>,
    /// The rows that are there in the end.
    pub(super) stored: Vec<Vec<ReadRow>>,
    /// The same, read from its end.
    pub(super) backward: Vec<Vec<ReadRow>>,
    /// The rows of a reader that was there all the time.
    pub(super) followed: Vec<Vec<ReadRow>>,
}

impl TableLedger {
    /// Everything that broke, in words; empty = every promise held.
    pub fn broken_promises(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let ids = self.check_rows(&mut broken);
        self.check_acknowledged(&ids, &mut broken);
        self.check_order(&ids, &mut broken);
        self.check_readers(&mut broken);
        broken
    }

    /// Acknowledged rows that are not there, of the first `earliest` acknowledgements.
    pub fn missing(&self, earliest: usize) -> usize {
        let of = |attempt: &Attempt| match attempt.fate {
            Fate::Acknowledged { id, answered } => Some((answered, attempt.group, id, attempt.number)),
            Fate::Refused | Fate::Unknown => None,
        };
        let mut told: Vec<_> = self.attempts.iter().filter_map(of).collect();
        told.sort_unstable();
        let is_there = |group: usize, id: i64, number: i64| {
            let rows = self.stored.get(group).map_or(&[][..], Vec::as_slice);
            rows.iter().any(|row| (row.id, row.attempt) == (id, number))
        };
        told.iter().take(earliest).filter(|(_, group, id, number)| !is_there(*group, *id, *number)).count()
    }

    /// Rows that are there.
    pub(super) fn rows(&self) -> usize {
        self.stored.iter().map(Vec::len).sum()
    }

    /// Looks at each row; returns under which id each attempt is there.
    fn check_rows(&self, broken: &mut Vec<String>) -> HashMap<i64, i64> {
        let attempts: HashMap<i64, &Attempt> = self.attempts.iter().map(|a| (a.number, a)).collect();
        let mut ids = HashMap::new();
        for (group, rows) in self.stored.iter().enumerate() {
            if let Some(pair) = rows.windows(2).find(|pair| pair[0].id >= pair[1].id) {
                broken.push(format!("group {group}: {} stands behind {}", pair[1].id, pair[0].id));
            }
            for row in rows {
                let name = format!("group {group}, id {}", row.id);
                let Some(attempt) = attempts.get(&row.attempt).filter(|attempt| attempt.group == group)
                else {
                    broken.push(format!("{name}: nobody put attempt {} there", row.attempt));
                    continue;
                };
                if !row.whole {
                    broken.push(format!("{name}: it has something else than was put"));
                }
                if attempt.fate == Fate::Refused {
                    broken.push(format!("{name}: attempt {} was refused, and is there", row.attempt));
                }
                if let Some(other) = ids.insert(row.attempt, row.id) {
                    broken.push(format!("{name}: attempt {} is there twice, also as {other}", row.attempt));
                }
            }
        }
        ids
    }

    fn check_acknowledged(&self, ids: &HashMap<i64, i64>, broken: &mut Vec<String>) {
        let mut told = HashMap::new();
        for attempt in &self.attempts {
            let Fate::Acknowledged { id, .. } = attempt.fate else { continue };
            let name = format!("group {}, attempt {}", attempt.group, attempt.number);
            match ids.get(&attempt.number) {
                None => broken.push(format!("{name}: {id} was acknowledged and is missing")),
                Some(found) if *found != id => {
                    broken.push(format!("{name}: was told that the row is {id}, but it is {found}"));
                }
                Some(_) => {}
            }
            if let Some(other) = told.insert((attempt.group, id), attempt.number) {
                broken.push(format!("{name}: {id} was told to attempt {other}, too"));
            }
        }
    }

    /// Also what was not answered must have come after what was acknowledged before it.
    fn check_order(&self, ids: &HashMap<i64, i64>, broken: &mut Vec<String>) {
        for group in 0..self.stored.len() {
            let mut begun: Vec<(u64, i64)> = Vec::new();
            let mut answered: Vec<(u64, i64)> = Vec::new();
            for attempt in self.attempts.iter().filter(|attempt| attempt.group == group) {
                let id = match attempt.fate {
                    Fate::Acknowledged { id, answered: at } => {
                        answered.push((at, id));
                        Some(id)
                    }
                    Fate::Refused | Fate::Unknown => ids.get(&attempt.number).copied(),
                };
                begun.extend(id.map(|id| (attempt.begun, id)));
            }
            begun.sort_unstable();
            answered.sort_unstable();
            let (mut next, mut largest) = (answered.into_iter().peekable(), i64::MIN);
            for (at, id) in begun {
                while let Some((_, earlier)) = next.next_if(|(answered, _)| *answered < at) {
                    largest = largest.max(earlier);
                }
                if id <= largest {
                    broken.push(format!(
                        "group {group}: {id} was put after {largest} was acknowledged, and is not larger"
                    ));
                }
            }
        }
    }

    fn check_readers(&self, broken: &mut Vec<String>) {
        for (group, stored) in self.stored.iter().enumerate() {
            for (read, reader) in
                [(&self.followed, "the reader that followed"), (&self.backward, "a reader from the end")]
            {
                let read = read.get(group).map_or(&[][..], Vec::as_slice);
                if read == stored {
                    continue;
                }
                let lacking = stored.iter().filter(|row| !read.contains(row)).take(5);
                let lacking: Vec<i64> = lacking.map(|row| row.id).collect();
                let counts = format!("{} rows of {}", read.len(), stored.len());
                broken.push(format!("group {group}: {reader} got {counts}; it lacks {lacking:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
