//! Random operations through the service, as bytes, against a model of what tables mean.

mod look;
mod rules;
mod stores;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidemark_table::wire::plain_buffer::{CellOperation, KeyPart, ReceivedCell};
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, Value};

use self::look::{Look, look, test};
use self::rules::{Change, Expect, Model, Refused, RowKey, Step, Write};
use super::World;
use super::client::{
    Answered, Client, Key, condition, create_request, integer, key, range_request, returning, row, rows, sent,
};
use crate::store::tables::TableStore;
use crate::table::Options;

const DAY: i64 = 86_400_000;

/// A thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Write(Write),
    Batch(Vec<Write>, bool),
    Get { row: RowKey, look: Look },
    Range { start: RowKey, end: RowKey, limit: i32, look: Look },
    Wait(i64),
}

fn group() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("x"), Just("y")]
}

fn column() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

/// Times are given as distances from now; few of them, so that versions meet.
fn step(of_put: bool) -> BoxedStrategy<Step> {
    let set = (column(), -3..9_i64, prop::option::of(-2..3_i64));
    let set = set.prop_map(|(column, value, time)| Step::Set(column, value, time));
    if of_put {
        return set.boxed();
    }
    prop_oneof![
        3 => set,
        1 => column().prop_map(Step::Lose),
        1 => (column(), -2..3_i64).prop_map(|(column, time)| Step::LoseOne(column, time)),
        2 => (column(), -3..9_i64).prop_map(|(column, by)| Step::Add(column, by)),
    ]
    .boxed()
}

