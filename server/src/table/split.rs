//! ComputeSplitPointsBySize: walks the table and notes a key whenever so many bytes lie before it.
//!
//! Bytes are those of keys and rows as they are stored. The walk ends after [`Options::split_bytes`](super::Options::split_bytes) of
//! them, or when there are as many points as asked for; what lies behind is one part.

use tidemark_table::TableError;
use tidemark_table::operations::range::{MAX_BYTES, MAX_ROWS};
use tidemark_table::operations::tables;
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::rows::key::{INF_MAX, INF_MIN, after, decode};

use super::error::{unread, unreadable};
use super::{Caller, TableService};
use crate::domain::Direction;
use crate::store::tables::TableScan;

/// To walk over so many bytes costs as much as to answer one.
const PASSED: u64 = 8;

impl TableService {
    pub(super) async fn compute_split_points(
        &self,
        caller: &Caller,
        body: &[u8],
    ) -> Result<Vec<u8>, TableError> {
        let (name, request) = tables::decode_split(body)?;
        let table = self.catalog.find(caller, &name).await?;
        let mut scan = TableScan {
            table: table.id,
            partition_key: None,
            start: vec![INF_MIN],
            end: vec![INF_MAX],
            direction: Direction::Forward,
            rows: MAX_ROWS,
            bytes: MAX_BYTES,
        };
        let (mut points, mut part, mut walked) = (Vec::new(), 0, 0);
        while points.len() < request.most && walked < self.options.split_bytes {
            let step = async { self.store.scan(&scan).await.map_err(|error| unread(&error)) };
            let (rows, has_more) = self.in_time(step).await?;
            let before = walked;
            for row in &rows {
                if part >= request.bytes && points.len() < request.most {
                    let key = decode(&table.definition, &row.key).map_err(|error| unreadable(&error))?;
                    points.push(key);
                    part = 0;
                }
                let bytes = (row.key.len() + row.row.len()) as u64;
                part += bytes;
                walked += bytes;
            }
            let cost = usize::try_from((walked - before) / PASSED).unwrap_or(usize::MAX);
            self.meter.take(&caller.key, cost).await?;
            match rows.last() {
                Some(last) if has_more => scan.start = after(&last.key),
                _ => break,
            }
        }
        Ok(tables::answer_split(&table.definition, Consumed::reading(walked), &points))
    }
}
