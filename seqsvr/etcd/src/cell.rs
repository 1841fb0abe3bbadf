//! One key as a read found it: plain values, made by the operations and by readers.

use super::v3::KeyValue;

/// The contents of a key.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The revision of the last change; 0: the key is not there.
    pub revision: i64,
    /// The value; empty where the key is not there.
    pub value: Vec<u8>,
    /// The lease with which the key ends; 0: none.
    pub lease: i64,
}

impl Cell {
    /// The value, if the key is there.
    pub fn value(&self) -> Option<&[u8]> {
        (self.revision > 0).then_some(self.value.as_slice())
    }
}

impl From<&KeyValue> for Cell {
    fn from(stored: &KeyValue) -> Self {
        Self { revision: stored.mod_revision, value: stored.value.clone(), lease: stored.lease }
    }
}
