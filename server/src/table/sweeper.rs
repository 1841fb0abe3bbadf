//! Removes what is past its TTL, and the rows of deleted tables: a bounded part of it each time.
//!
//! Rows of deleted tables go in small transactions, with pauses as long as these took, so that nobody waits for long; and for half of the
//! time, so that the rest goes on, too. For what is past its TTL it walks over all tables that have a TTL, and gives the rows that have something to lose to their writers, so that no update is lost.
//! Reads do not show what is past its TTL, whether it was removed or not.

use std::sync::Arc;
use std::time::Duration;

use tidemark_table::rows::key::{INF_MAX, INF_MIN, after, decode};
use tidemark_table::rows::stored::Columns;
use tidemark_table::rows::write::Effect;
use tidemark_table::rows::write::decide::sweep;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::warn;

use super::Options;
use super::catalog::Table;
use super::job::{Answering, Job, JobWork};
use super::lanes::Lanes;
use crate::domain::{Clock, Direction};
use crate::log_limit::LogLimit;
use crate::store::StoreError;
use crate::store::tables::{StoredRow, TableId, TableScan, TableStore};

/// Rows that are looked at each time.
const SWEEP_ROWS: usize = 10_000;
/// Rows of one scan.
const PAGE_ROWS: usize = 500;
/// Bytes of one scan.
const PAGE_BYTES: usize = 4 << 20;
/// The shortest pause between two transactions that remove rows of deleted tables.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// See the module.
pub(super) struct Sweeper {
    store: Arc<dyn TableStore>,
    clock: Clock,
    lanes: Lanes,
    options: Options,
    /// The table that the walk has come to.
    table: TableId,
    /// Where in it the walk goes on; `None`: with the next table.
    start: Option<Vec<u8>>,
    log: LogLimit,
}

impl Sweeper {
    pub(super) fn new(store: Arc<dyn TableStore>, clock: Clock, lanes: Lanes, options: Options) -> Sweeper {
        let (table, start) = (TableId(0), None);
        Sweeper { store, clock, lanes, options, table, start, log: LogLimit::default() }
    }

    /// Sweeps now and then, for good.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(self.options.sweep_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let done = match self.forget_deleted().await {
                Ok(()) => self.pass().await,
                failed => failed,
            };
            if let Err(error) = done
                && let Some(left_out) = self.log.pass()
            {
                warn!(%error, left_out, "expired values were not removed");
            }
        }
    }

    /// Removes rows of deleted tables while there are any, for so long.
    async fn forget_deleted(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        while began.elapsed() < self.options.sweep_every / 2 {
            let asked = Instant::now();
            if self.store.forget_deleted(self.options.forget_rows).await? < self.options.forget_rows as u64 {
                return Ok(());
            }
            sleep(asked.elapsed().max(SHORTEST_PAUSE)).await;
        }
        Ok(())
    }

    /// Looks at so many rows, from where the last pass ended.
    async fn pass(&mut self) -> Result<(), StoreError> {
        let mut rows = 0;
        while rows < SWEEP_ROWS {
            let after = TableId(self.table.0.saturating_sub(u64::from(self.start.is_some())));
            let Some(record) = self.store.tables_after(after, 1).await?.pop() else {
                // The last table was the last one: the next pass begins with the first.
                (self.table, self.start) = (TableId(0), None);
                return Ok(());
            };
            // The table of the last page may have been deleted.
            let start = self.start.take().filter(|_| record.id == self.table);
            self.table = record.id;
            rows += 1;
            let Ok(table) = Table::read(record) else { continue };
            if table.definition.options.time_to_live < 0 {
                continue;
            }
            rows += self.page(&Arc::new(table), start).await?;
        }
        Ok(())
    }

    /// One page of a table; how many rows it had.
    async fn page(&mut self, table: &Arc<Table>, start: Option<Vec<u8>>) -> Result<usize, StoreError> {
        let scan = TableScan {
            table: table.id,
            partition_key: None,
            start: start.unwrap_or_else(|| vec![INF_MIN]),
            end: vec![INF_MAX],
            direction: Direction::Forward,
            rows: PAGE_ROWS,
            bytes: PAGE_BYTES,
        };
        let (rows, has_more) = self.store.scan(&scan).await?;
        if let (Some(last), true) = (rows.last(), has_more) {
            self.start = Some(after(&last.key));
        }
        let mut under_way = Vec::new();
        for row in &rows {
            if let Some(job) = self.job(table, row) {
                under_way.extend(self.lanes.wait_to_submit(job).await);
            }
        }
        for answering in under_way {
            // Refused or not, it is looked at again in the next walk.
            answering.wait().await;
        }
        Ok(rows.len())
    }

    /// The job for a row's writer, if the row has something to lose.
    fn job(&self, table: &Arc<Table>, row: &StoredRow) -> Option<(Job, Answering)> {
        let columns = Columns::decode(&row.row).ok()?;
        if sweep(&table.definition.options, columns, self.clock.now().0) == Effect::Nothing {
            return None;
        }
        let key = decode(&table.definition, &row.key).ok()?;
        let (_, first) = key.first()?;
        Some(Job::new(table, first, JobWork::Sweep(row.key.clone()), row.row.len()))
    }
}
