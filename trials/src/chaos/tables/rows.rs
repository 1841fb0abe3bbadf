//! Rows of a fault run: what is put, by whom, and what a reader gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell, ReceivedRow, decode_rows, encode_sent};
use tidemark_table::wire::proto;
use tidemark_table::{KeyValue, Value};
use tokio::sync::watch;
use tokio::time::sleep;

use super::check::{Attempt, Fate, ReadRow};
use super::client::{Called, TABLE, TableCaller};
use crate::{Failure, Result};

/// Values of the first key column.
pub(super) const GROUPS: usize = 6;
/// The longest pause between two puts of one writer.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The pause of a reader that has read everything.
const POLL: Duration = Duration::from_millis(5);

/// Counts what happens, so that "answered before another was begun" is a comparison of numbers.
pub(super) type Turns = Arc<AtomicU64>;

/// Puts rows until `stop` says so, and keeps account of each attempt.
pub(super) struct RowPutter {
    pub(super) client: TableCaller,
    /// Tells its attempts from those of others.
    pub(super) number: u32,
    pub(super) random: StdRng,
    pub(super) turns: Turns,
    pub(super) acknowledged: Arc<AtomicUsize>,
}

impl RowPutter {
    pub(super) async fn run(mut self, stop: watch::Receiver<bool>) -> Result<Vec<Attempt>> {
        let mut attempts = Vec::new();
        for n in 0.. {
            if *stop.borrow() {
                break;
            }
            let group = self.random.random_range(0..GROUPS);
            let number = i64::from(self.number) << 32 | n;
            let put = put(group, number);
            let begun = self.turns.fetch_add(1, Ordering::SeqCst);
            let fate = match self.client.call::<proto::WriteRowResponse>("PutRow", &put).await? {
                Called::Done(answer) => {
                    let answered = self.turns.fetch_add(1, Ordering::SeqCst);
                    let rows = rows_of(answer.row.as_deref().unwrap_or_default())?;
                    let id = rows.first().and_then(key_of).map(|(_, id)| id);
                    let id = id.ok_or_else(|| Failure::new("a put was answered without its key"))?;
                    self.acknowledged.fetch_add(1, Ordering::Relaxed);
                    Fate::Acknowledged { id, answered }
                }
                Called::Refused => Fate::Refused,
                Called::Unknown => Fate::Unknown,
            };
            attempts.push(Attempt { number, group, begun, fate });
            sleep(LONGEST_PAUSE.mul_f64(self.random.random_range(0.0..1.0))).await;
        }
        Ok(attempts)
    }
}

/// Reads a group from its last id on, again and again, until `stop` says so and there is nothing more.
pub(super) async fn follow(
    mut client: TableCaller,
    group: usize,
    seed: u64,
    stop: Arc<AtomicBool>,
) -> Result<Vec<ReadRow>> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut rows, mut last) = (Vec::new(), i64::MIN);
    loop {
        // The page that follows has all rows that were stored before this.
        let stopped = stop.load(Ordering::SeqCst);
        let from = key(group, KeyPart::Value(KeyValue::Integer(last.saturating_add(1))));
        let request = range(proto::RangeDirection::Forward, from, key(group, KeyPart::InfMax));
        let limit = Some(random.random_range(1..100));
        let request = proto::GetRangeRequest { limit, ..request };
        let page: proto::GetRangeResponse = client.ask("GetRange", &request).await?;
        let read = rows_of(&page.rows)?;
        if read.is_empty() {
            if stopped {
                return Ok(rows);
            }
            sleep(POLL).await;
        }
        for row in &read {
            let (_, row) = stored(row)?;
            last = last.max(row.id);
            rows.push(row);
        }
    }
}

/// All rows of the table, by group, in the order in which they come.
pub(super) async fn everything(client: &mut TableCaller) -> Result<Vec<Vec<ReadRow>>> {
    let mut groups = vec![Vec::new(); GROUPS];
    let bounds = |part: KeyPart| sent(vec![("group".into(), part.clone()), ("id".into(), part)], Vec::new());
    let request = range(proto::RangeDirection::Forward, bounds(KeyPart::InfMin), bounds(KeyPart::InfMax));
    for row in &pages(client, request).await? {
        let (group, row) = stored(row)?;
        groups[group].push(row);
    }
    Ok(groups)
}

