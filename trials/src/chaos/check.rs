//! The promises, over what everybody saw: plain functions over plain values.
//!
//! - Acknowledged means there, once, in the sender's inbox and in every recipient's (I3, I4, I5).
//! - Nothing else is there, and nothing twice.
//! - Ids increase in every inbox, as stored and as told (I1, I6); devices hold exactly what GetRange answers (I2).
//! - Every recipient sees one sender's messages in the order in which they were accepted (I12).
//! - Of what only says how things stand, the newest that was acknowledged is what is there (`actions`).

mod actions;
mod ledger;

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tidemark_client::{Entry, Recipient};

use super::contacts::Joined;
use super::record::{PersonRecord, is_message};
use super::stage::{Members, Stage};
use super::view::{EntryKey, FEED, InboxView, ShownState, differences};
use ledger::ActionLedger;

/// Rows that are shown of a difference.
const SHOWN: usize = 5;

/// Everything that broke, in words; empty = every promise held.
pub(super) fn broken_promises(records: &[PersonRecord], stage: &Stage) -> Vec<String> {
    let mut broken = Vec::new();
    let (owed, ledger) = (owed(records, &stage.groups), ActionLedger::of(records, stage));
    let views: Vec<InboxView> =
        records.iter().map(|record| InboxView::of(record.uid, &record.ranged)).collect();
    let none = OwedMessages::new();
    let visible = visible(records, stage);
    for (record, view) in records.iter().zip(&views) {
        check_order(record, &mut broken);
        check_devices(record, view, &mut broken);
        let owed = owed.get(&record.uid).unwrap_or(&none);
        let may_have = if is_joining(record.uid, stage) { &visible } else { &none };
        check_messages(record, view, (owed, may_have), stage, &ledger, &mut broken);
        actions::check_one(record, view, stage, &ledger, &mut broken);
    }
    check_joined(records, &views, stage, &mut broken);
    actions::check_all(records, &views, stage, &ledger, &mut broken);
    broken
}

fn is_joining(uid: u32, stage: &Stage) -> bool {
    stage.joined.as_ref().is_some_and(|joined| joined.joining.contains(&uid))
}

/// The messages that an inbox must hold: by sender and client_id, the id of the sender's own copy and the body.
type OwedMessages = HashMap<EntryKey, (u64, Value)>;

fn owed(records: &[PersonRecord], groups: &Members) -> HashMap<u32, OwedMessages> {
    let mut owed: HashMap<u32, OwedMessages> = HashMap::new();
    for record in records {
        for message in &record.settled.acknowledged {
            for uid in message.everybody(record.uid, groups) {
                let name = (record.uid, message.draft.client_id);
                owed.entry(uid).or_default().insert(name, (message.message_id, message.body()));
            }
        }
    }
    owed
}

/// The messages in the group that people join in the course of the run.
fn visible(records: &[PersonRecord], stage: &Stage) -> OwedMessages {
    let Some(joined) = &stage.joined else { return OwedMessages::new() };
    let said = records.iter().flat_map(|record| {
        let there = record.settled.acknowledged.iter();
        let there = there.filter(|message| message.draft.to == Recipient::Group(joined.gid));
        there.map(|message| ((record.uid, message.draft.client_id), (message.message_id, message.body())))
    });
    said.collect()
}

/// The row that says in this inbox that `uid` has joined.
fn added_at(view: &InboxView, joined: &Joined, uid: u32) -> Option<u64> {
    let mut added =
        view.memberships.iter().filter(|(_, body)| body["action"] == "added" && body["uid"] == uid);
    added.find(|(_, body)| body["group"] == joined.gid).map(|(id, _)| *id)
}

/// A member who joined has every message whose sender had been told of the joining.
fn check_joined(records: &[PersonRecord], views: &[InboxView], stage: &Stage, broken: &mut Vec<String>) {
    let Some(joined) = &stage.joined else { return };
    let of: HashMap<u32, &InboxView> = records.iter().map(|record| record.uid).zip(views).collect();
    let said = visible(records, stage);
    for uid in &joined.joining {
        let Some(view) = of.get(uid) else { continue };
        let told_at = |who: u32| added_at(of.get(&who)?, joined, *uid);
        for ((sender, client_id), (own_id, _)) in &said {
            let is_told = told_at(*sender).is_some_and(|told_at| *own_id > told_at);
            if is_told && !view.lines.contains_key(&(*sender, *client_id)) {
                broken.push(format!(
                    "{uid}: message {own_id} of {sender} came after the joining and is missing"
                ));
            }
        }
    }
}

