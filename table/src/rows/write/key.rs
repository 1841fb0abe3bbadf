//! The key of a row that is written: whole, or with the placeholder.

use crate::rows::capacity::of_key_value;
use crate::rows::key::encode;
use crate::{KeyValue, PrimaryKey};

/// Key columns in the order of the table's definition, checked against it. At most one is `None`: the placeholder, for which the store
/// assigns a value (S19); never the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenKey {
    columns: Vec<(String, Option<KeyValue>)>,
}

impl WrittenKey {
    /// A key with at most one placeholder, which is not the first column; `None` for any other.
    pub fn new(columns: Vec<(String, Option<KeyValue>)>) -> Option<WrittenKey> {
        let is_good = matches!(columns.first(), Some((_, Some(_))))
            && columns.iter().filter(|(_, value)| value.is_none()).count() <= 1;
        is_good.then_some(WrittenKey { columns })
    }

    /// Whether the store assigns one of its values.
    pub fn is_assigned(&self) -> bool {
        self.place().is_some()
    }

    /// The value of the first column.
    pub fn first(&self) -> &KeyValue {
        self.columns.first().and_then(|(_, value)| value.as_ref()).expect("a first column has a value")
    }

    /// The key's bytes. Those before the placeholder and those after it, if it has one.
    pub fn encode(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let values = |columns: &[(String, Option<KeyValue>)]| {
            encode(columns.iter().filter_map(|(_, value)| value.as_ref()))
        };
        match self.place() {
            None => (values(&self.columns), None),
            Some(place) => (values(&self.columns[..place]), Some(values(&self.columns[place + 1..]))),
        }
    }

    /// The key with the value that the store gave the placeholder, if it has one.
    pub fn with(&self, assigned: Option<i64>) -> PrimaryKey {
        let value = |value: &Option<KeyValue>| value.clone().or(assigned.map(KeyValue::Integer));
        self.columns.iter().filter_map(|(name, found)| Some((name.clone(), value(found)?))).collect()
    }

    /// Its bytes, as capacity units count them.
    pub fn size(&self) -> u64 {
        let size = |value: &Option<KeyValue>| value.as_ref().map_or(8, of_key_value);
        self.columns.iter().map(|(name, value)| name.len() as u64 + size(value)).sum()
    }

    fn place(&self) -> Option<usize> {
        self.columns.iter().position(|(_, value)| value.is_none())
    }
}
