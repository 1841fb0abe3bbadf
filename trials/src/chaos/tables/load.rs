//! Programs at work on tables: some put rows, some read on from the last number. Owns their tasks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::check::{Attempt, ReadRow, TableLedger};
use super::client::{self, TableCaller};
use super::rows::{self, GROUPS, RowPutter, Turns};
use crate::Result;
use crate::table_setup::make_key;

const WRITERS: u32 = 12;

/// See the module.
pub struct TableLoad {
    client: TableCaller,
    acknowledged: Arc<AtomicUsize>,
    stop: watch::Sender<bool>,
    writers: Vec<JoinHandle<Result<Vec<Attempt>>>>,
    all_written: Arc<AtomicBool>,
    readers: Vec<JoinHandle<Result<Vec<ReadRow>>>>,
}

/// The access key that calls.
#[derive(Clone, Debug)]
pub struct AccessKey(tidemark_table::client::Credentials);

impl AccessKey {
    /// Makes one, with the program at `binary`, over the data in `data` or of `settings`, named as in the environment.
    ///
    /// # Errors
    /// When the program refuses.
    pub async fn make(binary: &Path, data: &Path, settings: &[(&str, String)]) -> Result<AccessKey> {
        make_key(binary, data, settings, "chaos").await.map(AccessKey)
    }
}

impl TableLoad {
    /// Makes a table, and begins to write and to read over all of `addresses` (`HOST:PORT`).
    ///
    /// # Errors
    /// When the table cannot be made.
    pub async fn begin(key: &AccessKey, addresses: &[String], random: &mut StdRng) -> Result<TableLoad> {
        let mut client = TableCaller::new(&key.0, addresses, 0);
        client::make_table(&mut client).await?;
        let (stop, stopped) = watch::channel(false);
        let (turns, acknowledged) = (Turns::default(), Arc::new(AtomicUsize::new(0)));
        let mut writers = Vec::new();
        for number in 0..WRITERS {
            let writer = RowPutter {
                client: TableCaller::new(&key.0, addresses, number as usize),
                number,
                random: StdRng::seed_from_u64(random.random()),
                turns: Arc::clone(&turns),
                acknowledged: Arc::clone(&acknowledged),
            };
            writers.push(tokio::spawn(writer.run(stopped.clone())));
        }
        let all_written = Arc::new(AtomicBool::new(false));
        let mut readers = Vec::new();
        for group in 0..GROUPS {
            let client = TableCaller::new(&key.0, addresses, group + 1);
            readers.push(tokio::spawn(rows::follow(
                client,
                group,
                random.random(),
                Arc::clone(&all_written),
            )));
        }
        Ok(TableLoad { client, acknowledged, stop, writers, all_written, readers })
    }

    /// How many rows were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Begins no more writes.
    pub fn stop_writing(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until each write has come to its end; returns what came of them, without rows.
    ///
    /// # Errors
    /// When a server answered what it never may.
    pub async fn written(&mut self) -> Result<TableLedger> {
        self.stop_writing();
        let mut ledger = TableLedger::default();
        for writer in self.writers.drain(..) {
            ledger.attempts.extend(writer.await??);
        }
        Ok(ledger)
    }

    /// Adds what is there, from all sides. Nothing may be under way any more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(mut self, mut ledger: TableLedger) -> Result<TableLedger> {
        self.all_written.store(true, Ordering::SeqCst);
        for reader in self.readers {
            ledger.followed.push(reader.await??);
        }
        ledger.stored = rows::everything(&mut self.client).await?;
        for group in 0..GROUPS {
            let mut rows = rows::backward(&mut self.client, group).await?;
            rows.reverse();
            ledger.backward.push(rows);
        }
        Ok(ledger)
    }
}
