//! The records of tables: how each type is written as JSON and read back. Keys and rows are base64 of their bytes.
//!
//! The written form is stored by others and must stay stable; `docs/EXPORT.md` describes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::values::time;
use crate::domain::PartitionKey;
use crate::store::archive::{CounterRecord, Record, TableRowRecord};
use crate::store::tables::{LARGEST_ASSIGNED, TableId, TableRecord};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableLine {
    #[serde(rename = "type")]
    tag: String,
    table: u64,
    instance: String,
    name: String,
    definition: Box<RawValue>,
    created_at: String,
    /// After which number new counters begin, where a restore has skipped some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begins_after: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CounterLine {
    #[serde(rename = "type")]
    tag: String,
    table: u64,
    partition_key: String,
    first: String,
    last_id: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableRowLine {
    #[serde(rename = "type")]
    tag: String,
    table: u64,
    partition_key: String,
    key: String,
    row: String,
}

/// The record as JSON; `null` for one that is none of a table.
pub(super) fn write(record: &Record) -> serde_json::Result<String> {
    match record {
        Record::Table(table, begins_after) => serde_json::to_string(&TableLine {
            tag: "table".into(),
            table: table.id.0,
            instance: table.instance.clone(),
            name: table.name.clone(),
            definition: RawValue::from_string(table.definition.clone())?,
            created_at: table.created_at.to_rfc3339(),
            begins_after: Some(*begins_after).filter(|number| *number > 0),
        }),
        Record::Counter(counter) => serde_json::to_string(&CounterLine {
            tag: "counter".into(),
            table: counter.table.0,
            partition_key: counter.partition_key.to_string(),
            first: STANDARD.encode(&counter.first),
            last_id: counter.last_id,
        }),
        Record::TableRow(row) => serde_json::to_string(&TableRowLine {
            tag: "table_row".into(),
            table: row.table.0,
            partition_key: row.partition_key.to_string(),
            key: STANDARD.encode(&row.key),
            row: STANDARD.encode(&row.row),
        }),
        _ => Ok("null".to_owned()),
    }
}

impl TableLine {
    pub(super) fn read(self) -> Result<Record, String> {
        let begins_after = self.begins_after.unwrap_or(0);
        if self.begins_after.is_some() {
            number(begins_after)?;
        }
        let table = TableRecord {
            id: table(self.table)?,
            instance: self.instance,
            name: self.name,
            definition: self.definition.get().to_owned(),
            created_at: time(&self.created_at)?,
        };
        Ok(Record::Table(table, begins_after))
    }
}

impl CounterLine {
    pub(super) fn read(self) -> Result<Record, String> {
        Ok(Record::Counter(CounterRecord {
            table: table(self.table)?,
            partition_key: partition_key(&self.partition_key)?,
            first: bytes(&self.first)?,
            last_id: number(self.last_id)?,
        }))
    }
}

impl TableRowLine {
    pub(super) fn read(self) -> Result<Record, String> {
        let key = bytes(&self.key)?;
        if key.is_empty() {
            return Err("a row of a table without a key".to_owned());
        }
        let (table, partition_key) = (table(self.table)?, partition_key(&self.partition_key)?);
        Ok(Record::TableRow(TableRowRecord { table, partition_key, key, row: bytes(&self.row)? }))
    }
}

fn table(number: u64) -> Result<TableId, String> {
    let is_one = (1..=LARGEST_ASSIGNED.cast_unsigned()).contains(&number);
    is_one
        .then_some(TableId(number))
        .ok_or_else(|| format!("table {number} is not between 1 and {LARGEST_ASSIGNED}"))
}

fn number(number: i64) -> Result<i64, String> {
    let is_one = (1..=LARGEST_ASSIGNED).contains(&number);
    is_one
        .then_some(number)
        .ok_or_else(|| format!("the number {number} is not between 1 and {LARGEST_ASSIGNED}"))
}

fn partition_key(text: &str) -> Result<PartitionKey, String> {
    PartitionKey::parse(text).ok_or_else(|| format!("`{text}` is not a partition key; expected 4 hex digits"))
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|why| format!("not base64: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timestamp;
    use crate::transfer::record::read;

    #[test]
    fn every_record_of_a_table_survives_the_way_out_and_in() {
        let (table, partition_key) = (TableId(4), PartitionKey::of_bytes(b"ann"));
        let made = TableRecord {
            id: table,
            instance: "shop".into(),
            name: "orders".into(),
            definition: "{\"key\":[]}".into(),
            created_at: Timestamp(5),
        };
        let (first, key) = (b"\x20ann\0\x01".to_vec(), vec![0, 0xff, b'\n']);
        let records = [
            Record::Table(made.clone(), 0),
            Record::Table(made, 10_000_000),
            Record::Counter(CounterRecord { table, partition_key, first, last_id: LARGEST_ASSIGNED }),
            Record::TableRow(TableRowRecord { table, partition_key, key: key.clone(), row: vec![] }),
            Record::TableRow(TableRowRecord { table, partition_key, key, row: vec![7; 1_000] }),
        ];
        for record in records {
            let text = write(&record).expect("JSON");
            assert!(!text.contains('\n'), "{text}");
            let tag = text.split('"').nth(3).expect("the type stands first");
            assert_eq!(format!("{:?}", read(tag, &text).expect("reads back")), format!("{record:?}"));
        }
    }

    #[test]
    fn what_no_table_can_hold_is_refused() {
        let row = r#"{"type":"table_row","table":4,"partition_key":"0a1b","key":"AA==","row":""}"#;
        let counter = r#"{"type":"counter","table":4,"partition_key":"0a1b","first":"AA==","last_id":12}"#;
        assert!(read("table_row", row).is_ok() && read("counter", counter).is_ok());
        for (tag, line, part, instead) in [
            ("table_row", row, ":4", ":0"),
            ("table_row", row, "0a1b", "0A1B"),
            ("table_row", row, "0a1b", "0a1b2"),
            ("table_row", row, "AA==", ""),
            ("table_row", row, "AA==", "AA="),
            ("counter", counter, "12", "0"),
            ("counter", counter, "12", "9007199254740992"),
        ] {
            let refused = read(tag, &line.replacen(part, instead, 1));
            assert!(refused.is_err(), "{instead}");
        }
    }
}