fn check_order(record: &PersonRecord, broken: &mut Vec<String>) {
    for (rows, place) in [(&record.ranged, "GetRange"), (&record.followed, "the device")] {
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].message_id >= pair[1].message_id) {
            let (first, second) = (pair[0].message_id, pair[1].message_id);
            broken.push(format!("{}: {place} has {second} after {first}", record.uid));
        }
    }
}

/// How a row that one side lacks stands in a report.
fn shown(row: &Entry) -> String {
    format!("{row:?}")
}

fn check_devices(record: &PersonRecord, view: &InboxView, broken: &mut Vec<String>) {
    let (uid, stored) = (record.uid, &record.ranged);
    if record.fetched != *stored {
        let (theirs, ranged): (HashSet<_>, HashSet<_>) =
            (record.fetched.iter().map(shown).collect(), stored.iter().map(shown).collect());
        let counts = format!("{} rows of {}", record.fetched.len(), stored.len());
        let missing: Vec<_> = ranged.difference(&theirs).take(SHOWN).collect();
        let extra: Vec<_> = theirs.difference(&ranged).take(SHOWN).collect();
        broken
            .push(format!("{uid}: a new device has {counts}; it lacks {missing:?}, and alone has {extra:?}"));
    }
    // It followed, so that it has rows that made way for others since.
    let followed = InboxView::of(uid, &record.followed);
    let device = format!("{uid}: the device that was there");
    differences(&device, &record.followed, stored, (&followed, view), broken);
    let told = &record.watched.rows;
    if !told.iter().eq(record.followed.iter().map(|row| &row.message_id)) {
        broken.push(format!("{uid}: was told {} rows, in another order or number than stored", told.len()));
    }
    if record.watched.cleared > 0 {
        broken.push(format!("{uid}: the device had to forget rows {} times", record.watched.cleared));
    }
}

fn check_messages(
    record: &PersonRecord,
    view: &InboxView,
    (owed, may_have): (&OwedMessages, &OwedMessages),
    stage: &Stage,
    ledger: &ActionLedger,
    broken: &mut Vec<String>,
) {
    let uid = record.uid;
    let known = |key: &EntryKey| owed.get(key).or_else(|| may_have.get(key));
    for (sender, client_id) in &view.twice {
        broken.push(format!("{uid}: {client_id} of {sender} is there twice"));
    }
    for (key, line) in view.lines.iter().filter(|(_, line)| line.conversation != FEED) {
        let ((sender, _), id) = (key, line.message_id);
        let Some((own_id, body)) = known(key) else {
            broken.push(format!("{uid}: message {id} of {sender} was never acknowledged"));
            continue;
        };
        let may_be = ledger.message(uid, *key, body);
        if !may_be.contains(&line.state) {
            let is = match &line.state {
                ShownState::Said { .. } => "has another body than was sent",
                ShownState::Recalled => "is recalled",
                ShownState::Deleted => "is deleted",
            };
            let state = &line.state;
            broken.push(format!("{uid}: message {id} of {sender} {is}: {state:?}, and not {may_be:?}"));
        }
        if *sender == uid && id != *own_id {
            broken.push(format!("{uid}: was told that a message is {own_id}, but it is {id}"));
        }
    }
    // Messages from before a user joined a group come with the joining, and between two servers a newer one may come before them.
    let joined_at = stage.joined.as_ref().and_then(|joined| added_at(view, joined, uid));
    let mut newest_of: HashMap<(u32, bool), u64> = HashMap::new();
    for row in record.ranged.iter().filter(|row| is_message(row)) {
        let Some(client_id) = row.client_id else {
            broken.push(format!("{uid}: message {} has no client_id", row.message_id));
            continue;
        };
        let Some((own_id, _)) = known(&(row.sender, client_id)) else { continue };
        let joins = stage.joins(uid, row.conversation);
        if joins && joined_at.is_none_or(|joined_at| row.message_id < joined_at) {
            continue;
        }
        let newest = newest_of.entry((row.sender, joins)).or_default();
        if *own_id < *newest {
            let sender = row.sender;
            broken.push(format!("{uid}: of {sender}, message {own_id} came after the later {newest}"));
        }
        *newest = (*newest).max(*own_id);
    }
    for ((sender, client_id), (own_id, _)) in owed {
        if !view.lines.contains_key(&(*sender, *client_id)) {
            broken.push(format!("{uid}: message {own_id} of {sender} was acknowledged and is missing"));
        }
    }
}

#[cfg(test)]
mod tests;
