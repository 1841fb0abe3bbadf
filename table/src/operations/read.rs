//! GetRow: one row, or nothing. Its selection is the same for BatchGetRow and GetRange.

use prost::Message;

use super::bounds::check_columns;
use super::{check, consumed, decoded, unsupported};
use crate::rows::capacity::Consumed;
use crate::rows::select::{Selection, Times};
use crate::wire::plain_buffer::{decode_key, encode_rows};
use crate::wire::proto;
use crate::{PrimaryKey, Row, TableDefinition, TableError};

/// The largest timestamp, exclusive.
const TIMESTAMPS_END: i64 = i64::MAX / 1_000;

/// A read of one row, not yet checked against its table.
#[derive(Clone, Debug)]
pub struct GetRow {
    key: Vec<u8>,
    selection: Selection,
}

/// The table, and the read of one of its rows.
pub fn decode(body: &[u8]) -> Result<(String, GetRow), TableError> {
    check_columns(body, &[3])?;
    let request: proto::GetRowRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    check::no_transaction(request.transaction_id.as_deref())?;
    no_token(request.token.as_deref())?;
    let selection = Asked {
        columns: request.columns_to_get,
        times: request.time_range,
        max_versions: request.max_versions,
        filter: request.filter,
        start_column: request.start_column,
        end_column: request.end_column,
    };
    let (key, selection) = (request.primary_key.unwrap_or_default(), selection.checked()?);
    Ok((request.table_name, GetRow { key, selection }))
}

/// The answer to GetRow; a row that is not shown is no bytes.
pub fn answer(units: Consumed, row: Option<&Row>) -> Vec<u8> {
    let row = encode_rows(row);
    proto::GetRowResponse { consumed: consumed(units), row, next_token: None }.encode_to_vec()
}

impl GetRow {
    /// The row's key and what is shown of it.
    pub fn checked(self, definition: &TableDefinition) -> Result<(PrimaryKey, Selection), TableError> {
        Ok((check::whole_key(definition, decode_key(&self.key)?)?, self.selection))
    }
}

/// Refuses to go on within a row: rows are answered whole.
pub(super) fn no_token(token: Option<&[u8]>) -> Result<(), TableError> {
    match token {
        None | Some([]) => Ok(()),
        Some(_) => Err(unsupported("reading on with a token")),
    }
}

/// The selection of a read, as it comes.
pub(super) struct Asked {
    pub(super) columns: Vec<String>,
    pub(super) times: Option<proto::TimeRange>,
    pub(super) max_versions: Option<i32>,
    pub(super) filter: Option<Vec<u8>>,
    pub(super) start_column: Option<String>,
    pub(super) end_column: Option<String>,
}

impl Asked {
    pub(super) fn checked(self) -> Result<Selection, TableError> {
        let mut columns = self.columns;
        columns.iter().try_for_each(|column| check::column_name(column))?;
        columns.sort_unstable();
        columns.dedup();
        let times = times(self.times, self.max_versions.is_some())?;
        let max_versions = match self.max_versions {
            None => None,
            Some(count) => match usize::try_from(count) {
                Ok(count) if count > 0 => Some(count),
                _ => {
                    let message = format!("The max versions must be greater than 0, they are {count}.");
                    return Err(TableError::invalid(message));
                }
            },
        };
        Ok(Selection {
            columns,
            start_column: self.start_column.filter(|column| !column.is_empty()),
            end_column: self.end_column.filter(|column| !column.is_empty()),
            times,
            max_versions,
            filter: check::filter(self.filter.as_deref())?,
            entire_keys: true,
        })
    }
}

fn times(range: Option<proto::TimeRange>, counts_versions: bool) -> Result<Times, TableError> {
    let Some(proto::TimeRange { start, end, specific }) = range else {
        if counts_versions {
            return Ok(Times::All);
        }
        return Err(TableError::invalid("No version condition is specified while querying row."));
    };
    match (start, end, specific) {
        // The text is the service's, which tests of its clients look for.
        (_, _, Some(_)) if counts_versions => {
            Err(TableError::invalid("Specific tiemstamp and max versions cannot be given at the same time."))
        }
        (None, None, Some(time)) if (0..TIMESTAMPS_END).contains(&time) => Ok(Times::At(time)),
        (None, None, Some(_)) => Err(TableError::invalid("Timestamp must be in range [0, INT64_MAX/1000).")),
        (Some(start), Some(end), None) if 0 <= start && start <= end => Ok(Times::Between { start, end }),
        (Some(start), Some(end), None) => {
            Err(TableError::invalid(format!("Invalid time range: [{start}, {end}).")))
        }
        _ => {
            Err(TableError::invalid("A time range needs a start and an end, or a specific timestamp alone."))
        }
    }
}
