//! GetRange: rows in the order of their keys (S20).

use std::cmp::Ordering;

use prost::Message;

use super::bounds::check_columns;
use super::read::{Asked, no_token};
use super::{check, consumed, decoded};
use crate::rows::capacity::Consumed;
use crate::rows::key::BoundValue;
use crate::rows::select::Selection;
use crate::wire::plain_buffer::{decode_key, encode_key, encode_rows};
use crate::wire::proto;
use crate::{KeyValue, PrimaryKey, Row, TableDefinition, TableError};

/// The most rows that one answer has, and that are looked at for it.
pub const MAX_ROWS: usize = 5_000;
/// The most bytes of keys and rows that are looked at for one answer; the first row always is.
pub const MAX_BYTES: usize = 4 << 20;

/// A range, not yet checked against its table.
#[derive(Clone, Debug)]
pub struct GetRange {
    forward: bool,
    start: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    selection: Selection,
}

/// A range of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Whether the keys grow; else they fall.
    pub forward: bool,
    /// Where it begins, inclusive; below `end` forward, above it backward.
    pub start: Vec<BoundValue>,
    /// Where it ends, exclusive.
    pub end: Vec<BoundValue>,
    /// At most this number of rows, 1 to [`MAX_ROWS`].
    pub limit: usize,
    /// The parts of them to return.
    pub selection: Selection,
}

/// The table, and the range of it.
pub fn decode(body: &[u8]) -> Result<(String, GetRange), TableError> {
    check_columns(body, &[3])?;
    let request: proto::GetRangeRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    check::no_transaction(request.transaction_id.as_deref())?;
    no_token(request.token.as_deref())?;
    let forward = match request.direction.map(proto::RangeDirection::try_from) {
        Some(Ok(proto::RangeDirection::Forward)) => true,
        Some(Ok(proto::RangeDirection::Backward)) => false,
        _ => return Err(TableError::invalid("The direction must be FORWARD or BACKWARD.")),
    };
    let limit = match request.limit {
        None => MAX_ROWS,
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit.min(MAX_ROWS),
            _ => return Err(TableError::invalid("The limit must be greater than 0.")),
        },
    };
    let asked = Asked {
        columns: request.columns_to_get,
        times: request.time_range,
        max_versions: request.max_versions,
        filter: request.filter,
        start_column: request.start_column,
        end_column: request.end_column,
    };
    let entire_keys = request.return_entire_primary_keys.unwrap_or(true);
    let selection = Selection { entire_keys, ..asked.checked()? };
    let start = request.inclusive_start_primary_key.unwrap_or_default();
    let end = request.exclusive_end_primary_key.unwrap_or_default();
    Ok((request.table_name, GetRange { forward, start, end, limit, selection }))
}

impl GetRange {
    /// The range, if it is right for this table.
    pub fn checked(self, definition: &TableDefinition) -> Result<Range, TableError> {
        let GetRange { forward, limit, selection, .. } = self;
        let start = check::bound(definition, decode_key(&self.start)?)?;
        let end = check::bound(definition, decode_key(&self.end)?)?;
        match (forward, start.cmp(&end)) {
            (true, Ordering::Less) | (false, Ordering::Greater) => {
                Ok(Range { forward, start, end, limit, selection })
            }
            (true, _) => Err(TableError::invalid("Begin key must less than end key in FORWARD")),
            (false, _) => Err(TableError::invalid("Begin key must more than end key in BACKWARD")),
        }
    }
}

impl Range {
    /// The first key column's value, if all rows of the range have the same.
    pub fn first(&self) -> Option<&KeyValue> {
        match (self.start.first(), self.end.first()) {
            (Some(BoundValue::Value(start)), Some(BoundValue::Value(end))) if start == end => Some(start),
            _ => None,
        }
    }
}

/// The answer to GetRange. `next`: the first key that was not looked at; `None`: the whole range was.
pub fn answer<'a>(
    units: Consumed,
    rows: impl IntoIterator<Item = &'a Row>,
    next: Option<&PrimaryKey>,
) -> Vec<u8> {
    let answer = proto::GetRangeResponse {
        consumed: consumed(units),
        rows: encode_rows(rows),
        next_start_primary_key: next.map(|key| encode_key(key)),
        next_token: None,
        data_block_type: proto::BlockType::PlainBuffer as i32,
        compress_type: 0,
    };
    answer.encode_to_vec()
}
