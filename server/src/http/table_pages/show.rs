//! Tables, rows and values as the views of crate `web` want them: plain, and cut to what a page shows. Pure.

use tidemark_table::hex::hex;
use tidemark_table::rows::capacity::of_cell;
use tidemark_table::{Cell, ColumnType, KeyColumnDefinition, KeyType, KeyValue, PrimaryKey, Row, Value};
use tidemark_web as web;

use super::place::row_address;
use crate::domain::Timestamp;
use crate::table::Described;

/// Characters of a value that are shown in a row among others; of bytes, half as many.
const SHORT: usize = 80;
/// The same in a row that is shown alone.
const LONG: usize = 32_768;
/// The most attribute columns of one page of rows; the others are counted.
const MOST_COLUMNS: usize = 16;
/// The most versions of columns of a row that is shown alone.
const MOST_CELLS: usize = 500;
/// Bytes of them after which no further one is shown.
const MOST_BYTES: u64 = 512 << 10;

/// The description of a table.
pub(super) fn table(table: &Described) -> web::TableAbout {
    let definition = &table.definition;
    let options = &definition.options;
    web::TableAbout {
        name: definition.name.clone(),
        is_inbox: table.is_inbox(),
        key: definition.key.iter().map(key_column).collect(),
        declared: definition
            .columns
            .iter()
            .map(|(name, kind)| (visible_text(name), column_type(*kind)))
            .collect(),
        time_to_live: match options.time_to_live {
            -1 => "for good".to_owned(),
            seconds => format!("for {}", duration(seconds.into())),
        },
        max_versions: options.max_versions,
        deviation: duration(options.deviation_seconds),
        allow_update: options.allow_update,
        created_at: table.created_at.and_then(time),
        example: example(table),
    }
}

/// A column of a key.
pub(super) fn key_column(column: &KeyColumnDefinition) -> web::KeyColumn {
    let kind = match column.kind {
        KeyType::Integer => "integer",
        KeyType::String => "string",
        KeyType::Binary => "binary",
    };
    web::KeyColumn { name: visible_text(&column.name), kind, auto_increment: column.auto_increment }
}

fn column_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer => "integer",
        ColumnType::Double => "double",
        ColumnType::Boolean => "boolean",
        ColumnType::String => "string",
        ColumnType::Blob => "binary",
    }
}

/// A command that puts a row.
fn example(table: &Described) -> String {
    if table.is_inbox() {
        return "partition=$(printf 10002 | md5sum | cut -c1-4)\n\
                tidemark table put inbox $partition 10002 + body='{\"text\":\"Your order is on its way\"}'"
            .to_owned();
    }
    let value = |column: &KeyColumnDefinition| match column.kind {
        KeyType::Integer if column.auto_increment => "+",
        KeyType::Integer => "1",
        KeyType::String => "ann",
        KeyType::Binary => "00ff",
    };
    let key: Vec<&str> = table.definition.key.iter().map(value).collect();
    format!("tidemark table put {} {} total=7", table.definition.name, key.join(" "))
}

/// Seconds in the largest unit that leaves no rest.
fn duration(seconds: i64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds % unit == 0).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// `2026-11-22 01:02:03.004 UTC`; `None`: beyond the calendar.
fn time(at: Timestamp) -> Option<String> {
    let text = at.to_rfc3339();
    let is_known = Timestamp::from_rfc3339(&text) == Some(at);
    is_known.then(|| format!("{} UTC", text.trim_end_matches('Z').replacen('T', " ", 1)))
}

/// A key, each value as far as `most` characters show it.
fn key_shown(key: &PrimaryKey, most: usize) -> Vec<web::Shown> {
    let value = |value: &KeyValue| match value {
        KeyValue::Integer(number) => whole("integer", number.to_string()),
        KeyValue::String(text) => of_text(text, most),
        KeyValue::Binary(bytes) => of_bytes(bytes, most),
    };
    key.iter().map(|(_, part)| value(part)).collect()
}

/// A key for the page of its row.
pub(super) fn key(table: &Described, key: &PrimaryKey) -> Vec<(web::KeyColumn, web::Shown)> {
    table.definition.key.iter().map(key_column).zip(key_shown(key, LONG)).collect()
}

fn shown(value: &Value, most: usize) -> web::Shown {
    match value {
        Value::Integer(number) => whole("integer", number.to_string()),
        Value::Double(number) => whole("double", format!("{number:?}")),
        Value::Boolean(value) => whole("boolean", value.to_string()),
        Value::String(text) => of_text(text, most),
        Value::Blob(bytes) => of_bytes(bytes, most),
    }
}

fn whole(kind: &'static str, text: String) -> web::Shown {
    web::Shown { text, kind, whole: None }
}

fn of_text(text: &str, most: usize) -> web::Shown {
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    let whole = end.map(|_| format!("{} characters", text.chars().count()));
    let text = visible_text(&text[..end.unwrap_or(text.len())]);
    web::Shown { text, kind: "string", whole }
}

fn of_bytes(bytes: &[u8], most: usize) -> web::Shown {
    let end = bytes.len().min(most / 2);
    let whole = (end < bytes.len()).then(|| format!("{} bytes", bytes.len()));
    web::Shown { text: hex(&bytes[..end]), kind: "binary", whole }
}