/// The rows of a group, from the largest id to the smallest.
pub(super) async fn backward(client: &mut TableCaller, group: usize) -> Result<Vec<ReadRow>> {
    let (high, low) = (key(group, KeyPart::InfMax), key(group, KeyPart::InfMin));
    let read = pages(client, range(proto::RangeDirection::Backward, high, low)).await?;
    read.iter().map(|row| stored(row).map(|(_, row)| row)).collect()
}

async fn pages(client: &mut TableCaller, mut request: proto::GetRangeRequest) -> Result<Vec<ReceivedRow>> {
    let mut rows = Vec::new();
    loop {
        let page: proto::GetRangeResponse = client.ask("GetRange", &request).await?;
        rows.extend(rows_of(&page.rows)?);
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = Some(next),
            None => return Ok(rows),
        }
    }
}

fn range(direction: proto::RangeDirection, start: Vec<u8>, end: Vec<u8>) -> proto::GetRangeRequest {
    proto::GetRangeRequest {
        table_name: TABLE.to_owned(),
        direction: Some(direction as i32),
        max_versions: Some(1),
        inclusive_start_primary_key: Some(start),
        exclusive_end_primary_key: Some(end),
        ..proto::GetRangeRequest::default()
    }
}

fn put(group: usize, attempt: i64) -> proto::PutRowRequest {
    let column = |name: &str, value| ReceivedCell {
        name: name.to_owned(),
        value: Some(value),
        operation: None,
        timestamp: None,
    };
    let cells =
        vec![column("attempt", Value::Integer(attempt)), column("text", Value::String(text(attempt)))];
    let key = vec![("group".into(), group_part(group)), ("id".into(), KeyPart::AutoIncrement)];
    proto::PutRowRequest {
        table_name: TABLE.to_owned(),
        row: Some(sent(key, cells)),
        condition: Some(proto::Condition {
            row_existence: Some(proto::RowExistence::Ignore as i32),
            column_condition: None,
        }),
        return_content: Some(proto::ReturnContent {
            return_type: Some(proto::ReturnType::PrimaryKey as i32),
            return_column_names: Vec::new(),
        }),
        transaction_id: None,
    }
}

/// The text of a row: as long as chance has it, and another one for each attempt.
fn text(attempt: i64) -> String {
    format!("{attempt} ").repeat(usize::try_from(attempt % 97).unwrap_or_default())
}

fn group_part(group: usize) -> KeyPart {
    KeyPart::Value(KeyValue::String(format!("group {group}")))
}

fn key(group: usize, id: KeyPart) -> Vec<u8> {
    sent(vec![("group".into(), group_part(group)), ("id".into(), id)], Vec::new())
}

fn sent(key: Vec<(String, KeyPart)>, cells: Vec<ReceivedCell>) -> Vec<u8> {
    encode_sent(&ReceivedRow { key, cells, delete: false })
}

fn rows_of(bytes: &[u8]) -> Result<Vec<ReceivedRow>> {
    Ok(decode_rows(bytes)?)
}

/// A row's group and id.
fn key_of(row: &ReceivedRow) -> Option<(usize, i64)> {
    let [(_, KeyPart::Value(KeyValue::String(group))), (_, KeyPart::Value(KeyValue::Integer(id)))] =
        &row.key[..]
    else {
        return None;
    };
    let group = group.strip_prefix("group ")?.parse().ok().filter(|group| *group < GROUPS)?;
    Some((group, *id))
}

/// A row that was read, and its group.
fn stored(row: &ReceivedRow) -> Result<(usize, ReadRow)> {
    let (group, id) = key_of(row).ok_or_else(|| Failure::new(format!("a row has the key {:?}", row.key)))?;
    let [attempt, words] = &row.cells[..] else {
        return Err(Failure::new(format!("the row {id} of group {group} has {} columns", row.cells.len())));
    };
    let (Some(Value::Integer(attempt)), Some(Value::String(words))) = (&attempt.value, &words.value) else {
        return Err(Failure::new(format!("the row {id} of group {group} has columns of other types")));
    };
    Ok((group, ReadRow { id, attempt: *attempt, whole: *words == text(*attempt) }))
}
