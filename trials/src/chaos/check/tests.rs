//! Each promise, broken once: a checker that finds nothing proves nothing.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use tidemark_client::{Conversation, Draft, Kind, Sent};
use uuid::Uuid;

use super::*;
use crate::chaos::action::{Action, ActionOutcome, RowPlace};
use crate::chaos::record::{Acknowledged, Done, Settled, Watched};

const ANN: u32 = 1;
const BOB: u32 = 2;

fn row(receiver: u32, message_id: u64, sender: u32, name: u128) -> Entry {
    Entry {
        partition_key: "c4ca".to_owned(),
        receiver,
        message_id,
        kind: Kind::Message,
        conversation: Conversation::User(BOB),
        sender,
        client_id: Some(Uuid::from_u128(name)),
        body: RawValue::from_string(format!(r#"{{"text":"{name}"}}"#)).expect("JSON"),
        sent_at: "2026-01-01T00:00:00Z".to_owned(),
    }
}

fn record(uid: u32, acknowledged: &[(u64, u128)], rows: Vec<Entry>) -> PersonRecord {
    let acknowledge = |(message_id, name): &(u64, u128)| {
        let draft = Draft::text_as(Uuid::from_u128(*name), Recipient::User(BOB), &name.to_string());
        Acknowledged { message_id: *message_id, draft, quoted: None }
    };
    PersonRecord {
        uid,
        settled: Arc::new(Settled {
            acknowledged: acknowledged.iter().map(acknowledge).collect(),
            done: Vec::new(),
        }),
        watched: Watched { rows: rows.iter().map(|row| row.message_id).collect(), cleared: 0 },
        followed: rows.clone(),
        fetched: rows.clone(),
        ranged: rows,
        group: None,
    }
}

/// Ann sent two messages to Bob, and all is well.
fn well() -> Vec<PersonRecord> {
    vec![
        record(ANN, &[(5, 100), (9, 101)], vec![row(ANN, 5, ANN, 100), row(ANN, 9, ANN, 101)]),
        record(BOB, &[], vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101)]),
    ]
}

fn set_rows(record: &mut PersonRecord, rows: Vec<Entry>) {
    record.watched.rows = rows.iter().map(|row| row.message_id).collect();
    record.followed.clone_from(&rows);
    record.fetched.clone_from(&rows);
    record.ranged = rows;
}

fn broken_by(damage: impl FnOnce(&mut Vec<PersonRecord>)) -> Vec<String> {
    let mut records = well();
    damage(&mut records);
    broken_promises(&records, &Stage::default())
}

fn assert_reported(broken: &[String], words: &str) {
    assert!(broken.iter().any(|line| line.contains(words)), "{words} is not among {broken:?}");
}

#[test]
fn nothing_is_reported_when_all_is_well() {
    assert_eq!(broken_by(|_| {}), [""; 0]);
}

#[test]
fn an_acknowledged_message_that_is_missing_is_reported() {
    let broken = broken_by(|records| set_rows(&mut records[1], vec![row(BOB, 80, ANN, 101)]));
    assert_reported(&broken, "acknowledged and is missing");
}

#[test]
fn a_message_that_is_there_twice_is_reported() {
    let twice = vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101), row(BOB, 81, ANN, 101)];
    assert_reported(&broken_by(|records| set_rows(&mut records[1], twice)), "twice");
}

#[test]
fn a_message_from_nowhere_is_reported() {
    let more = vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101), row(BOB, 90, ANN, 102)];
    assert_reported(&broken_by(|records| set_rows(&mut records[1], more)), "never acknowledged");
}

#[test]
fn one_senders_messages_in_another_order_are_reported() {
    let swapped = vec![row(BOB, 70, ANN, 101), row(BOB, 80, ANN, 100)];
    assert_reported(&broken_by(|records| set_rows(&mut records[1], swapped)), "came after the later");
}

#[test]
fn an_id_that_goes_back_is_reported() {
    let back = vec![row(BOB, 80, ANN, 100), row(BOB, 80, ANN, 101)];
    assert_reported(&broken_by(|records| set_rows(&mut records[1], back)), "80 after 80");
}

#[test]
fn an_answer_with_another_id_than_the_row_is_reported() {
    let other = vec![row(ANN, 6, ANN, 100), row(ANN, 9, ANN, 101)];
    assert_reported(&broken_by(|records| set_rows(&mut records[0], other)), "was told that a message is 5");
}

#[test]
fn another_body_is_reported() {
    let mut changed = vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101)];
    changed[0].body = RawValue::from_string("{}".to_owned()).expect("JSON");
    assert_reported(&broken_by(|records| set_rows(&mut records[1], changed)), "another body");
}