/// A text with its control characters as pictures.
pub(super) fn visible_text(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// A control character as its picture: browsers leave some out, and two values would look the same.
fn visible(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\0'..='\u{1f}' => char::from_u32(u32::from(character) + 0x2400).unwrap_or(character),
        '\u{7f}' => '\u{2421}',
        _ => character,
    }
}

/// Rows of one page. Each has its newest value of each column.
pub(super) fn rows(table: &Described, rows: &[Row]) -> (Vec<String>, Vec<web::RowLine>) {
    let mut columns: Vec<String> = Vec::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        if columns.len() < MOST_COLUMNS && !columns.contains(&cell.name) {
            columns.push(cell.name.clone());
        }
    }
    let line = |row: &Row| {
        let cell = |column: &String| {
            let at = row.cells.binary_search_by(|cell| cell.name.as_str().cmp(column));
            at.ok().map(|at| shown(&row.cells[at].value, SHORT))
        };
        let cells: Vec<_> = columns.iter().map(cell).collect();
        let more = row.cells.len() - cells.iter().flatten().count();
        let href = row_address(&table.definition.name, &row.key);
        web::RowLine { href, key: key_shown(&row.key, SHORT), cells, more }
    };
    let lines = rows.iter().map(line).collect();
    (columns.iter().map(|column| visible_text(column)).collect(), lines)
}

/// The cells of one row, as many as a page shows, and how many are left.
pub(super) fn cells(cells: &[Cell]) -> (Vec<web::CellLine>, &[Cell]) {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for cell in cells.iter().take(MOST_CELLS) {
        if bytes >= MOST_BYTES {
            break;
        }
        bytes += of_cell(cell).min(LONG as u64);
        lines.push(web::CellLine {
            name: visible_text(&cell.name),
            value: shown(&cell.value, LONG),
            time: time(Timestamp(cell.timestamp)),
            timestamp: cell.timestamp,
        });
    }
    let left = &cells[lines.len()..];
    (lines, left)
}

#[cfg(test)]
mod tests {
    use tidemark_table::TableDefinition;

    use super::*;

    #[test]
    fn numbers_keep_all_digits_and_bytes_are_hexadecimal() {
        for (value, text, kind) in [
            (Value::Integer(i64::MIN), "-9223372036854775808", "integer"),
            (Value::Double(0.1 + 0.2), "0.30000000000000004", "double"),
            (Value::Double(3.0), "3.0", "double"),
            (Value::Boolean(true), "true", "boolean"),
            (Value::Blob(vec![0, 255]), "00ff", "binary"),
            (Value::String("a\0b\u{7f}\n".into()), "a\u{2400}b\u{2421}\n", "string"),
        ] {
            let shown = shown(&value, SHORT);
            assert_eq!((shown.text.as_str(), shown.kind, shown.whole), (text, kind, None));
        }
    }

    #[test]
    fn what_is_long_is_cut_and_says_how_long_it_is() {
        let text = shown(&Value::String("é".repeat(100)), 10);
        assert_eq!((text.text, text.whole.as_deref()), ("é".repeat(10), Some("100 characters")));
        let bytes = shown(&Value::Blob(vec![1; 100]), 10);
        assert_eq!((bytes.text.as_str(), bytes.whole.as_deref()), ("0101010101", Some("100 bytes")));
        assert_eq!(shown(&Value::Blob(vec![1; 5]), 10).whole, None);
    }

    #[test]
    fn a_page_has_so_many_columns_and_a_row_so_many_cells() {
        let cell = |n: usize| Cell { name: format!("c{n:04}"), value: Value::Integer(1), timestamp: 1 };
        let row = Row { key: Vec::new(), cells: (0..20).map(cell).collect() };
        let definition = TableDefinition {
            name: "t".into(),
            key: Vec::new(),
            columns: Vec::new(),
            options: Default::default(),
            reserved: Default::default(),
        };
        let table = Described { definition, created_at: None };
        let (columns, lines) = rows(&table, &[row]);
        assert_eq!((columns.len(), lines[0].cells.len(), lines[0].more), (16, 16, 4));
        let many: Vec<Cell> = (0..1_000).map(cell).collect();
        let (lines, left) = cells(&many);
        assert_eq!((lines.len(), left.len(), left[0].name.as_str()), (500, 500, "c0500"));
        let large = Cell { name: "x".into(), value: Value::Blob(vec![0; 1 << 20]), timestamp: i64::MAX };
        let many = vec![large; 20];
        let (lines, left) = cells(&many);
        assert_eq!((lines.len(), left.len(), lines[0].time.as_deref()), (16, 4, None));
    }

    #[test]
    fn times_are_told_in_words() {
        assert_eq!(duration(86_400), "1 day");
        assert_eq!(duration(90_000), "25 hours");
        assert_eq!(duration(90_001), "90001 seconds");
        assert_eq!(time(Timestamp(1_795_309_323_004)).as_deref(), Some("2026-11-22 01:02:03.004 UTC"));
    }
}
