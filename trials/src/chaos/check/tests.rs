//! Each promise, broken once: a checker that finds nothing proves nothing.

use serde_json::value::RawValue;
use tidemark_client::Conversation;

use super::*;
use crate::chaos::person::Watched;

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

fn record(uid: u32, acknowledged: &[(u64, u128)], rows: Vec<Entry>) -> Record {
    let acknowledge = |(message_id, name): &(u64, u128)| {
        let draft = Draft::text_as(Uuid::from_u128(*name), Recipient::User(BOB), &name.to_string());
        Acknowledged { message_id: *message_id, draft }
    };
    Record {
        uid,
        acknowledged: acknowledged.iter().map(acknowledge).collect(),
        watched: Watched { rows: rows.iter().map(|row| row.message_id).collect(), cleared: 0 },
        followed: rows.clone(),
        fetched: rows.clone(),
        ranged: rows,
    }
}

/// Ann sent two messages to Bob, and all is well.
fn well() -> Vec<Record> {
    vec![
        record(ANN, &[(5, 100), (9, 101)], vec![row(ANN, 5, ANN, 100), row(ANN, 9, ANN, 101)]),
        record(BOB, &[], vec![row(BOB, 70, ANN, 100), row(BOB, 80, ANN, 101)]),
    ]
}

fn set_rows(record: &mut Record, rows: Vec<Entry>) {
    record.watched.rows = rows.iter().map(|row| row.message_id).collect();
    record.followed.clone_from(&rows);
    record.fetched.clone_from(&rows);
    record.ranged = rows;
}

fn broken_by(damage: impl FnOnce(&mut Vec<Record>)) -> Vec<String> {
    let mut records = well();
    damage(&mut records);
    broken_promises(&records, &Members::new())
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
    assert_reported(&broken_by(|records| drop(records[1].followed.remove(0))), "it lacks [70]");
    assert_reported(&broken_by(|records| drop(records[1].fetched.pop())), "a new device has 1 rows of 2");
}

#[test]
fn a_row_reported_twice_or_forgotten_is_reported() {
    assert_reported(&broken_by(|records| records[1].watched.rows.push(80)), "in another order or number");
    assert_reported(&broken_by(|records| records[1].watched.cleared = 1), "had to forget");
}
