//! Values as people write and read them: words of the command line in, JSON out.

use serde_json::{Map, Value as Json, json};
use tidemark_table::hex::{hex, unhex};
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell, ReceivedRow};
use tidemark_table::wire::proto::{KeyColumn, KeyColumnOption, KeyColumnType};
use tidemark_table::{KeyValue, Value};

/// A word that stands for the value that the server assigns.
const ASSIGNED: &str = "+";

/// A value of a key column. Bytes are written in hexadecimal.
pub(super) fn key_part(column: &KeyColumn, word: &str) -> Result<KeyPart, String> {
    let name = &column.name;
    if word == ASSIGNED && column.option == Some(KeyColumnOption::AutoIncrement as i32) {
        return Ok(KeyPart::AutoIncrement);
    }
    let value = match column.r#type() {
        KeyColumnType::Integer => {
            let number = word.parse().map(KeyValue::Integer);
            number.map_err(|_| format!("{name} is an integer, and `{word}` is not"))?
        }
        KeyColumnType::String => KeyValue::String(word.to_owned()),
        KeyColumnType::Binary => {
            let bytes = unhex(word).map(KeyValue::Binary);
            bytes.ok_or_else(|| format!("{name} is bytes: write them in hexadecimal, not `{word}`"))?
        }
    };
    Ok(KeyPart::Value(value))
}

/// A column to put, `NAME=VALUE`. A value that reads as a number, `true` or `false` is one; everything else is a text, as is what stands in
/// JSON's quotation marks.
pub(super) fn column(word: &str) -> Result<ReceivedCell, String> {
    let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(format!("`{word}` is not a column; write NAME=VALUE"));
    };
    let value = match serde_json::from_str(value) {
        Ok(Json::Bool(value)) => Value::Boolean(value),
        Ok(Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(double)) => Value::Double(double),
            (None, None) => Value::String(value.to_owned()),
        },
        Ok(Json::String(text)) => Value::String(text),
        _ => Value::String(value.to_owned()),
    };
    Ok(ReceivedCell { name: name.to_owned(), value: Some(value), operation: None, timestamp: None })
}

/// A row as JSON: its key, and the newest version of each column.
pub(super) fn shown(row: &ReceivedRow) -> Json {
    let mut columns = Map::new();
    for cell in &row.cells {
        if let Some(value) = &cell.value {
            columns.entry(cell.name.clone()).or_insert_with(|| value_shown(value));
        }
    }
    json!({ "key": key_shown(row), "columns": columns })
}

/// A row's key as JSON.
pub(super) fn key_shown(row: &ReceivedRow) -> Json {
    let part = |(name, part): &(String, KeyPart)| {
        let value = match part {
            KeyPart::Value(KeyValue::Integer(number)) => json!(number),
            KeyPart::Value(KeyValue::String(text)) => json!(text),
            KeyPart::Value(KeyValue::Binary(bytes)) => json!({ "hex": hex(bytes) }),
            KeyPart::InfMin | KeyPart::InfMax | KeyPart::AutoIncrement => Json::Null,
        };
        (name.clone(), value)
    };
    Json::Object(row.key.iter().map(part).collect())
}

fn value_shown(value: &Value) -> Json {
    match value {
        Value::Integer(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Boolean(value) => json!(value),
        Value::String(text) => json!(text),
        Value::Blob(bytes) => json!({ "hex": hex(bytes) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: KeyColumnType, option: Option<KeyColumnOption>) -> KeyColumn {
        KeyColumn { name: "id".into(), r#type: Some(kind as i32), option: option.map(|option| option as i32) }
    }

    #[test]
    fn a_word_is_read_as_its_column_says() {
        let (integer, text) = (of(KeyColumnType::Integer, None), of(KeyColumnType::String, None));
        let assigned = of(KeyColumnType::Integer, Some(KeyColumnOption::AutoIncrement));
        assert_eq!(key_part(&integer, "-7"), Ok(KeyPart::Value(KeyValue::Integer(-7))));
        assert_eq!(key_part(&text, "+"), Ok(KeyPart::Value(KeyValue::String("+".to_owned()))));
        assert_eq!(key_part(&assigned, "+"), Ok(KeyPart::AutoIncrement));
        assert_eq!(key_part(&integer, "+"), Err("id is an integer, and `+` is not".to_owned()));
        let bytes = of(KeyColumnType::Binary, None);
        assert_eq!(key_part(&bytes, "00fF"), Ok(KeyPart::Value(KeyValue::Binary(vec![0, 255]))));
        for wrong in ["0", "0g", "é1"] {
            assert!(key_part(&bytes, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_column_is_what_its_value_reads_as() {
        for (word, value) in [
            ("n=3", Value::Integer(3)),
            ("n=1.5", Value::Double(1.5)),
            ("n=true", Value::Boolean(true)),
            ("n=\"3\"", Value::String("3".to_owned())),
            ("n=a=b", Value::String("a=b".to_owned())),
            ("n={\"text\":\"hi\"}", Value::String("{\"text\":\"hi\"}".to_owned())),
            ("n=", Value::String(String::new())),
        ] {
            assert_eq!(column(word).expect(word).value, Some(value), "{word}");
        }
        assert!(column("n").is_err() && column("=3").is_err());
    }
}