fn write() -> impl Strategy<Value = Write> {
    let change = prop_oneof![
        3 => vec(step(true), 0..4).prop_map(Change::Put),
        3 => vec(step(false), 0..4).prop_map(Change::Update),
        1 => Just(Change::Delete),
    ];
    let expect = prop_oneof![4 => Just(Expect::Ignore), 1 => Just(Expect::There), 1 => Just(Expect::Missing)];
    let id = prop_oneof![1 => Just(None), 2 => (1..4_i64).prop_map(Some)];
    let test = prop_oneof![3 => Just(None), 1 => test().prop_map(Some)];
    (group(), id, change, expect, test).prop_map(|(group, id, change, expect, test)| Write {
        group,
        id,
        change,
        expect,
        test,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let key = || (group(), 0..6_i64);
    let get = (key(), look());
    let range = (key(), key(), 1..4_i32, look());
    prop_oneof![
        6 => write().prop_map(Event::Write),
        2 => (vec(write(), 1..6), any::<bool>()).prop_map(|(writes, is_atomic)| Event::Batch(writes, is_atomic)),
        2 => get.prop_map(|(row, look)| Event::Get { row, look }),
        2 => range.prop_map(|(start, end, limit, look)| Event::Range { start, end, limit, look }),
        2 => prop_oneof![4 => 0..3_i64, 1 => Just(DAY / 2)].prop_map(Event::Wait),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    vec(event(), 1..40)
}

/// The row of a write, as it is sent.
fn row_of(write: &Write) -> (proto::WriteType, Vec<u8>, Option<proto::Condition>) {
    let cell = |step: &Step| {
        let (name, value, operation, timestamp) = match *step {
            Step::Set(name, value, time) => (name, Some(value), None, time),
            Step::Lose(name) => (name, None, Some(CellOperation::DeleteAll), None),
            Step::LoseOne(name, time) => (name, None, Some(CellOperation::DeleteOne), Some(time)),
            Step::Add(name, by) => (name, Some(by), Some(CellOperation::Increment), None),
        };
        ReceivedCell { name: name.to_owned(), value: value.map(Value::Integer), operation, timestamp }
    };
    let (kind, cells) = match &write.change {
        Change::Put(steps) => (proto::WriteType::Put, steps.iter().map(cell).collect()),
        Change::Update(steps) => (proto::WriteType::Update, steps.iter().map(cell).collect()),
        Change::Delete => (proto::WriteType::Delete, Vec::new()),
    };
    let existence = match write.expect {
        Expect::Ignore => proto::RowExistence::Ignore,
        Expect::There => proto::RowExistence::ExpectExist,
        Expect::Missing => proto::RowExistence::ExpectNotExist,
    };
    let condition = condition(existence).map(|condition| proto::Condition {
        column_condition: write.test.map(|test| look::sent(test).encode_to_vec()),
        ..condition
    });
    let id = write.id.map_or(KeyPart::AutoIncrement, integer);
    (kind, sent(key(write.group, id), cells), condition)
}

/// The outcome of a write: the id of its row.
type Done = Result<i64, ErrorCode>;

fn id_of(bytes: Option<Vec<u8>>) -> i64 {
    match row(&bytes.expect("a row")).expect("a key").0[..] {
        [_, KeyValue::Integer(id)] => id,
        ref other => panic!("{other:?}"),
    }
}

/// The outcome of a write, and the cells in the answer.
async fn single(client: &Client, write: &Write) -> (Done, Vec<Answered>) {
    let (kind, bytes, condition) = row_of(write);
    let return_content = match &added(write)[..] {
        [] => returning(proto::ReturnType::PrimaryKey, &[]),
        columns => returning(proto::ReturnType::AfterModify, columns),
    };
    let request = proto::PutRowRequest {
        table_name: "t".to_owned(),
        row: Some(bytes),
        condition,
        return_content,
        transaction_id: None,
    };
    let operation = match kind {
        proto::WriteType::Put => "PutRow",
        proto::WriteType::Update => "UpdateRow",
        proto::WriteType::Delete => "DeleteRow",
    };
    let answer = client.call::<proto::WriteRowResponse>(operation, &request).await;
    match answer {
        Ok(answer) => {
            let answered = row(answer.row.as_deref().expect("a row")).expect("a key").1;
            (Ok(id_of(answer.row)), answered)
        }
        Err(error) => (Err(error.code), Vec::new()),
    }
}

/// The columns that an update adds to.
fn added(write: &Write) -> Vec<&'static str> {
    let Change::Update(steps) = &write.change else { return Vec::new() };
    let add = |step: &Step| if let Step::Add(column, _) = step { Some(*column) } else { None };
    let columns: std::collections::BTreeSet<_> = steps.iter().filter_map(add).collect();
    columns.into_iter().collect()
}

async fn batch(
    client: &Client,
    writes: &[Write],
    is_atomic: bool,
) -> Result<Vec<Result<i64, String>>, ErrorCode> {
    let rows = writes.iter().map(|write| {
        let (kind, bytes, condition) = row_of(write);
        let return_content = returning(proto::ReturnType::PrimaryKey, &[]);
        proto::RowInBatchWrite {
            r#type: Some(kind as i32),
            row_change: Some(bytes),
            condition,
            return_content,
        }
    });
    let table = proto::TableInBatchWrite { table_name: "t".to_owned(), rows: rows.collect() };
    let request =
        proto::BatchWriteRowRequest { tables: vec![table], transaction_id: None, is_atomic: Some(is_atomic) };
    let answer: proto::BatchWriteRowResponse =
        client.call("BatchWriteRow", &request).await.map_err(|error| error.code)?;
    let rows = answer.tables.into_iter().flat_map(|table| table.rows);
    let outcome = |row: proto::RowOfBatch| match row.error {
        None => Ok(id_of(row.row)),
        Some(error) => Err(error.code),
    };
    Ok(rows.map(outcome).collect())
}

/// Times in writes are distances from now until here.
fn timed(write: &Write, now: i64) -> Write {
    let timed = |step: &Step| match *step {
        Step::Set(column, value, time) => Step::Set(column, value, time.map(|time| now + time)),
        Step::LoseOne(column, time) => Step::LoseOne(column, now + time),
        ref step => step.clone(),
    };
    let change = match &write.change {
        Change::Put(steps) => Change::Put(steps.iter().map(timed).collect()),
        Change::Update(steps) => Change::Update(steps.iter().map(timed).collect()),
        Change::Delete => Change::Delete,
    };
    Write { change, ..write.clone() }
}

/// The model does what the service did.
fn follow(model: &mut Model, write: &Write, done: Result<i64, ErrorCode>, now: i64, latest: &mut [i64; 2]) {
    let assigned = done.ok().filter(|_| write.id.is_none());
    if let Some(number) = assigned {
        let latest = &mut latest[usize::from(write.group == "y")];
        assert!(number > *latest, "{number} after {latest}");
        *latest = number;
    }
    let wrong_key = !model.is_numbered && write.id.is_none();
    let expected = match model.write(write, assigned.or(Some(0)), now) {
        Ok(()) => Ok(()),
        // In a table without an auto-increment column the placeholder is a value of a wrong type.
        Err(Refused::Wrong) if wrong_key && done == Err(ErrorCode::InvalidPK) => Err(ErrorCode::InvalidPK),
        Err(Refused::Wrong) => Err(ErrorCode::ParameterInvalid),
        Err(Refused::Condition) => Err(ErrorCode::ConditionCheckFail),
    };
    assert_eq!(done.map(|_| ()), expected, "{write:?}");
}

fn code(name: &str) -> ErrorCode {
    let known = [
        ErrorCode::ParameterInvalid,
        ErrorCode::InvalidPK,
        ErrorCode::ConditionCheckFail,
        ErrorCode::DataOutOfRange,
    ];
    known.into_iter().find(|code| code.as_str() == name).unwrap_or_else(|| panic!("{name}"))
}

fn cells(answered: Vec<Answered>) -> Vec<(String, i64, i64)> {
    let number = |value| match value {
        Value::Integer(number) => number,
        other => panic!("{other:?}"),
    };
    answered.into_iter().map(|(name, value, time)| (name, time, number(value))).collect()
}

fn owned(cells: Vec<(&'static str, i64, i64)>) -> Vec<(String, i64, i64)> {
    cells.into_iter().map(|(name, time, value)| (name.to_owned(), time, value)).collect()
}

fn names(columns: &[&'static str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

async fn live(store: Arc<dyn TableStore>, instance: &str, mut model: Model, events: Vec<Event>) {
    let world = World::over(store, Options { table_operations: 1_000, ..Options::default() });
    let client = Client::of(&world.service, instance);
    let mut create = create_request("t", model.is_numbered);
    create.table_options = Some(proto::Options {
        max_versions: Some(model.versions as i32),
        time_to_live: model.ttl.map(|ttl| (ttl / 1_000) as i32),
        ..proto::Options::default()
    });
    let _: proto::CreateTableResponse = client.call("CreateTable", &create).await.expect("made");
    let mut latest = [0; 2];
    for event in events {
        let now = world.now.load(Ordering::Relaxed);
        match event {
            Event::Wait(milliseconds) => world.wait(milliseconds),
            Event::Write(write) => {
                let write = timed(&write, now);
                let (done, answered) = single(&client, &write).await;
                follow(&mut model, &write, done, now, &mut latest);
                let expected = done.map(|id| model.newest((write.group, id), &added(&write)));
                assert_eq!(cells(answered), owned(expected.unwrap_or_default()), "{write:?}");
            }
            Event::Batch(writes, is_atomic) => {
                let writes: Vec<Write> = writes.iter().map(|write| timed(write, now)).collect();
                let answers = batch(&client, &writes, is_atomic).await;
                follow_batch(&mut model, &writes, answers, is_atomic, now, &mut latest);
            }
            Event::Get { row: at, look } => {
                let look = look.at(now);
                let request = look.of_row(sent(key(at.0, integer(at.1)), Vec::new()));
                let answer: proto::GetRowResponse = client.call("GetRow", &request).await.expect("read");
                let expected = model.shown(at, &look, now).map(owned);
                let found = row(&answer.row).map(|(_, answered)| cells(answered));
                assert_eq!(found, expected, "{at:?}, {look:?}");
            }
            Event::Range { start, end, limit, look } => {
                let look = look.at(now);
                let keys = model.keys(start, end).into_iter();
                let shown = keys.filter_map(|at| Some((at, owned(model.shown(at, &look, now)?))));
                let shown: Vec<_> = shown.map(|((group, id), cells)| (group.to_owned(), id, cells)).collect();
                if start == end {
                    continue;
                }
                let asked = look.of_range(limit, range_request("t", start < end, Vec::new(), Vec::new()));
                let found = range(&client, asked, key_of(start), key_of(end)).await;
                assert_eq!(found, shown, "{start:?} to {end:?}, {look:?}");
            }
        }
    }
    world.service.stop().await;
}

fn key_of((group, id): RowKey) -> Key {
    key(group, integer(id))
}

type Found = (String, i64, Vec<(String, i64, i64)>);

/// All pages of a range.
async fn range(client: &Client, mut request: proto::GetRangeRequest, start: Key, end: Key) -> Vec<Found> {
    request.inclusive_start_primary_key = Some(sent(start, Vec::new()));
    request.exclusive_end_primary_key = Some(sent(end, Vec::new()));
    let mut found = Vec::new();
    loop {
        let answer: proto::GetRangeResponse = client.call("GetRange", &request).await.expect("read");
        let page = rows(&answer.rows);
        assert!(page.len() <= request.limit.expect("a limit") as usize);
        for (key, answered) in page {
            let [KeyValue::String(group), KeyValue::Integer(id)] = &key[..] else { panic!("{key:?}") };
            found.push((group.clone(), *id, cells(answered)));
        }
        let Some(next) = answer.next_start_primary_key else { return found };
        request.inclusive_start_primary_key = Some(next);
    }
}

fn follow_batch(
    model: &mut Model,
    writes: &[Write],
    answers: Result<Vec<Result<i64, String>>, ErrorCode>,
    is_atomic: bool,
    now: i64,
    latest: &mut [i64; 2],
) {
    let wrong_key = |write: &Write| !model.is_numbered && write.id.is_none();
    let is_bad = |write: &Write| {
        // An error beside the key refuses the whole batch.
        let with_key = Write { id: write.id.or(Some(1)), ..write.clone() };
        if wrong_key(write) { model.is_wrong(&with_key) } else { model.is_wrong(write) }
    };
    let answers = match answers {
        Err(code) => {
            assert_eq!(code, ErrorCode::ParameterInvalid);
            assert!(writes.iter().any(is_bad), "{writes:?}");
            return;
        }
        Ok(answers) => answers,
    };
    assert!(!writes.iter().any(is_bad), "{writes:?}");
    assert_eq!(answers.len(), writes.len());
    let answers = answers.into_iter().map(|answer| answer.map_err(|name| code(&name)));
    let mut done: Vec<(&Write, Done)> = writes.iter().zip(answers).collect();
    // Nobody can mean a row whose number is made by the same batch.
    done.sort_by_key(|(write, _)| write.id.is_none());
    if !is_atomic {
        done.into_iter().for_each(|(write, answer)| follow(model, write, answer, now, latest));
        return;
    }
    let (mut tried, mut unassigned) = (model.clone(), 0);
    let outcome = done.iter().try_for_each(|(write, answer)| {
        unassigned -= 1;
        tried.write(write, answer.ok().or(Some(unassigned)), now)
    });
    let expected = if writes.iter().any(wrong_key) {
        Some(ErrorCode::InvalidPK)
    } else if writes.iter().any(|write| write.group != writes[0].group) {
        Some(ErrorCode::DataOutOfRange)
    } else {
        outcome.err().map(|_| ErrorCode::ConditionCheckFail)
    };
    match expected {
        Some(code) => assert!(done.iter().all(|(_, answer)| *answer == Err(code)), "{done:?}"),
        None => done.into_iter().for_each(|(write, answer)| follow(model, write, answer, now, latest)),
    }
}
