//! The committer's part for tables: counters are learnt, writes judged, and what is durable is shown to readers.

use std::collections::HashSet;

use serde_json::json;

use super::hex;
use crate::store::StoreError;
use crate::store::sqlite::calls::Calls;
use crate::store::sqlite::committer::Committer;
use crate::store::sqlite::journal::record::JournalRecord;
use crate::store::tables::{TableOutcome, TableWrite};

impl Committer {
    /// Learns the counters that these calls move.
    pub(in crate::store::sqlite) async fn learn_counters(&mut self, calls: &Calls) -> Result<(), StoreError> {
        let mut needs = HashSet::new();
        for write in calls.tables.iter().flat_map(|(writes, _)| writes) {
            self.counters.needs(write, &mut needs);
        }
        let view = self.shared.memory.view();
        let mut missing = Vec::new();
        for key in needs {
            match view.table_counter(&key) {
                Some(last) => self.counters.learn(key, last),
                None => missing.push(key),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut connection = self.shared.db.service().await?;
        let keys: Vec<_> = missing.iter().map(|(table, first)| json!([table.0, hex(first)])).collect();
        let stored: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT json_each.key, last_id FROM json_each(?) CROSS JOIN table_counters
             WHERE table_id = value ->> 0 AND first = unhex(value ->> 1)",
        )
        .bind(json!(keys).to_string())
        .fetch_all(&mut *connection)
        .await?;
        connection.give_back();
        let mut last: Vec<Option<i64>> = vec![None; missing.len()];
        for (at, last_id) in stored {
            let place = usize::try_from(at).ok().and_then(|at| last.get_mut(at));
            *place.ok_or_else(|| StoreError::corrupt("a counter that nobody asked for"))? = Some(last_id);
        }
        for (key, last) in missing.into_iter().zip(last) {
            let last = last.unwrap_or_else(|| self.counters.floor());
            self.counters.learn(key, last);
        }
        Ok(())
    }

    /// Decides about the writes of a call. Adds the records to store to `records`.
    pub(in crate::store::sqlite) fn judge_rows(
        &mut self,
        writes: Vec<TableWrite>,
        records: &mut Vec<JournalRecord>,
    ) -> Vec<TableOutcome> {
        let mut judge = |write: TableWrite| {
            if !self.shared.tables.contains(write.table) {
                return TableOutcome::NoTable;
            }
            let (record, outcome) = self.counters.judge(write);
            records.extend(record.map(JournalRecord::Rows));
            outcome
        };
        writes.into_iter().map(&mut judge).collect()
    }
}
