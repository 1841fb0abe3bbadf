//! The promises, over what everybody saw: plain functions over plain values.
//!
//! - Acknowledged means there, once, in the sender's inbox and in every recipient's (I3, I4, I5).
//! - Nothing else is there, and nothing twice.
//! - Ids increase in every inbox, as stored and as told (I1, I6); devices hold exactly what GetRange answers (I2).
//! - Every recipient sees one sender's messages in the order in which they were accepted (I12).

use std::collections::{HashMap, HashSet};

use tidemark_client::{Draft, Entry, Kind, Recipient};
use uuid::Uuid;

use super::person::Record;

/// Who is in which group, for the whole fault run.
pub(super) type Members = HashMap<u64, Vec<u32>>;

/// A message whose sender was told that it is durable.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    /// The id of the sender's own copy.
    pub(super) message_id: u64,
    pub(super) draft: Draft,
}

impl Acknowledged {
    /// Who must have it: the sender too, and nobody twice.
    pub(super) fn everybody(&self, sender: u32, groups: &Members) -> HashSet<u32> {
        let mut uids = match self.draft.to {
            Recipient::User(uid) => HashSet::from([uid]),
            Recipient::Group(gid) => groups.get(&gid).into_iter().flatten().copied().collect(),
        };
        uids.insert(sender);
        uids
    }
}

/// Everything that broke, in words; empty = every promise held.
pub(super) fn broken_promises(records: &[Record], groups: &Members) -> Vec<String> {
    let mut broken = Vec::new();
    let owed = owed(records, groups);
    for record in records {
        check_order(record, &mut broken);
        check_devices(record, &mut broken);
        check_content(record, owed.get(&record.uid), &mut broken);
    }
    broken
}

/// What each inbox must hold: by sender and client_id, the id of the sender's own copy and the body.
type Owed<'a> = HashMap<(u32, Uuid), (u64, &'a str)>;

fn owed<'a>(records: &'a [Record], groups: &Members) -> HashMap<u32, Owed<'a>> {
    let mut owed: HashMap<u32, Owed<'a>> = HashMap::new();
    for record in records {
        for message in &record.acknowledged {
            for uid in message.everybody(record.uid, groups) {
                let name = (record.uid, message.draft.client_id);
                owed.entry(uid).or_default().insert(name, (message.message_id, message.draft.body.get()));
            }
        }
    }
    owed
}

fn check_order(record: &Record, broken: &mut Vec<String>) {
    for (rows, place) in [(&record.ranged, "GetRange"), (&record.followed, "the device")] {
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].message_id >= pair[1].message_id) {
            let (first, second) = (pair[0].message_id, pair[1].message_id);
            broken.push(format!("{}: {place} has {second} after {first}", record.uid));
        }
    }
}

fn check_devices(record: &Record, broken: &mut Vec<String>) {
    let uid = record.uid;
    for (rows, device) in [(&record.followed, "the device that was there"), (&record.fetched, "a new device")]
    {
        if *rows != record.ranged {
            let ids = |rows: &[Entry]| rows.iter().map(|row| row.message_id).collect::<HashSet<_>>();
            let (theirs, stored) = (ids(rows), ids(&record.ranged));
            let mut missing: Vec<_> = stored.difference(&theirs).collect();
            let mut extra: Vec<_> = theirs.difference(&stored).collect();
            missing.sort_unstable();
            extra.sort_unstable();
            let counts = format!("{} rows of {}", rows.len(), record.ranged.len());
            broken
                .push(format!("{uid}: {device} has {counts}; it lacks {missing:?}, and alone has {extra:?}"));
        }
    }
    let reported = &record.watched.rows;
    if !reported.iter().eq(record.ranged.iter().map(|row| &row.message_id)) {
        broken
            .push(format!("{uid}: was told {} rows, in another order or number than stored", reported.len()));
    }
    if record.watched.cleared > 0 {
        broken.push(format!("{uid}: the device had to forget rows {} times", record.watched.cleared));
    }
}

fn check_content(record: &Record, owed: Option<&Owed<'_>>, broken: &mut Vec<String>) {
    let (uid, nothing) = (record.uid, Owed::new());
    let owed = owed.unwrap_or(&nothing);
    let mut found = HashSet::new();
    let mut newest_of: HashMap<u32, u64> = HashMap::new();
    for row in record.ranged.iter().filter(|row| row.kind == Kind::Message) {
        let (id, sender) = (row.message_id, row.sender);
        let Some(name) = row.client_id.map(|client_id| (sender, client_id)) else {
            broken.push(format!("{uid}: message {id} has no client_id"));
            continue;
        };
        let Some((own_id, body)) = owed.get(&name) else {
            broken.push(format!("{uid}: message {id} of {sender} was never acknowledged, or not for {uid}"));
            continue;
        };
        if !found.insert(name) {
            broken.push(format!("{uid}: message {own_id} of {sender} is there twice, again as {id}"));
        }
        if row.body.get() != *body {
            broken.push(format!("{uid}: message {id} of {sender} has another body than was sent"));
        }
        if sender == uid && id != *own_id {
            broken.push(format!("{uid}: was told that a message is {own_id}, but it is {id}"));
        }
        let newest = newest_of.entry(sender).or_default();
        if *own_id < *newest {
            broken.push(format!("{uid}: of {sender}, message {own_id} came after the later {newest}"));
        }
        *newest = (*newest).max(*own_id);
    }
    for ((sender, client_id), (own_id, _)) in owed {
        if !found.contains(&(*sender, *client_id)) {
            broken.push(format!("{uid}: message {own_id} of {sender} was acknowledged and is missing"));
        }
    }
}

#[cfg(test)]
mod tests;
