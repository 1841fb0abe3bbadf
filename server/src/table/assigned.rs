//! Rows with the placeholder, where the store groups the commits that wait: they go to it at once, past the writers.
//!
//! A writer is for two things. It decides the rows of a key one after the other: such a row needs no order, since nothing is read for it,
//! and no request can change it before its number was answered. And it lets many rows share a commit: here the store does that. Through
//! a writer a row waited for two commits, that of the rows before it and its own (`docs/adr/0008-rows-at-once.md`).

use std::sync::LazyLock;

use tidemark_table::operations::batch::RowAnswer;
use tidemark_table::rows::key::encode;
use tidemark_table::rows::write::{Effect, Returns, RowWrite, WriteRefusal, decide};
use tidemark_table::{Row, TableError};
use tracing::{error, warn};

use super::TableService;
use super::catalog::Table;
use super::error::{busy, internal, not_stored, timeout};
use super::job::partition_of;
use crate::log_limit::LogLimit;
use crate::store::CommitError;
use crate::store::tables::{Expected, RowChange, RowKey, TableOutcome, TableWrite};
use crate::workers::aside;

impl TableService {
    /// Whether a row goes this way.
    pub(super) fn goes_at_once(&self, row: &RowWrite) -> bool {
        row.key.is_assigned() && self.store.groups_commits()
    }

    /// Decides a row with the placeholder, which came with so many bytes, and stores it. When the future is dropped before the store has taken the row, nothing is stored;
    /// afterwards it is stored all the same.
    pub(super) async fn write_at_once(&self, table: &Table, row: &RowWrite, bytes: usize) -> RowAnswer {
        let stored = self.stored_at_once(table, row, bytes).await;
        stored.unwrap_or_else(|WriteRefusal { error, consumed }| RowAnswer { consumed, outcome: Err(error) })
    }

    async fn stored_at_once(
        &self,
        table: &Table,
        row: &RowWrite,
        bytes: usize,
    ) -> Result<RowAnswer, WriteRefusal> {
        // Taken before the look: so `stop` waits for each row that was not refused here.
        let _accepted = self.tasks.token();
        if self.closing.is_cancelled() {
            return Err(busy().into());
        }
        let decided = || {
            let decided = decide(&table.definition, row, None, self.clock.now().0)?;
            let stored = match decided.effect {
                Effect::Store(columns) => Some(columns.encode()),
                Effect::Nothing | Effect::Remove => None,
            };
            Ok::<_, WriteRefusal>((stored, decided.cells, decided.consumed))
        };
        let (stored, cells, consumed) = aside(bytes, decided).await?;
        let number = match stored {
            Some(columns) => Some(self.store_assigned(table, row, columns).await?),
            None => None,
        };
        let row = match row.returns {
            Returns::Nothing => None,
            Returns::Key | Returns::AfterModify(_) => Some(Row { key: row.key.with(number), cells }),
        };
        Ok(RowAnswer { consumed, outcome: Ok(row) })
    }

    /// Stores a row, and tells the number that it got.
    async fn store_assigned(
        &self,
        table: &Table,
        row: &RowWrite,
        columns: Vec<u8>,
    ) -> Result<i64, TableError> {
        static UNKNOWN: LazyLock<LogLimit> = LazyLock::new(LogLimit::default);
        static REFUSED: LazyLock<LogLimit> = LazyLock::new(LogLimit::default);
        let (before, after) = row.key.encode();
        let after = after.ok_or_else(internal)?;
        let key = RowKey::assigned(&before, &after);
        let change = RowChange { key, expected: Expected::Anything, row: Some(columns.into()) };
        let first = row.key.first();
        let (partition_key, first) = (partition_of(first), encode([first]).into());
        let write = TableWrite { table: table.id, partition_key, first, changes: vec![change] };
        match self.store.commit(vec![write]).await {
            Ok(outcomes) => match outcomes.first().ok_or_else(internal)? {
                TableOutcome::Stored(numbers) => numbers.first().copied().flatten().ok_or_else(internal),
                outcome => Err(not_stored(outcome)),
            },
            Err(CommitError::Unknown(error)) => {
                if let Some(left_out) = UNKNOWN.pass() {
                    error!(%error, left_out, "the outcome of a commit of tables is unknown");
                }
                Err(timeout())
            }
            Err(failure) => {
                if let Some(left_out) = REFUSED.pass() {
                    warn!(error = %failure, left_out, "a commit of tables was refused");
                }
                Err(busy())
            }
        }
    }
}
