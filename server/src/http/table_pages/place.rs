//! Places in a table as they stand in addresses and forms: a value for each column of the key, in `k1` to `k4`, and in `go` where to look
//! from there. Texts stand as they are, integers in decimal, bytes in hexadecimal. Pure.

use std::fmt::Write as _;

use serde::Deserialize;
use tidemark_table::hex::{hex, unhex};
use tidemark_table::operations::check::MAX_KEY_VALUE;
use tidemark_table::rows::key::BoundValue;
use tidemark_table::{KeyColumnDefinition, KeyType, KeyValue, PrimaryKey, TableDefinition};

use crate::domain::Uid;
use crate::table::Described;

/// The most columns of a key.
pub(super) const FIELDS: [&str; 4] = ["k1", "k2", "k3", "k4"];

/// The query of an address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Query {
    k1: Option<String>,
    k2: Option<String>,
    k3: Option<String>,
    k4: Option<String>,
    #[serde(default)]
    go: Go,
    /// Of a row: the first column that is shown.
    pub(super) column: Option<String>,
}

/// Where to look. A form sends the first two, with as many columns of a key as are filled in; links have a whole key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Go {
    /// From there on.
    #[default]
    From,
    /// Up to there.
    To,
    /// From this key on, or only behind it.
    At,
    After,
    /// Up to this key, or only before it.
    Until,
    Before,
}

/// A place where rows are looked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowsPlace {
    /// Whether the rows from there on are asked for, not those up to there.
    pub(super) forward: bool,
    /// Where to begin, inclusive.
    pub(super) start: Vec<BoundValue>,
    /// This one is left out.
    pub(super) except: Option<PrimaryKey>,
}

/// The place of a field, and the problem with it.
pub(super) type Wrong = (usize, String);

impl Query {
    fn typed(&self) -> [Option<&str>; 4] {
        [&self.k1, &self.k2, &self.k3, &self.k4].map(|typed| typed.as_deref())
    }

    /// The typed value of a form's field; empty after a link, since links move on from the typed place.
    pub(super) fn field(&self, at: usize) -> &str {
        match self.go {
            Go::From | Go::To => self.typed()[at].unwrap_or_default(),
            Go::At | Go::After | Go::Until | Go::Before => "",
        }
    }

    /// Whether the rows up to the key are asked for.
    pub(super) fn is_upward(&self) -> bool {
        matches!(self.go, Go::To | Go::Until | Go::Before)
    }

    /// Whether it names no key.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.go, Go::From | Go::To)
            && self.typed().iter().all(|typed| typed.is_none_or(str::is_empty))
    }

    /// The key of a row.
    pub(super) fn key(&self, definition: &TableDefinition) -> Result<PrimaryKey, Wrong> {
        let typed = self.typed();
        let value = |(at, column): (usize, &KeyColumnDefinition)| {
            let value = key_value(column, typed[at].unwrap_or_default()).map_err(|why| (at, why))?;
            Ok((column.name.clone(), value))
        };
        definition.key.iter().enumerate().map(value).collect()
    }

    /// Where to look for rows.
    pub(super) fn place(&self, table: &Described) -> Result<RowsPlace, Wrong> {
        let forward = !self.is_upward();
        let definition = &table.definition;
        if !matches!(self.go, Go::From | Go::To) {
            let key = self.key(definition)?;
            let start = key.iter().map(|(_, value)| BoundValue::Value(value.clone())).collect();
            let except = matches!(self.go, Go::After | Go::Before).then_some(key);
            return Ok(RowsPlace { forward, start, except });
        }
        let mut typed = self.typed().map(|typed| typed.unwrap_or_default().to_owned());
        if let (true, "", Ok(uid)) = (table.is_inbox(), typed[0].trim(), typed[1].trim().parse()) {
            typed[0] = Uid(uid).partition_key().as_str().to_owned();
        }
        let filled = typed[..definition.key.len().min(FIELDS.len())]
            .iter()
            .rposition(|typed| !typed.is_empty())
            .map_or(0, |last| last + 1);
        let mut start = Vec::with_capacity(definition.key.len());
        for (at, column) in definition.key.iter().enumerate() {
            start.push(match (at < filled, typed[at].as_str()) {
                (true, "") => {
                    let why = format!("Fill in {} as well: the rows are ordered by it first.", column.name);
                    return Err((at, why));
                }
                (true, text) => BoundValue::Value(key_value(column, text).map_err(|why| (at, why))?),
                (false, _) if forward => BoundValue::InfMin,
                (false, _) => BoundValue::InfMax,
            });
        }
        Ok(RowsPlace { forward, start, except: None })
    }
}

