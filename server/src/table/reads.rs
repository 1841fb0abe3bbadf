//! Reads of rows by their keys.

use std::collections::VecDeque;
use std::sync::Arc;

use tidemark_table::operations::batch::{self, RowAnswer};
use tidemark_table::operations::read;
use tidemark_table::rows::age::live;
use tidemark_table::rows::capacity::{Consumed, of_cell};
use tidemark_table::rows::key::{encode, partition_bytes};
use tidemark_table::rows::select::{Selected, Selection};
use tidemark_table::rows::stored::Columns;
use tidemark_table::{ErrorCode, PrimaryKey, Row, TableError};

use super::catalog::Table;
use super::error::{internal, unread, unreadable};
use super::{Caller, TableService};
use crate::domain::PartitionKey;
use crate::store::tables::TableId;
use crate::workers::{ROW, aside};

/// Bytes of rows that a BatchGetRow looks at; the one that exceeds them is still answered.
const MAX_BATCH_BYTES: usize = 16 << 20;
/// Rows that a BatchGetRow reads at once.
const AT_ONCE: usize = 16;

impl TableService {
    pub(super) async fn get_row(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let (name, request) = read::decode(body)?;
        let table = self.catalog.find(caller, &name).await?;
        let (key, selection) = request.checked(&table.definition)?;
        let (row, consumed) = self.read_row(caller, &table, key, &selection).await?;
        let bytes: u64 = row.iter().flat_map(|row| &row.cells).map(of_cell).sum();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(aside(bytes, || read::answer(consumed, row.as_ref())).await)
    }

    /// The selected part of the row with this key, and the units that reading consumed.
    pub(super) async fn read_row(
        &self,
        caller: &Caller,
        table: &Table,
        key: PrimaryKey,
        selection: &Selection,
    ) -> Result<(Option<Row>, Consumed), TableError> {
        let found = self.store.rows(&[place(table.id, &key)]).await.map_err(|error| unread(&error))?;
        let row = found.into_iter().next().ok_or_else(internal)?.map(|row| row.row);
        let bytes = row.as_ref().map_or(0, Vec::len);
        self.meter.count(&caller.key, bytes);
        let (row, bytes) = aside(bytes, || self.shown(table, key, row.as_deref(), selection)).await?;
        Ok((row, Consumed::reading(bytes)))
    }

    pub(super) async fn batch_get_row(&self, caller: &Caller, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let mut answers = Vec::new();
        // Keys that are read, with the table of each, and where its answer belongs.
        let (mut places, mut reads) = (Vec::new(), Vec::new());
        for request in batch::decode_reads(body)? {
            let rows = match self.catalog.find(caller, &request.table).await {
                Ok(table) => {
                    let mut rows = Vec::with_capacity(request.count());
                    let selection = Arc::new(request.selection.clone());
                    for (at, key) in request.keys(&table.definition).into_iter().enumerate() {
                        match key {
                            Ok(key) => {
                                places.push(place(table.id, &key));
                                reads.push((
                                    (answers.len(), at),
                                    Arc::clone(&table),
                                    key,
                                    Arc::clone(&selection),
                                ));
                                rows.push(None);
                            }
                            Err(error) if error.code == ErrorCode::InvalidPK => {
                                rows.push(Some(refused(error)))
                            }
                            Err(error) => return Err(error),
                        }
                    }
                    rows
                }
                Err(error) if error.code == ErrorCode::ObjectNotExist => {
                    vec![Some(refused(error)); request.count()]
                }
                Err(error) => return Err(error),
            };
            answers.push((request.table, rows));
        }
        let (mut left, mut found) = (MAX_BATCH_BYTES, VecDeque::new());
        for (place, ((request, at), table, key, selection)) in reads.into_iter().enumerate() {
            if left == 0 {
                answers[request].1[at] = Some(refused(too_large()));
                continue;
            }
            if found.is_empty() {
                let some = &places[place..places.len().min(place + AT_ONCE)];
                found.extend(self.store.rows(some).await.map_err(|error| unread(&error))?);
                let bytes: usize = found.iter().flatten().map(|row| row.row.len()).sum();
                self.meter.count(&caller.key, bytes + found.len() * ROW);
                // The work is little for each row, and much for all.
                tokio::task::consume_budget().await;
            }
            let row = found.pop_front().ok_or_else(internal)?.map(|row| row.row);
            let bytes = row.as_ref().map_or(0, Vec::len);
            left = left.saturating_sub(bytes);
            let shown = aside(bytes, || self.shown(&table, key, row.as_deref(), &selection)).await;
            let answer =
                shown.map(|(row, bytes)| RowAnswer { consumed: Consumed::reading(bytes), outcome: Ok(row) });
            answers[request].1[at] = Some(answer.unwrap_or_else(refused));
        }
        let all = |(name, rows): (String, Vec<Option<RowAnswer>>)| {
            Ok((name, rows.into_iter().collect::<Option<Vec<_>>>().ok_or_else(internal)?))
        };
        let answers = answers.into_iter().map(all).collect::<Result<Vec<_>, TableError>>()?;
        Ok(aside(MAX_BATCH_BYTES - left, || batch::answer_reads(answers)).await)
    }

    /// The selected part of a row, and the bytes that were read for it.
    fn shown(
        &self,
        table: &Table,
        key: PrimaryKey,
        row: Option<&[u8]>,
        selection: &Selection,
    ) -> Result<(Option<Row>, u64), TableError> {
        let Some(row) = row else { return Ok((None, 0)) };
        let columns = Columns::decode(row).map_err(|error| unreadable(&error))?;
        Ok(match live(columns, &table.definition.options, self.clock.now().0) {
            None => (None, 0),
            Some(columns) => {
                let Selected { row, bytes } = selection.of(key, columns);
                (row, bytes)
            }
        })
    }
}

/// Where a row lies.
fn place(table: TableId, key: &PrimaryKey) -> (TableId, PartitionKey, Vec<u8>) {
    let first = key.first().map_or_else(Default::default, |(_, first)| partition_bytes(first));
    (table, PartitionKey::of_bytes(&first), encode(key.iter().map(|(_, value)| value)))
}

fn too_large() -> TableError {
    TableError::invalid(format!(
        "The total data size of BatchGetRow answer exceeds the limit, limit size: {MAX_BATCH_BYTES}. Ask for fewer rows."
    ))
}

fn refused(error: TableError) -> RowAnswer {
    RowAnswer { consumed: Consumed { read: 1, write: 0 }, outcome: Err(error) }
}