#[test]
fn a_device_that_missed_a_row_is_reported() {
    assert_reported(&broken_by(|records| drop(records[1].followed.remove(0))), "lacks [70]");
    assert_reported(&broken_by(|records| drop(records[1].fetched.pop())), "a new device has 1 rows of 2");
}

#[test]
fn a_row_reported_twice_or_forgotten_is_reported() {
    assert_reported(&broken_by(|records| records[1].watched.rows.push(80)), "in another order or number");
    assert_reported(&broken_by(|records| records[1].watched.cleared = 1), "had to forget");
}

/// A row of Bob's inbox that Ann made.
fn made(message_id: u64, kind: Kind, conversation: Conversation, name: u128, body: Value) -> Entry {
    let body = RawValue::from_string(body.to_string()).expect("JSON");
    Entry { kind, conversation, body, ..row(BOB, message_id, ANN, name) }
}

fn place(conversation: Conversation, name: u128) -> RowPlace {
    RowPlace { conversation, message_id: 5, sender: ANN, client_id: Uuid::from_u128(name) }
}

/// The promises that break when Ann has done this, under the name 200, and these rows come to Bob's inbox behind the message 100.
fn after(action: Action, outcome: ActionOutcome, rows: Vec<Entry>) -> Vec<String> {
    broken_by(|records| {
        let done = vec![Done { action, key: Uuid::from_u128(200), outcome }];
        let acknowledged = records[0].settled.acknowledged.clone();
        records[0].settled = Arc::new(Settled { acknowledged, done });
        let first = vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101)];
        let all: Vec<Entry> = first.into_iter().chain(rows).collect();
        // The last row of an id is the one that is there now.
        let kept = all.iter().rev().fold(Vec::<Entry>::new(), |mut kept, row| {
            if kept.iter().all(|other| other.message_id != row.message_id) {
                kept.push(row.clone());
            }
            kept
        });
        let mut kept: Vec<Entry> = kept;
        kept.sort_by_key(|row| row.message_id);
        set_rows(&mut records[1], kept);
    })
}

fn done() -> ActionOutcome {
    ActionOutcome::Done(Some(Sent { message_id: 9, sent_at: String::new() }))
}

const WITH_BOB: Conversation = Conversation::User(BOB);

#[test]
fn an_edit_that_is_not_there_is_reported_and_one_without_an_answer_may_be_either() {
    let edit = || Action::Edit { at: place(WITH_BOB, 100), text: "new".to_owned() };
    assert_reported(&after(edit(), done(), Vec::new()), "message 70 of 1 has another body");
    let row = || made(70, Kind::Message, WITH_BOB, 100, json!({ "text": "new", "edited": true }));
    let of_bob =
        |broken: Vec<String>| broken.into_iter().filter(|line| line.starts_with("2:")).collect::<Vec<_>>();
    assert_eq!(of_bob(after(edit(), done(), vec![row()])), [""; 0]);
    for rows in [Vec::new(), vec![row()]] {
        assert_eq!(of_bob(after(edit(), ActionOutcome::Unknown, rows)), [""; 0]);
    }
    assert_reported(&after(edit(), ActionOutcome::Refused, vec![row()]), "another body");
}

#[test]
fn a_text_that_was_taken_back_and_is_there_is_reported() {
    let recall = || Action::Recall { at: place(WITH_BOB, 100) };
    assert_reported(
        &after(recall(), done(), Vec::new()),
        "\"100\" was taken back or deleted, and row 70 has it",
    );
    let of = json!({ "sender": ANN, "client_id": Uuid::from_u128(100) });
    let recalled = made(70, Kind::Recalled, WITH_BOB, 100, json!({ "recalled": true }));
    let edit = made(90, Kind::Edit, WITH_BOB, 201, json!({ "of": of, "body": { "text": "100" } }));
    assert_reported(&after(recall(), done(), vec![recalled.clone(), edit]), "row 90 has it");
    let left = after(recall(), done(), vec![recalled]);
    assert!(left.iter().all(|line| line.starts_with("1:")), "{left:?}");
}

#[test]
fn a_reaction_that_is_not_the_newest_is_reported() {
    let react = Action::React { at: place(WITH_BOB, 100), emoji: vec!["👍".to_owned()] };
    assert_reported(&after(react.clone(), done(), Vec::new()), "2: 1 reacts");
    let of = json!({ "sender": ANN, "client_id": Uuid::from_u128(100) });
    let other =
        |id: u64| made(id, Kind::Reaction, WITH_BOB, u128::from(id), json!({ "of": of, "emoji": ["🎉"] }));
    assert_reported(&after(react.clone(), done(), vec![other(90)]), "not what came last");
    assert_reported(&after(react, done(), vec![other(90), other(91)]), "two rows say: reaction");
}

