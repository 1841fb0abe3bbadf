//! Each promise, broken once: a checker that finds nothing proves nothing.

use super::*;

fn put(number: i64, begun: u64, fate: Fate) -> Attempt {
    Attempt { number, group: 0, begun, fate }
}

fn acknowledged(id: i64, answered: u64) -> Fate {
    Fate::Acknowledged { id, answered }
}

fn row(id: i64, attempt: i64) -> ReadRow {
    ReadRow { id, attempt, whole: true }
}

/// Two puts one after the other, one between them that was refused, and one at the same time as the second whose answer was lost.
fn well() -> TableLedger {
    let rows = vec![row(1, 100), row(2, 103), row(3, 101)];
    TableLedger {
        attempts: vec![
            put(100, 0, acknowledged(1, 1)),
            put(102, 2, Fate::Refused),
            put(101, 4, acknowledged(3, 6)),
            put(103, 5, Fate::Unknown),
            put(104, 7, Fate::Unknown),
        ],
        stored: vec![rows.clone()],
        backward: vec![rows.clone()],
        followed: vec![rows],
    }
}

fn with_rows(rows: Vec<ReadRow>) -> TableLedger {
    TableLedger { stored: vec![rows.clone()], backward: vec![rows.clone()], followed: vec![rows], ..well() }
}

#[track_caller]
fn assert_reported(ledger: &TableLedger, words: &str) {
    let broken = ledger.broken_promises();
    assert!(broken.iter().any(|line| line.contains(words)), "{words} is not among {broken:?}");
}

#[test]
fn nothing_is_reported_when_all_is_well() {
    assert_eq!(well().broken_promises(), [""; 0]);
    assert_eq!(well().rows(), 3);
}

#[test]
fn an_acknowledged_row_that_is_missing_or_elsewhere_is_reported() {
    assert_reported(&with_rows(vec![row(1, 100)]), "3 was acknowledged and is missing");
    let elsewhere = with_rows(vec![row(1, 100), row(4, 101)]);
    assert_reported(&elsewhere, "the row is 3, but it is 4");
    assert_eq!((elsewhere.missing(1), elsewhere.missing(2), well().missing(2)), (0, 1, 0));
}

#[test]
fn an_id_that_comes_twice_or_goes_back_is_reported() {
    let twice = vec![row(1, 100), row(3, 103), row(3, 101)];
    assert_reported(&with_rows(twice), "3 stands behind 3");
    let mut ledger = well();
    ledger.attempts[2].fate = acknowledged(1, 6);
    assert_reported(&ledger, "1 was told to attempt 100, too");
}

#[test]
fn a_later_put_with_a_smaller_id_is_reported() {
    let mut ledger = with_rows(vec![row(1, 101), row(3, 100)]);
    ledger.attempts[0].fate = acknowledged(3, 1);
    ledger.attempts[2].fate = acknowledged(1, 6);
    assert_reported(&ledger, "1 was put after 3 was acknowledged");
    // Nobody was told its id, and it is too small all the same.
    let ledger = with_rows(vec![row(1, 100), row(2, 104), row(3, 101)]);
    assert_reported(&ledger, "2 was put after 3 was acknowledged");
}

#[test]
fn what_an_attempt_leads_to_besides_one_row_is_reported() {
    assert_reported(&with_rows(vec![row(1, 100), row(3, 101), row(5, 104), row(6, 104)]), "is there twice");
    assert_reported(&with_rows(vec![row(1, 100), row(2, 102), row(3, 101)]), "was refused, and is there");
    assert_reported(&with_rows(vec![row(1, 100), row(3, 101), row(4, 999)]), "nobody put attempt 999");
    let mut other = with_rows(vec![row(1, 100), row(3, 101)]);
    other.stored[0][1].whole = false;
    assert_reported(&other, "something else than was put");
}

#[test]
fn a_row_in_another_group_is_reported() {
    let mut ledger = with_rows(vec![row(1, 100), row(3, 101)]);
    for rows in [&mut ledger.stored, &mut ledger.backward, &mut ledger.followed] {
        rows.push(vec![row(1, 103)]);
    }
    assert_reported(&ledger, "group 1, id 1: nobody put attempt 103 there");
}

#[test]
fn a_reader_that_missed_a_row_or_got_one_twice_is_reported() {
    let mut ledger = well();
    ledger.followed[0].remove(1);
    assert_reported(&ledger, "the reader that followed got 2 rows of 3; it lacks [2]");
    let mut ledger = well();
    ledger.followed[0].push(row(3, 101));
    assert_reported(&ledger, "the reader that followed got 4 rows of 3");
    let mut ledger = well();
    ledger.backward[0].pop();
    assert_reported(&ledger, "a reader from the end got 2 rows of 3; it lacks [3]");
}