/// A value of a key column.
fn key_value(column: &KeyColumnDefinition, text: &str) -> Result<KeyValue, String> {
    let (value, length) = match column.kind {
        KeyType::Integer => {
            let digits = text.trim();
            let number = digits.parse().map(KeyValue::Integer).map_err(|_| {
                let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
                match !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => format!("Integers go from {} to {}.", i64::MIN, i64::MAX),
                    false => "Write an integer, such as 42.".to_owned(),
                }
            })?;
            (number, 0)
        }
        KeyType::String => (KeyValue::String(text.to_owned()), text.len()),
        KeyType::Binary => {
            let bytes = unhex(text.trim());
            let bytes = bytes.ok_or("Write bytes as pairs of hexadecimal digits, such as 00ff.")?;
            let length = bytes.len();
            (KeyValue::Binary(bytes), length)
        }
    };
    match length > MAX_KEY_VALUE {
        true => Err(format!("A value of a key has up to {MAX_KEY_VALUE} bytes; this one has {length}.")),
        false => Ok(value),
    }
}

/// The address of a row.
pub(super) fn row_address(table: &str, key: &PrimaryKey) -> String {
    format!("/tables/{table}/row?{}", key_query(key))
}

/// The address of the rows beside a key.
pub(super) fn rows_address(table: &str, key: &PrimaryKey, go: Go) -> String {
    let go = match go {
        Go::From => "from",
        Go::To => "to",
        Go::At => "at",
        Go::After => "after",
        Go::Until => "until",
        Go::Before => "before",
    };
    format!("/tables/{table}?go={go}&{}", key_query(key))
}

fn key_query(key: &PrimaryKey) -> String {
    let pairs = FIELDS.iter().zip(key).map(|(field, (_, value))| match value {
        KeyValue::Integer(number) => format!("{field}={number}"),
        KeyValue::String(text) => format!("{field}={}", percent_encoded(text)),
        KeyValue::Binary(bytes) => format!("{field}={}", hex(bytes)),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// A text as it may stand in a query.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => write!(encoded, "%{byte:02X}").expect("writing into a String cannot fail"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use axum::extract::Query as Decoded;
    use axum::http::Uri;
    use tidemark_table::{ReservedThroughput, TableOptions};

    use super::*;
    use crate::domain::Timestamp;

    fn table(kinds: &[KeyType]) -> Described {
        let column = |(at, kind): (usize, &KeyType)| KeyColumnDefinition {
            name: format!("c{at}"),
            kind: *kind,
            auto_increment: false,
        };
        let definition = TableDefinition {
            name: "orders".into(),
            key: kinds.iter().enumerate().map(column).collect(),
            columns: Vec::new(),
            options: TableOptions::default(),
            reserved: ReservedThroughput::default(),
        };
        Described { definition, created_at: Some(Timestamp(1)) }
    }

    fn query(address: &str) -> Query {
        let uri: Uri = address.parse().expect("an address");
        Decoded::try_from_uri(&uri).map(|Decoded(query)| query).expect("a query")
    }

    #[test]
    fn an_address_names_the_key_that_it_was_made_of() {
        let table = table(&[KeyType::String, KeyType::Integer, KeyType::Binary]);
        for text in ["", "a b", "ä&k2=7#%", "\0\u{202e}+"] {
            let values =
                [KeyValue::String(text.into()), KeyValue::Integer(i64::MIN), KeyValue::Binary(vec![0, 255])];
            let key: PrimaryKey =
                ["c0", "c1", "c2"].into_iter().map(str::to_owned).zip(values.clone()).collect();
            let address = row_address("orders", &key);
            assert_eq!(query(&address).key(&table.definition), Ok(key.clone()), "{address}");
            for (go, forward, except) in [
                (Go::At, true, false),
                (Go::After, true, true),
                (Go::Until, false, false),
                (Go::Before, false, true),
            ] {
                let place = query(&rows_address("orders", &key, go)).place(&table).expect("a place");
                let start = values.iter().cloned().map(BoundValue::Value).collect();
                assert_eq!(place, RowsPlace { forward, start, except: except.then(|| key.clone()) });
            }
        }
    }

    #[test]
    fn a_form_may_leave_the_last_columns_open() {
        let table = table(&[KeyType::String, KeyType::Integer]);
        let ann = BoundValue::Value(KeyValue::String("ann".into()));
        for (address, forward, start) in [
            ("/?", true, [BoundValue::InfMin, BoundValue::InfMin]),
            ("/?k1=&k2=&go=to", false, [BoundValue::InfMax, BoundValue::InfMax]),
            ("/?k1=ann&k2=&go=from", true, [ann.clone(), BoundValue::InfMin]),
            ("/?k1=ann&go=to&k4=more", false, [ann.clone(), BoundValue::InfMax]),
            ("/?k1=ann&k2=%207%20", true, [ann, BoundValue::Value(KeyValue::Integer(7))]),
        ] {
            let place = query(address).place(&table);
            assert_eq!(place, Ok(RowsPlace { forward, start: start.into(), except: None }), "{address}");
        }
        assert_eq!(query("/?k2=7").place(&table).expect_err("no first column").0, 0);
        assert!(query("/?k1=&go=to").is_open() && !query("/?k1=a").is_open() && !query("/?go=at").is_open());
    }
}