#[test]
fn a_star_that_is_missing_or_was_taken_away_is_reported() {
    let star = |starred| Action::Star { at: place(WITH_BOB, 100), starred };
    assert_reported(&after(star(true), done(), Vec::new()), "1: the star of (1, ");
    let of = json!({ "sender": ANN, "client_id": Uuid::from_u128(100) });
    let row = |id: u64, starred| {
        let body = json!({ "of": of, "message_id": 5, "starred": starred });
        made(id, Kind::Star, WITH_BOB, u128::from(id), body)
    };
    let none = Action::Read { at: place(WITH_BOB, 100) };
    assert_reported(&after(none.clone(), ActionOutcome::Refused, vec![row(90, true)]), "2: the star of (1, ");
    assert_reported(
        &after(none, ActionOutcome::Refused, vec![row(90, true), row(91, false)]),
        "two rows say: star",
    );
}

#[test]
fn who_has_joined_may_have_what_came_before_and_must_have_what_comes_after() {
    const GROUP: u64 = 7;
    let in_group = |mut row: Entry| {
        row.conversation = Conversation::Group(GROUP);
        row
    };
    let added = |receiver: u32, message_id: u64| {
        let body = json!({ "action": "added", "group": GROUP, "uid": BOB });
        let row = made(message_id, Kind::Membership, Conversation::Group(GROUP), message_id.into(), body);
        Entry { receiver, ..row }
    };
    let joined = |of_bob: Vec<Entry>| {
        let mut records = well();
        for (record, own) in records.iter_mut().zip([vec![added(ANN, 12)], of_bob]) {
            let rows = [record.ranged.clone(), own].concat();
            set_rows(record, rows);
        }
        let said = [(11, 300), (13, 301)].map(|(message_id, name)| Acknowledged {
            message_id,
            draft: Draft::text_as(Uuid::from_u128(name), Recipient::Group(GROUP), &name.to_string()),
            quoted: None,
        });
        let mut all = vec![row(ANN, 11, ANN, 300), row(ANN, 13, ANN, 301)];
        all = all.into_iter().map(in_group).chain(records[0].ranged.clone()).collect();
        all.sort_by_key(|row| row.message_id);
        set_rows(&mut records[0], all);
        let settled = &mut records[0].settled;
        let acknowledged = settled.acknowledged.iter().cloned().chain(said).collect();
        *settled = Arc::new(Settled { acknowledged, done: Vec::new() });
        let joined = Joined { gid: GROUP, owner: ANN, joining: vec![BOB] };
        let groups = [(GROUP, vec![ANN])].into();
        broken_promises(&records, &Stage { groups, joined: Some(joined), ..Stage::default() })
    };
    let before_at = |id| in_group(row(BOB, id, ANN, 300));
    let after_at = |id| in_group(row(BOB, id, ANN, 301));
    let (before, after) = (before_at(81), after_at(83));
    assert_eq!(joined(vec![added(BOB, 82), after.clone()]), [""; 0]);
    assert_eq!(joined(vec![before.clone(), added(BOB, 82), after.clone()]), [""; 0]);
    assert_reported(&joined(vec![before.clone(), added(BOB, 82)]), "came after the joining and is missing");
    let early = vec![after_at(81), before_at(82), added(BOB, 83)];
    assert_eq!(joined(early), [""; 0]);
    let swapped = vec![added(BOB, 82), after_at(83), before_at(84)];
    assert_reported(&joined(swapped), "came after the later");
    let nobodys = vec![added(BOB, 82), after, in_group(row(BOB, 84, ANN, 302))];
    assert_reported(&joined(nobodys), "never acknowledged");
}

#[test]
fn wishes_settings_and_read_markers_that_are_not_there_are_reported() {
    let wish = Action::Befriend { uid: BOB, wanted: true };
    let broken = after(wish, done(), Vec::new());
    assert_reported(&broken, "1: that 1 wants to be a friend of 2 is false");
    assert_reported(&broken, "2: that 1 wants to be a friend of 2 is false");
    let pin = Action::Set { conversation: WITH_BOB, name: "pin", value: "{}".to_owned() };
    assert_reported(&after(pin, done(), Vec::new()), "pin of u:2 is None");
    let read = Action::Read { at: place(WITH_BOB, 100) };
    assert_reported(&after(read, ActionOutcome::Done(None), Vec::new()), "is read up to 0, not from 5 to 5");
}

#[test]
fn a_moment_that_is_missing_or_nobodys_is_reported() {
    let post = Action::Post { text: "m".to_owned() };
    assert_reported(&after(post, done(), Vec::new()), "acknowledged and is missing");
    let row = made(90, Kind::Moment, FEED, 300, json!({ "text": "m" }));
    let none = Action::Read { at: place(WITH_BOB, 100) };
    assert_reported(&after(none, ActionOutcome::Refused, vec![row]), "in the feed was never acknowledged");
}
